// The rules of each command.
#include "tests/cli/derived_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "exactness/statistics/binomial_interval.hpp"
#include "exactness/statistics/chi_squared.hpp"
#include "exactness/statistics/kolmogorov_smirnov.hpp"

namespace draftproof::testing {
namespace {

constexpr double kPower = 0.99;  // at which detectable distances are stated

double number(const ordered_json& object, const char* key) {
  return object.at(key).get<double>();
}

std::int64_t count(const ordered_json& object, const char* key) {
  return object.at(key).get<std::int64_t>();
}

ordered_json ratio(const ordered_json& numerator, const ordered_json& denominator, double unit = 1.0) {
  if (numerator.is_null() || denominator.is_null() || denominator == 0) return nullptr;
  return unit * numerator.get<double>() / denominator.get<double>();
}

std::int64_t count_if(const ordered_json& list, const char* key, const ordered_json& value) {
  return std::count_if(list.begin(), list.end(), [&](const ordered_json& one) { return one.at(key) == value; });
}

Formula ratio_of(const char* numerator, const char* denominator, double unit = 1.0) {
  return [=](const Place& at) { return ratio(at.container().at(numerator), at.container().at(denominator), unit); };
}

Formula rows_with(const char* rows, const char* key, ordered_json value) {
  return [=](const Place& at) { return ordered_json(count_if(at.document().at(rows), key, value)); };
}

Formula number_of(const char* rows) {
  return [=](const Place& at) { return ordered_json(at.document().at(rows).size()); };
}

// --- Tests of a battery --------------------------------------------------------------------------------------------

ordered_json p_value(const Place& at) {
  const ordered_json& test = at.container();
  if (test.at("statistic_name") == "count") return number(test, "statistic") > 0.0 ? 0.0 : 1.0;
  if (test.at("df").is_null()) return kolmogorov_p_value(count(test, "n"), number(test, "statistic"));
  return chi_squared_p_value(number(test, "statistic"), count(test, "df"));
}

// Holm: the i-th smallest of m is m - i times itself at least, and no less than the one before.
ordered_json p_value_holm(const Place& at) {
  std::vector<std::pair<double, std::size_t>> sorted;
  const ordered_json& tests = at.container(1);
  for (std::size_t i = 0; i < tests.size(); ++i) sorted.emplace_back(number(tests[i], "p_value"), i);
  std::sort(sorted.begin(), sorted.end());
  double adjusted = 0.0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    adjusted = std::max(adjusted, std::min(1.0, static_cast<double>(sorted.size() - i) * sorted[i].first));
    if (sorted[i].second == at.index()) break;
  }
  return adjusted;
}

ordered_json detectable_tv(const Place& at) {
  const ordered_json& test = at.container();
  const auto n = number(test, "n");
  const double level = number(test, "alpha") / static_cast<double>(at.container(1).size());
  if (n == 0.0) return 1.0;
  if (test.at("statistic_name") == "count") return 1.0 - std::pow(1.0 - kPower, 1.0 / n);
  if (test.at("df").is_null()) return detectable_kolmogorov_distance(count(test, "n"), level, kPower);
  return detectable_total_variation(n, count(test, "df"), level, kPower);
}

ordered_json least_detectable_tv(const Place& at) {
  double least = 1.0;
  for (const ordered_json& test : at.document().at("tests"))
    if (test.at("covers_all") == true) least = std::min(least, number(test, "detectable_tv"));
  return least;
}

// Of the test of the longest strings that were counted.
ordered_json string_detectable_tv(const Place& at) {
  const std::int64_t tokens = at.document().at("string_tokens");
  const std::string name = tokens > 2 ? "string_" + std::to_string(tokens) : "string";
  for (const ordered_json& test : at.document().at("tests"))
    if (test.at("name") == name) return test.at("detectable_tv");
  return 1.0;
}

ordered_json clopper_pearson_end(const Place& at, const char* successes, const char* trials) {
  const Interval interval = clopper_pearson(count(at.container(1), successes), count(at.container(1), trials), 0.99);
  return at.index() == 0 ? interval.low : interval.high;
}

const NumberRules& battery() {
  static const NumberRules rules{
      {"/tests/*/n", {}},
      {"/tests/*/df", {}},
      {"/tests/*/statistic", {}},
      {"/tests/*/estimated_tv", {}},
      {"/tests/*/covers_all", {}},
      {"/tests/*/worst_cells/*/?", {}},
      {"/tests/*/alpha", [](const Place& at) { return at.document().at("alpha"); }},
      {"/tests/*/p_value", p_value},
      {"/tests/*/p_value_holm", p_value_holm},
      {"/tests/*/rejects",
       [](const Place& at) { return number(at.container(), "p_value_holm") < number(at.document(), "alpha"); }},
      {"/tests/*/detectable_tv", detectable_tv},
  };
  return rules;
}

// --- Acceptance ----------------------------------------------------------------------------------------------------

ordered_json acceptance_length(const Place& at) {
  const ordered_json mean = ratio(at.document().at("accepted"), at.document().at("drafts"));
  return mean.is_null() ? mean : ordered_json(1.0 + mean.get<double>());
}

ordered_json tokens_per_step_formula(const Place& at) {
  double sum = 1.0;
  double product = 1.0;
  for (const ordered_json& rate : at.document().at("acceptance_by_position").at("conditional")) {
    product *= rate.is_null() ? 0.0 : rate.get<double>();
    sum += product;
  }
  return sum;
}

// Of chains: a_j from how many drafts each request has, and how many tokens it emits.
ordered_json rate_at_position(const Place& at, bool conditional) {
  std::int64_t reached = 0;
  std::int64_t accepted = 0;
  const ordered_json& drafts = at.document().at("num_draft_tokens");
  for (std::size_t b = 0; b < drafts.size(); ++b) {
    const ordered_json& tokens = at.document().at("output_tokens")[b];
    if (!conditional || (tokens.size() > at.index() && drafts[b].get<std::size_t>() > at.index())) ++reached;
    if (tokens.size() > at.index() + 1) ++accepted;
  }
  return ratio(accepted, reached);
}

ordered_json in_csv(const Place& at, const char* numerator, const char* denominator) {
  const ordered_json& row = at.document().at("csv")[at.index()];
  return ratio(row.at(numerator), row.at(denominator));
}

ordered_json tokens_shown(const Place& at) {
  const ordered_json& shown = at.document().at("shown");
  return count(shown, "accepted_shown") + count(shown, "recovered_shown") + count(shown, "bonus_shown");
}

Formula tokens_per_second(const char* ms) {
  return [=](const Place& at) { return ratio(tokens_shown(at), at.container().at(ms), 1e3); };
}

// --- Benchmark -----------------------------------------------------------------------------------------------------

ordered_json ratio_to_bandwidth(const Place& at) {
  for (const ordered_json& other : at.document().at("results"))
    if (other.at("name") == "read_bandwidth" && other.at("threads") == at.container().at("threads"))
      return ratio(at.container().at("gb_per_s"), other.at("gb_per_s"));
  return nullptr;
}

ordered_json meets_goal(const Place& at) {
  if (at.container().at("goal").is_null()) return nullptr;
  std::istringstream words(at.container().at("goal").get<std::string>());
  std::string key;
  std::string relation;
  double bound = 0.0;
  words >> key >> relation >> bound;
  const ordered_json& value = at.container().at(key);
  if (value.is_null()) return nullptr;
  return relation == "<=" ? value.get<double>() <= bound : value.get<double>() >= bound;
}

// --- Bugs -------------------------------------------------------------------------------------------------------

// Of the first hunt that caught the bug.
Formula of_the_killer(const char* key) {
  return [key](const Place& at) -> ordered_json {
    for (const ordered_json& hunt : at.container().at("hunts"))
      if (hunt.at("faulty").at("caught") == true) return hunt.contains(key) ? hunt.at(key) : hunt.at("faulty").at(key);
    return nullptr;
  };
}

Formula no_hunt(const char* finding) {
  return [finding](const Place& at) {
    const ordered_json& hunts = at.container().at("hunts");
    return std::none_of(hunts.begin(), hunts.end(),
                        [&](const ordered_json& hunt) { return hunt.at(finding).at("caught") == true; });
  };
}

void add_usual_tests(const std::string& of, NumberRules& rules) {
  for (const char* key : {"cosine", "chi_squared", "chi_squared_limit"}) rules[of + "/usual_tests/" + key] = {};
  rules[of + "/usual_tests/cosine_passes"] = [](const Place& at) { return number(at.container(), "cosine") > 0.99; };
  rules[of + "/usual_tests/chi_squared_passes"] = [](const Place& at) {
    return number(at.container(), "chi_squared") < number(at.container(), "chi_squared_limit");
  };
}

// --- All commands --------------------------------------------------------------------------------------------------

NumberRules rules_of_demo() {
  NumberRules rules{
      {"/acceptance_length", acceptance_length},
      {"/tokens_per_step", ratio_of("tokens", "steps")},
      {"/tokens_per_step_formula", tokens_per_step_formula},
      {"/acceptance_by_position/conditional/*", [](const Place& at) { return in_csv(at, "accepted", "reached"); }},
      {"/acceptance_by_position/unconditional/*",
       [](const Place& at) { return in_csv(at, "accepted_all_steps", "steps"); }},
      {"/csv/*/conditional", ratio_of("accepted", "reached")},
      {"/csv/*/unconditional", ratio_of("accepted_all_steps", "steps")},
      {"/csv/*/position", [](const Place& at) { return at.index() + 1; }},
      {"/csv/*/steps", [](const Place& at) { return at.document().at("steps"); }},
      // No continuation is cut short, so every step emits what it accepted and one token.
      {"/tokens", [](const Place& at) { return count(at.document(), "accepted") + count(at.document(), "steps"); }},
      {"/accepted",
       [](const Place& at) {
         std::int64_t sum = 0;
         for (const ordered_json& row : at.document().at("csv")) sum += count(row, "accepted_all_steps");
         return sum;
       }},
      {"/shown/tokens", tokens_shown},
      {"/shown/discarded",
       [](const Place& at) {
         const ordered_json& shown = at.container();
         return count(shown, "accepted") + count(shown, "steps") - count(shown, "tokens");
       }},
      {"/timing/speculative_tokens_per_second", tokens_per_second("speculative_ms")},
      {"/timing/plain_tokens_per_second", tokens_per_second("plain_ms")},
  };
  for (const char* given : {"/seed",
                            "/lossless",
                            "/tokens_per_step_standard_error",
                            "/acceptance_by_position/conditional_standard_error/*",
                            "/acceptance_by_position/unconditional_standard_error/*",
                            "/steps",
                            "/drafts",
                            "/draft_tokens",
                            "/shown/steps",
                            "/shown/drafts",
                            "/shown/draft_tokens",
                            "/shown/accepted",
                            "/shown/accepted_shown",
                            "/shown/recovered_shown",
                            "/shown/bonus_shown",
                            "/chi_squared/impossible_strings",
                            "/chi_squared/tokens",
                            "/chi_squared/alpha",
                            "/chi_squared/power",
                            "/consistency/?",
                            "/options/?",
                            "/timing/training_ms",
                            "/timing/speculative_ms",
                            "/timing/plain_ms",
                            "/timing/acceptance_ms",
                            "/timing/chi_squared_ms",
                            "/csv/*/reached",
                            "/csv/*/accepted",
                            "/csv/*/accepted_all_steps",
                            "/csv/*/conditional_standard_error",
                            "/csv/*/unconditional_standard_error"})
    rules[given] = {};
  for (const std::string test : {"/chi_squared", "/chi_squared/exact_distribution"}) {
    const double samples = test == "/chi_squared" ? 2.0 : 1.0;
    for (const char* given : {"/n", "/cells", "/statistic"}) rules[test + given] = {};
    rules[test + "/df"] = [](const Place& at) { return count(at.container(), "cells") - 1; };
    rules[test + "/p_value"] = [](const Place& at) {
      return chi_squared_p_value(number(at.container(), "statistic"), count(at.container(), "df"));
    };
    rules[test + "/detectable_tv"] = [samples](const Place& at) {
      const ordered_json& both = at.document().at("chi_squared");
      return detectable_total_variation(number(at.container(), "n") / samples, count(at.container(), "df"),
                                        number(both, "alpha"), number(both, "power"));
    };
  }
  return rules;
}

NumberRules rules_of_verify() {
  NumberRules rules{
      {"/acceptance_rate", ratio_of("accepted", "draft_tokens")},
      {"/acceptance_length", acceptance_length},
      {"/tokens_per_step", ratio_of("tokens", "requests")},
      {"/tokens_per_step_formula", tokens_per_step_formula},
      {"/acceptance_by_position/conditional/*", [](const Place& at) { return rate_at_position(at, true); }},
      {"/acceptance_by_position/unconditional/*", [](const Place& at) { return rate_at_position(at, false); }},
      {"/requests", number_of("output_tokens")},
      {"/accepted", [](const Place& at) { return count(at.document(), "tokens") - count(at.document(), "requests"); }},
      {"/tokens",
       [](const Place& at) {
         std::size_t sum = 0;
         for (const ordered_json& tokens : at.document().at("output_tokens")) sum += tokens.size();
         return sum;
       }},
  };
  for (const char* given : {"/seed", "/vocab_size", "/drafts", "/draft_tokens", "/impossible_drafts/count", "/threads",
                            "/open_ms", "/verify_ms", "/consistency/?", "/num_draft_tokens/*", "/output_tokens/*/*"})
    rules[given] = {};
  return rules;
}

NumberRules rules_of_audit() {
  NumberRules rules = battery();
  for (const char* given : {"/alpha", "/tv_wanted", "/observations", "/groups", "/vocab_size", "/positions/*/reached",
                            "/positions/*/accepted", "/positions/*/expected_rate", "/positions/*/expected_by_rows",
                            "/string_tokens", "/string_tokens_max", "/anytime_log10_wealth", "/read_ms", "/audit_ms"})
    rules[given] = {};
  rules["/detectable_tv"] = least_detectable_tv;
  rules["/string_detectable_tv"] = string_detectable_tv;
  rules["/positions/*/rate"] = ratio_of("accepted", "reached");
  rules["/positions/*/interval/*"] = [](const Place& at) { return clopper_pearson_end(at, "accepted", "reached"); };
  return rules;
}

NumberRules rules_of_self_test() {
  return {{"/batteries", {}},
          {"/alpha", {}},
          {"/accused", {}},
          {"/impossible", {}},
          {"/tests/*/count", {}},
          {"/tests/*/ks_distance", {}},
          {"/tests/*/below_alpha", {}},
          {"/tests/*/ks_p_value",
           [](const Place& at) {
             return kolmogorov_p_value(count(at.container(), "count"), number(at.container(), "ks_distance"));
           }},
          {"/accused_share", ratio_of("accused", "batteries")},
          {"/accused_interval/*", [](const Place& at) { return clopper_pearson_end(at, "accused", "batteries"); }},
          // Holm's first step is the least of all.
          {"/least_ks_p_value_holm", [](const Place& at) {
             double least = 1.0;
             const ordered_json& tests = at.document().at("tests");
             for (const ordered_json& test : tests) least = std::min(least, number(test, "ks_p_value"));
             return std::min(1.0, least * static_cast<double>(tests.size()));
           }}};
}

NumberRules rules_of_prove() {
  NumberRules rules{{"/as_claimed", [](const Place& at) {
                       const ordered_json& document = at.document();
                       return count_if(document.at("proofs"), "as_claimed", false) == 0 &&
                              count_if(document.at("claims"), "holds", false) == 0;
                     }}};
  for (const char* given : {"/vocab", "/draft", "/steps", "/seed", "/proofs/*/?",
                            "/proofs/*/counterexample/models_seed", "/proofs/*/counterexample/token",
                            "/proofs/*/counterexample/prefix/*", "/claims/*/instances", "/top_k_resample/*/?"})
    rules[given] = {};
  rules["/claims/*/holds"] = [](const Place& at) { return at.container().at("refutation").is_null(); };
  return rules;
}

NumberRules rules_of_bugs() {
  NumberRules rules{{"/killed", rows_with("rows", "killed", true)},
                    {"/total", number_of("rows")},
                    {"/waiting", number_of("waiting_rows")},
                    {"/controls_passed", rows_with("controls", "passes", true)},
                    {"/controls_total", number_of("controls")},
                    {"/twins_passed", rows_with("rows", "twin_passes", true)},
                    {"/rows/*/killed", [](const Place& at) { return !of_the_killer("caught")(at).is_null(); }},
                    {"/rows/*/cases", of_the_killer("cases")},
                    {"/rows/*/ms", of_the_killer("ms")},
                    {"/rows/*/twin_passes", no_hunt("sound")},
                    {"/controls/*/passes", no_hunt("finding")}};
  for (const char* given : {"/rows/*/hunts/*/ms", "/rows/*/hunts/*/faulty/?", "/rows/*/hunts/*/sound/?",
                            "/controls/*/hunts/*/ms", "/controls/*/hunts/*/finding/?"})
    rules[given] = {};
  add_usual_tests("/rows/*", rules);
  add_usual_tests("/controls/*", rules);
  return rules;
}

NumberRules rules_of_soak() {
  NumberRules rules = battery();
  for (const char* given : {"/vocab", "/draft", "/seed", "/threads", "/alpha", "/cells", "/acceptance_length",
                            "/acceptance_length_expected", "/looks/*/trials", "/looks/*/log10_wealth", "/ms"})
    rules[given] = {};
  rules["/trials"] = [](const Place& at) { return at.document().at("looks").back().at("trials"); };
  rules["/trials_per_s"] = ratio_of("trials", "ms", 1e3);
  return rules;
}

NumberRules rules_of_bench() {
  NumberRules rules{{"/results/*/ns_per_element", ratio_of("ms", "elements", 1e6)},
                    {"/results/*/gb_per_s", ratio_of("bytes", "ms", 1e-6)},
                    {"/results/*/ratio_to_bandwidth", ratio_to_bandwidth},
                    {"/results/*/ratio_to_mass_pass", ratio_of("ms", "mass_pass_ms")},
                    {"/results/*/ratio_to_one_row", ratio_of("ms", "one_row_ms")},
                    {"/results/*/ratio_to_pytorch", ratio_of("pytorch_ms", "ms")},
                    {"/results/*/ratio_to_llama_cpp", ratio_of("llama_cpp_ms", "ms")},
                    {"/results/*/met", meets_goal}};
  for (const char* given : {"threads", "ms", "ms_median", "elements", "bytes", "mass_pass_ms", "one_row_ms",
                            "pytorch_ms", "llama_cpp_ms", "acceptance_length"})
    rules[std::string("/results/*/") + given] = {};
  return rules;
}

// A count of a row is the sum of its requests'.
Formula sum_of_requests(const char* key) {
  return [key](const Place& at) {
    std::int64_t sum = 0;
    for (const ordered_json& request : at.container().at("requests")) sum += count(request, key);
    return ordered_json(sum);
  };
}

NumberRules rules_of_speculate() {
  NumberRules rules{{"/rows/*/acceptance_length",
                     [](const Place& at) {
                       const ordered_json mean = ratio(at.container().at("accepted"), at.container().at("drafts"));
                       return mean.is_null() ? mean : ordered_json(1.0 + mean.get<double>());
                     }},
                    {"/rows/*/tokens_per_step", ratio_of("tokens", "steps")},
                    {"/rows/*/equal", [](const Place& at) {
                       return at.container().at("equal").is_null()
                                  ? ordered_json()
                                  : ordered_json(at.container().at("difference").is_null());
                     }}};
  for (const char* given :
       {"/settings/?", "/rows/*/?", "/rows/*/acceptance_by_position/conditional/*",
        "/rows/*/acceptance_by_position/unconditional/*", "/rows/*/acceptance_by_position/conditional_standard_error/*",
        "/rows/*/acceptance_by_position/unconditional_standard_error/*", "/rows/*/acceptance_by_rank/*",
        "/rows/*/requests/*/?"})
    rules[given] = {};
  for (const char* const key : {"plain_tokens", "tokens", "steps", "drafts", "draft_tokens"})
    rules[std::string("/rows/*/") + key] = sum_of_requests(key);
  return rules;
}

NumberRules rules_of_regress() {
  NumberRules rules{{"/equal", rows_with("rows", "verdict", "equal")},
                    {"/different", rows_with("rows", "verdict", "different")},
                    {"/skipped", rows_with("rows", "verdict", "skipped")}};
  for (const char* given : {"/seconds", "/rows/*/block_threads", "/rows/*/seconds"}) rules[given] = {};
  return rules;
}

}  // namespace

const NumberRules& number_rules(const std::string& command) {
  static const std::map<std::string, NumberRules> rules = [] {
    std::map<std::string, NumberRules> all{{"demo", rules_of_demo()},           {"verify", rules_of_verify()},
                                           {"audit", rules_of_audit()},         {"prove", rules_of_prove()},
                                           {"bugs", rules_of_bugs()},           {"soak", rules_of_soak()},
                                           {"bench", rules_of_bench()},         {"regress", rules_of_regress()},
                                           {"self-test", rules_of_self_test()}, {"speculate", rules_of_speculate()}};
    for (auto& [command_of, more] : all)
      for (const char* given : {"/machine/logical_cores", "/machine/memory_bytes"}) more[given] = {};
    return all;
  }();
  return rules.at(command);
}

}  // namespace draftproof::testing
