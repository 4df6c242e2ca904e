// The distribution lab's snapshot as JSON, table, figure and command line.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <sstream>

#include "base/error.hpp"
#include "base/json_values.hpp"
#include "base/split.hpp"
#include "exactness/statistics/distribution_check.hpp"
#include "studies/figures/figure.hpp"
#include "studies/lab/distribution_lab.hpp"
#include "studies/palette.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

const LabBug* lab_bug_of(const std::string& id) {
  for (const LabBug& bug : lab_bugs())
    if (bug.id == id) return &bug;
  return nullptr;
}

template <class Number>
std::string text_of_number(Number value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

std::string text_of_row(const std::vector<double>& row) {
  return joined(row, ",", [](double x) { return text_of_number(x); });
}

Json json_of_test(const LabLook& look) {
  const ChiSquaredTest& test = look.test;
  return {{"statistic", test.statistic},     {"degrees_of_freedom", test.df},
          {"p_value", test.p_value},         {"impossible_token", or_null(test.impossible_cell)},
          {"observed_tv", look.observed_tv}, {"detectable_tv", look.detectable_tv}};
}

Json json_of_bug(const std::string& id) {
  const LabBug* bug = lab_bug_of(id);
  if (bug == nullptr) return nullptr;
  return {{"id", bug->id}, {"source", bug->source}, {"fault", bug->fault}, {"caught_by", bug->detectors}};
}

Json json_of_verifier(const std::string& text) {
  if (text.empty()) return nullptr;
  const VerifierInfo& info = parse_verifier(text, "the snapshot").info();
  return {{"name", text},
          {"draft", std::string(name_of(info.draft))},
          {"proposal", std::string(name_of(info.proposal))},
          {"lossless", info.lossless}};
}

}  // namespace

Json to_json(const DistributionLabSnapshot& snapshot) {
  const DistributionLabSettings& s = snapshot.settings;
  Json json;
  json["vocab"] = s.target.size();
  json["weights"] = {{"target", s.target},
                     {"draft", s.draft},
                     {"unconditional", s.unconditional.empty() ? Json(nullptr) : Json(s.unconditional)}};
  json["parameters"] = {{"temperature", s.temperature},
                        {"top_k", s.top_k},
                        {"top_p", s.top_p},
                        {"min_p", s.min_p},
                        {"guidance_scale", s.guidance_scale},
                        {"guidance_form", s.guidance_form == GuidanceForm::logits ? "logits" : "probabilities"}};
  json["verifier"] = json_of_verifier(snapshot.verifier);
  json["draft_tokens"] = s.bug.empty() ? Json(s.draft_tokens) : Json(nullptr);
  json["bug"] = json_of_bug(s.bug);
  json["seed"] = s.seed;
  json["p"] = snapshot.p;
  json["q"] = snapshot.q;
  json["min_p_q"] = snapshot.overlap;
  json["residual"] = snapshot.residual;
  json["total_variation"] = snapshot.total_variation;
  json["acceptance"] = snapshot.acceptance;
  json["guidance_distance"] = nullptr;
  if (const auto& distance = snapshot.guidance_distance)
    json["guidance_distance"] = {{"target", or_null((*distance)[0])}, {"draft", or_null((*distance)[1])}};
  json["expected"] = snapshot.expected;
  json["samples"] = 0;
  json["level"] = kDistributionAlpha;
  json["power"] = kDistributionPower;
  json["counts"] = json["accepted_share"] = json["mean_accepted"] = json["test"] = nullptr;
  json["looks"] = json_list(snapshot.looks, [](const LabLook& look) {
    Json row{{"samples", look.samples}};
    row.update(json_of_test(look));
    return row;
  });
  if (!snapshot.looks.empty()) {
    const LabLook& last = snapshot.looks.back();
    json["samples"] = last.samples;
    json["counts"] = last.counts;
    if (snapshot.mean_accepted) {
      json["accepted_share"] = static_cast<double>(last.accepted) / static_cast<double>(last.samples);
      json["mean_accepted"] = *snapshot.mean_accepted;
    }
    json["test"] = json_of_test(last);
  }
  json["lossy"] = json_list(snapshot.lossy, [](const LossyRule& rule) -> Json {
    return {{"verifier", rule.verifier}, {"accepted_per_step", rule.accepted}, {"distance", rule.distance}};
  });
  json["verdict"] = std::string(name_of(snapshot.verdict));
  json["sentence"] = snapshot.sentence;
  return json;
}

Table to_table(const DistributionLabSnapshot& snapshot) {
  Table table{{"token", "p", "q", "min_p_q", "residual", "expected", "count", "share"}, {}};
  for (std::size_t i = 0; i < snapshot.p.size(); ++i) {
    const std::int64_t count = snapshot.looks.empty() ? 0 : snapshot.looks.back().counts[i];
    const double n = snapshot.looks.empty() ? 1.0 : static_cast<double>(snapshot.looks.back().samples);
    table.rows.push_back({static_cast<std::int64_t>(i), snapshot.p[i], snapshot.q[i], snapshot.overlap[i],
                          snapshot.residual[i], snapshot.expected[i], count, static_cast<double>(count) / n});
  }
  return table;
}

std::string to_figure(const DistributionLabSnapshot& snapshot) {
  // Columns: token, p, the larger of p and q, min(p, q), share emitted, two standard errors of that.
  std::ostringstream script;
  script << "$rows << EOD\n";
  const bool is_sampled = !snapshot.looks.empty();
  const double n = is_sampled ? static_cast<double>(snapshot.looks.back().samples) : 1.0;
  for (std::size_t i = 0; i < snapshot.p.size(); ++i) {
    const double share = is_sampled ? static_cast<double>(snapshot.looks.back().counts[i]) / n : 0.0;
    const double expected = snapshot.expected[i];
    script << i;
    for (const double value : {snapshot.p[i], std::max(snapshot.p[i], snapshot.q[i]), snapshot.overlap[i], share,
                               2.0 * std::sqrt(expected * std::max(0.0, 1.0 - expected) / n)})
      script << ' ' << text_of_number(value);
    script << '\n';
  }
  script << "EOD\n";
  const std::string title = snapshot.sentence.empty() ? "p = min(p, q) + redistributed mass" : snapshot.sentence;
  // The picture of the window: the lowest piece is drawn last, over the others.
  script << "set title " << gnuplot_quoted(title) << "\n"
         << "set style fill solid noborder\nset boxwidth 0.67\nset key below\nset xlabel 'token'\n"
         << "set ylabel 'probability'\nset yrange [0:*]\nset xrange [-0.6:" << snapshot.p.size() << " - 0.4]\n"
         << "set xtics " << (snapshot.p.size() > 16 ? 4 : 1) << " nomirror\n"
         << "plot $rows using 1:3 with boxes title 'rejected, q above p' lc rgb '" << palette::kRejected.hex
         << "', \\\n"
         << "     $rows using 1:2 with boxes title 'redistributed, p above q' lc rgb '" << palette::kRecovered.hex
         << "', \\\n"
         << "     $rows using 1:4 with boxes title 'accepted, min(p, q)' lc rgb '" << palette::kAccepted.hex
         << "', \\\n"
         << "     $rows using 1:2 with points pt 5 ps 0.7 lc rgb '" << palette::kTarget.hex << "' title 'p'";
  if (is_sampled)
    script << ", \\\n     $rows using ($1 + 0.2):5:6 with yerrorbars pt 7 ps 0.6 lw 1.5 lc rgb '"
           << palette::kPurple.hex << "' title 'emitted, 2 standard errors'";
  script << "\n";
  return script.str();
}

std::vector<std::string> command_arguments(const DistributionLabSettings& settings) {
  const DistributionLabSettings standard;
  std::vector<std::string> arguments{
      "draftproof", "lab", "--target", text_of_row(settings.target), "--draft", text_of_row(settings.draft)};
  const auto add = [&](const char* option, const std::string& value) {
    arguments.insert(arguments.end(), {option, value});
  };
  if (!settings.unconditional.empty()) add("--unconditional", text_of_row(settings.unconditional));
  if (settings.temperature != standard.temperature) add("--temperature", text_of_number(settings.temperature));
  if (settings.top_k != standard.top_k) add("--top-k", text_of_number(settings.top_k));
  if (settings.top_p != standard.top_p) add("--top-p", text_of_number(settings.top_p));
  if (settings.min_p != standard.min_p) add("--min-p", text_of_number(settings.min_p));
  if (settings.guidance_scale != standard.guidance_scale) add("--cfg-scale", text_of_number(settings.guidance_scale));
  if (settings.guidance_form != standard.guidance_form) add("--guidance-form", "probabilities");
  if (settings.bug.empty()) {
    add("--verifier", settings.verifier);
    add("--num-speculative-tokens", text_of_number(settings.draft_tokens));
  } else {
    add("--bug", settings.bug);
  }
  add("--samples", text_of_number(settings.samples));
  add("--seed", text_of_number(settings.seed));
  if (settings.lossy) arguments.emplace_back("--lossy");
  return arguments;
}

}  // namespace draftproof
