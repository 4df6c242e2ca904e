#include "studies/lab/distribution_lab.hpp"

#include "exactness/statistics/binomial_interval.hpp"
#include "exactness/statistics/distribution_check.hpp"
#include "studies/figures/figure.hpp"
#include "studies/job.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

using nlohmann::json;

namespace {

// The golden pair of this project's tests: its numbers are known as fractions.
DistributionLabSettings golden_pair() {
  DistributionLabSettings settings;
  settings.target = {0.5, 0.3, 0.2};
  settings.draft = {0.2, 0.3, 0.5};
  return settings;
}

DistributionLabSnapshot sampled(const DistributionLabSettings& settings) {
  return last_snapshot<DistributionLabSnapshot>(settings);
}

double p_value_of(const DistributionLabSnapshot& snapshot) {
  return snapshot.looks.back().test.p_value;
}

}  // namespace

TEST_CASE("the lab's numbers of the golden pair are the fractions worked out by hand") {
  // p = (1/2, 3/10, 1/5), q reversed: TV 3/10, acceptance 7/10, all of the residual on token 0.
  const DistributionLabSnapshot rows = rows_of(golden_pair());
  CHECK(rows.total_variation == Approx(0.3).margin(1e-6));
  CHECK(rows.acceptance == Approx(0.7).margin(1e-6));
  CHECK(rows.residual[0] == 1.0);
  CHECK(rows.residual[1] == Approx(0.0).margin(1e-6));
  CHECK(rows.residual[2] == 0.0);
  // p = (2/5, 2/5, 1/5, 0), q = (1/10, 1/5, 3/10, 2/5): TV 1/2, a residual on two tokens.
  DistributionLabSettings four;
  four.target = {4.0, 4.0, 2.0, 0.0};
  four.draft = {1.0, 2.0, 3.0, 4.0};
  CHECK(rows_of(four).total_variation == Approx(0.5).margin(1e-6));
  CHECK(rows_of(four).acceptance == Approx(0.5).margin(1e-6));
  CHECK(rows_of(four).residual[0] == Approx(0.6).margin(1e-6));
  CHECK(rows_of(four).residual[1] == Approx(0.4).margin(1e-6));
  // Temperature 1/2 squares, guidance 2 against a uniform row squares too; top-p 0.8 drops the last token of p.
  DistributionLabSettings squared = golden_pair();
  squared.temperature = 0.5f;
  CHECK(rows_of(squared).p[0] == Approx(0.25 / 0.38).margin(1e-6));
  DistributionLabSettings guided = golden_pair();
  guided.guidance_scale = 2.0f;
  CHECK(rows_of(guided).p[0] == Approx(0.25 / 0.38).margin(1e-6));
  DistributionLabSettings nucleus = golden_pair();
  nucleus.top_p = 0.75f;
  CHECK(rows_of(nucleus).p[2] == 0.0);
  CHECK(rows_of(nucleus).p[0] == Approx(0.625).margin(1e-6));
  CHECK(rows_of(nucleus).q[2] == Approx(0.625).margin(1e-6));
}

TEST_CASE("samples of every verifier of the registry follow p where it is lossless, with the verdict that says so") {
  std::int64_t lossless = 0;
  std::int64_t refuted = 0;
  for (const VerifierInfo& info : verifiers()) {
    DistributionLabSettings settings = golden_pair();
    settings.verifier = std::string(info.name);
    settings.draft_tokens = 2;
    if (info.verifier == Verifier::top_k_resample) settings.verifier += ":k=1";
    if (info.verifier == Verifier::thresholds) settings.verifier += ":acc=0.5,single=0.5";
    settings.samples = 8000;
    const DistributionLabSnapshot snapshot = sampled(settings);
    CAPTURE(settings.verifier, snapshot.sentence);
    CHECK(snapshot.expected == snapshot.p);
    CHECK(snapshot.looks.back().samples == 8000);
    if (info.lossless) {
      CHECK(follows(snapshot.looks.back().counts, snapshot.p, 13));
      CHECK(snapshot.verdict == LabVerdict::consistent);
      CHECK(p_value_of(snapshot) >= kDistributionAlpha);
      ++lossless;
    } else {
      refuted += snapshot.verdict == LabVerdict::biased;
    }
  }
  CHECK(lossless == 14);
  CHECK(refuted >= 3);  // what a lossy verifier does to the first token depends on p and q
}

TEST_CASE("the measured acceptance of the lab is the one worked out elsewhere") {
  // Golden table of fractions for p = (1/2, 3/10, 1/5), q reversed, and two siblings.
  const std::vector<std::tuple<std::string, std::int32_t, double>> golden{
      {"chain", 1, 7.0 / 10}, {"rrs", 2, 19.0 / 25}, {"rrsw", 2, 41.0 / 50}, {"greedy_draft", 2, 9.0 / 10}};
  for (const auto& [verifier, draft_tokens, probability] : golden) {
    DistributionLabSettings settings = golden_pair();
    settings.verifier = verifier;
    settings.draft_tokens = draft_tokens;
    const DistributionLabSnapshot snapshot = sampled(settings);
    const LabLook& look = snapshot.looks.back();
    const Interval interval = clopper_pearson(look.accepted, look.samples, 1.0 - suite_level(4));
    CAPTURE(verifier, look.accepted);
    CHECK(interval.low < probability);
    CHECK(probability < interval.high);
  }
  DistributionLabSettings block = golden_pair();
  block.verifier = "block";
  block.draft_tokens = 2;
  CHECK(sampled(block).mean_accepted.value() == Approx(1.25).margin(0.05));
}

TEST_CASE("guidance of probabilities in the lab states its distance, and the exact form none") {
  DistributionLabSettings settings;  // rows of bug B104
  settings.target = {0.6, 0.4, 0, 0};
  settings.draft = {0.4, 0.6, 0, 0};
  settings.unconditional = {0.2, 0.4, 0, 0.4};
  settings.guidance_scale = 2.0f;
  const DistributionLabSnapshot exact = rows_of(settings);
  CHECK(exact.p[2] == 0.0);
  CHECK(to_json(exact).at("guidance_distance").is_null());
  settings.guidance_form = GuidanceForm::probabilities;
  const DistributionLabSnapshot floored = rows_of(settings);
  CHECK(floored.p[2] == Approx(1e-10 / 2.2).epsilon(1e-3));
  const auto distance = to_json(floored).at("guidance_distance");
  CHECK(distance.at("target").get<double>() == Approx(9.917355e-11).epsilon(1e-4));
  CHECK(distance.at("draft").get<double>() > 0.0);
  const std::vector<std::string> command = command_arguments(settings);
  CHECK(std::find(command.begin(), command.end(), "--guidance-form") != command.end());
}

TEST_CASE("lossy rules in the lab accept and pay what is worked out by hand") {
  DistributionLabSettings settings = golden_pair();
  settings.lossy = true;
  const DistributionLabSnapshot snapshot = sampled(settings);
  std::map<std::string, LossyRule> rules;
  for (const LossyRule& rule : snapshot.lossy) rules[rule.verifier] = rule;
  CHECK(rules.size() == kComparedLossyRules.size());
  // TV 3/10: an ensemble of weight w accepts 1 - 3w/10 and is off by 3(1 - w)/10. Of 3 tokens accept_k takes all: q.
  const std::vector<std::tuple<std::string, double, double>> golden{{"chain", 0.7, 0.0},
                                                                    {"ensemble:weight=0.9", 0.73, 0.03},
                                                                    {"ensemble:weight=0.5", 0.85, 0.15},
                                                                    {"accept_k", 1.0, 0.3},
                                                                    {"synthetic:rate=0.7", 0.7, 0.21},
                                                                    {"fly:window=1", 0.7, 0.0},
                                                                    {"thresholds", 29.0 / 90, 2.0 / 525}};
  for (const auto& [rule, accepted, distance] : golden) {
    CAPTURE(rule);
    CHECK(rules.at(rule).accepted == Approx(accepted).margin(0.04));
    CHECK(rules.at(rule).distance == Approx(distance).margin(1e-5));
  }
  // Two drafts: chain 0.7 + 0.49, accept_k both.
  settings.draft_tokens = 2;
  const DistributionLabSnapshot two = sampled(settings);
  CHECK(two.lossy.front().accepted == Approx(1.19).margin(0.06));
  CHECK(to_json(two).at("lossy").size() == rules.size());
  settings.lossy = false;
  CHECK(sampled(settings).lossy.empty());
}

TEST_CASE("a bug in the lab is found biased, and the same rows without it consistent") {
  DistributionLabSettings settings;
  CHECK(sampled(settings).verdict == LabVerdict::consistent);
  for (const char* const id : {"B01", "B03", "B06", "B07", "B10", "B20", "B27", "B28", "B37", "B38", "B43/45"}) {
    settings.bug = id;
    const DistributionLabSnapshot snapshot = sampled(settings);
    CAPTURE(std::string(id), snapshot.sentence);
    CHECK(p_value_of(snapshot) < kDistributionAlpha);
    CHECK(snapshot.verdict == LabVerdict::biased);
    CHECK(snapshot.looks.back().observed_tv > 0.0);
  }
  // A coin whose ends are wrong once in 2^24 draws takes another detector: the lab says what it cannot see.
  settings.bug = "B18";
  CHECK(sampled(settings).verdict == LabVerdict::consistent);
  std::set<std::string> ids;
  for (const LabBug& bug : lab_bugs()) CHECK(ids.insert(bug.id).second);
  CHECK(ids.size() >= 20);
}

TEST_CASE("a bug of the filters is biased where its filter is on, and follows the pipeline where it is not") {
  const auto verdict_of = [](const char* bug, auto change) {
    DistributionLabSettings settings;
    settings.bug = bug;
    change(settings);
    const DistributionLabSnapshot snapshot = sampled(settings);
    for (std::size_t i = 0; i < snapshot.p.size(); ++i)
      CHECK(snapshot.expected[i] == Approx(snapshot.p[i]).margin(1e-6));
    return snapshot.verdict;
  };
  const auto nothing = [](DistributionLabSettings&) {};
  const auto top_p = [](DistributionLabSettings& s) { s.top_p = 0.8f; };
  CHECK(verdict_of("B51", nothing) == LabVerdict::consistent);
  CHECK(verdict_of("B51", top_p) == LabVerdict::biased);
  CHECK(verdict_of("B62", nothing) == LabVerdict::biased);  // top_k = 0 is off
  CHECK(verdict_of("B62", [](DistributionLabSettings& s) { s.top_k = 3; }) == LabVerdict::consistent);
  CHECK(verdict_of("B64", top_p) == LabVerdict::consistent);  // at temperature 1
  CHECK(verdict_of("B64", [](DistributionLabSettings& s) {
          s.top_p = 0.8f;
          s.temperature = 0.5f;
          s.guidance_scale = 1.5f;
        }) == LabVerdict::biased);
  DistributionLabSettings greedy;
  greedy.bug = "B51";
  greedy.temperature = 0.0f;
  CHECK(error_of(ErrorKind::usage, [&] { sampled(greedy); }) ==
        "--bug: B51 is a fault of the filters; expected a temperature above 0");
}

TEST_CASE("every bug of the lab draws tokens of any p and q, zeros, equal and disjoint rows among them") {
  for (const LabBug& bug : lab_bugs()) {
    for (const auto& [target, draft] : std::vector<std::pair<std::vector<double>, std::vector<double>>>{
             {{1.0, 0.0, 3.0}, {0.0, 2.0, 1.0}}, {{1.0, 2.0, 1.0}, {1.0, 2.0, 1.0}}, {{1.0, 0.0}, {0.0, 1.0}}}) {
      DistributionLabSettings settings;
      settings.target = target;
      settings.draft = draft;
      settings.bug = bug.id;
      settings.samples = 300;
      CAPTURE(bug.id);
      CHECK(sampled(settings).looks.back().samples == 300);
    }
  }
}

TEST_CASE("the same settings give the same snapshot, and looks grow up to all samples") {
  DistributionLabSettings settings = golden_pair();
  settings.samples = 5000;
  settings.seed = 9;
  CHECK(to_json(sampled(settings)) == to_json(sampled(settings)));
  const DistributionLabSnapshot snapshot = sampled(settings);
  REQUIRE(snapshot.looks.size() > 10);
  for (std::size_t i = 1; i < snapshot.looks.size(); ++i)
    CHECK(snapshot.looks[i].samples > snapshot.looks[i - 1].samples);
  CHECK(snapshot.looks.front().detectable_tv > snapshot.looks.back().detectable_tv);
  settings.samples = 1;
  CHECK(sampled(settings).looks.size() == 1);
}

TEST_CASE("a cancelled lab ends without a verdict") {
  Job job;
  job.cancel();
  int published = 0;
  CHECK_THROWS_AS(compute(golden_pair(), job, [&](DistributionLabSnapshot) { ++published; }), Cancelled);
  CHECK(published == 1);  // the rows
}

TEST_CASE("a bar that is dragged takes its probability from the others in proportion") {
  const std::vector<double> row = with_probability({0.5, 0.3, 0.2}, 0, 0.75);
  CHECK(row[0] == 0.75);
  CHECK(row[1] == Approx(0.15).epsilon(1e-14));
  CHECK(row[2] == Approx(0.10).epsilon(1e-14));
  CHECK(with_probability({1.0, 0.0, 0.0}, 0, 0.5) == std::vector<double>{0.5, 0.25, 0.25});
  CHECK(with_probability({0.5, 0.5}, 1, 2.0) == std::vector<double>{0.0, 1.0});
  const std::vector<double> by_logit = with_logit({0.5, 0.5}, 0, std::log(1.5));
  CHECK(by_logit[0] == Approx(0.75).epsilon(1e-14));
  CHECK(by_logit[1] == Approx(0.25).epsilon(1e-14));
}

TEST_CASE("settings that have no rows are refused by the name of their option") {
  const auto refusal = [](auto change) {
    DistributionLabSettings settings = golden_pair();
    change(settings);
    return error_of(ErrorKind::usage, [&] { sampled(settings); });
  };
  using Settings = DistributionLabSettings;
  CHECK(refusal([](Settings& s) { s.target = {1.0}; }) == "--target: has 1 weights; expected 2 to 32");
  CHECK(refusal([](Settings& s) { s.draft = {1.0, 1.0}; }) == "--draft: has 2 weights; expected 3, as --target has");
  CHECK(refusal([](Settings& s) { s.draft[1] = -1.0; }) ==
        "--draft: has the weight -1; expected finite numbers from 0");
  CHECK(refusal([](Settings& s) { s.target = {0.0, 0.0, 0.0}; }).find("--target: has the sum 0") == 0);
  CHECK(refusal([](Settings& s) { s.top_p = 1.5f; }).find("top_p is 1.5") != std::string::npos);
  CHECK(refusal([](Settings& s) { s.verifier = "none"; }).find("--verifier") == 0);
  CHECK(refusal([](Settings& s) { s.bug = "B99"; }).find("'B99' is not a bug of one step") != std::string::npos);
  CHECK(refusal([](Settings& s) { s.draft_tokens = 0; }) ==
        "--num-speculative-tokens: is 0; expected a whole number in [1, 8]");
}

TEST_CASE("draftproof lab prints the numbers of the snapshot, from the command line that the panel copies") {
  DistributionLabSettings settings = golden_pair();
  settings.temperature = 0.7f;
  settings.top_p = 0.95f;
  settings.samples = 3000;
  settings.seed = 5;
  const auto compare = [&](int exit_code) {
    const json printed = json::parse(printed_by(command_arguments(settings), exit_code).dump());
    const json snapshot = json::parse(to_json(sampled(settings)).dump());
    for (const auto& [key, value] : snapshot.items()) {
      CAPTURE(key);
      CHECK(printed.at(key) == value);
    }
    return printed;
  };
  CHECK(compare(0).at("verdict") == "consistent");
  settings.bug = "B27";
  CHECK(compare(0).at("verdict") == "biased");
  settings.bug.clear();
  settings.verifier = "synthetic:rate=1";
  CHECK(compare(0).at("verdict") == "biased");  // as it says itself: no failure
}

TEST_CASE("draftproof lab takes logits, and refuses what it cannot read") {
  const auto run = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "lab");
    return run_draftproof(arguments);
  };
  const ProgramResult logits =
      run({"--target", "0,0.6931471805599453", "--draft", "0,0", "--logits", "--samples", "100", "--json"});
  REQUIRE(logits.exit_code == 0);
  CHECK(json::parse(logits.out).at("p").at(1).get<double>() == Approx(2.0 / 3.0).margin(1e-6));
  CHECK(run({"--target", "0.5,x"}).err.find("--target: number 2 is 'x'; expected a number") != std::string::npos);
  CHECK(run({"--bug", "B27", "--verifier", "chain"}).exit_code == 2);
  const ProgramResult text = run({"--samples", "500"});
  CHECK(text.out.find("consistent: chi-squared") != std::string::npos);
}

TEST_CASE("the lab's table and figure hold every token") {
  DistributionLabSettings settings = golden_pair();
  settings.samples = 400;
  const DistributionLabSnapshot snapshot = sampled(settings);
  const Table table = to_table(snapshot);
  REQUIRE(table.rows.size() == 3);
  CHECK(std::get<std::int64_t>(table.rows[0][6]) == snapshot.looks.back().counts[0]);
  CHECK(to_csv(table).find("token,p,q,min_p_q") == 0);
  // The bars of a token with p = 0.5 and q = 0.2: up to the larger, to p, and to min(p, q).
  std::istringstream bars(to_figure(snapshot).substr(std::string("$rows << EOD\n").size()));
  for (const double expected : {0.0, 0.5, 0.5, 0.2}) {
    double found = -1.0;
    bars >> found;
    CHECK(found == Approx(expected).margin(1e-6));
  }
  CHECK(to_figure(snapshot).find("'emitted, 2 standard errors'") != std::string::npos);
  CHECK(to_figure(rows_of(settings)).find("emitted") == std::string::npos);
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  write_figure(folder.file("sampled.svg"), to_figure(snapshot));
  write_figure(folder.file("rows.svg"), to_figure(rows_of(settings)));
  CHECK(folder.file_names().size() == 2);
}
