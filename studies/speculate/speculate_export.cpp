// Numbers of the panel "Speculate" for others: JSON with the keys of `draftproof generate --json`, a row a step for
// CSV, the two lanes as a figure, and the command line that prints the same tokens.
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/metrics/acceptance_json.hpp"
#include "studies/figures/figure.hpp"
#include "studies/palette.hpp"
#include "studies/speculate/speculate.hpp"
#include "studies/speculate/speculate_request.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(bool known, double value) {
  return known ? Json(value) : Json(nullptr);
}

Json requests_json(const SpeculateSettings& settings, const SpeculateLane& lane, bool speculates) {
  Json list = Json::array();
  for (const Generation& output : lane.outputs) {
    const AcceptanceCounts& counts = output.acceptance;
    const bool drafted = speculates && counts.drafts > 0;
    Json json;
    json["prompt"] = settings.prompt;
    json["prompt_tokens"] = lane.num_prompt_tokens;
    json["text"] = output.text;
    json["tokens"] = output.tokens;
    json["finish_reason"] = detail_name(output.finish_reason);
    json["num_steps"] = output.target_steps;
    json["acceptance_length"] =
        drafted ? Json(1.0 + static_cast<double>(counts.accepted_tokens) / static_cast<double>(counts.drafts))
                : Json(nullptr);
    list.push_back(std::move(json));
  }
  return list;
}

double share(const SpeculateLane& lane, std::int64_t SpeculateStep::*part) {
  std::int64_t sum = 0;
  for (const auto& step : lane.steps) sum += (*step).*part;
  return lane.time_ns() > 0 ? static_cast<double>(sum) / static_cast<double>(lane.time_ns()) : 0.0;
}

// Both lanes have these.
void add_lane(Json& json, const SpeculateSettings& settings, const SpeculateLane& lane, bool speculates) {
  json["requests"] = requests_json(settings, lane, speculates);
  json["tokens"] = lane.tokens();
  json["generation_ms"] = ms(lane.time_ns());
  json["tokens_per_second"] = or_null(lane.time_ns() > 0, lane.tokens_per_second());
  json["drafter_share"] = share(lane, &SpeculateStep::draft_ns);
  json["target_share"] = share(lane, &SpeculateStep::verify_ns) + share(lane, &SpeculateStep::prefill_ns);
}

Json step_json(const SpeculateStep& step) {
  Json json;
  json["begin_ms"] = ms(step.begin_ns);
  json["end_ms"] = ms(step.end_ns);
  json["draft_ms"] = ms(step.draft_ns);
  json["prefill_ms"] = ms(step.prefill_ns);
  json["verify_ms"] = ms(step.verify_ns);
  json["sample_ms"] = ms(step.sample_ns);
  json["rows"] = step.num_rows;
  Json nodes = Json::array();
  for (const ShownNode& node : step.draft)
    nodes.push_back({{"token", node.token},
                     {"parent", node.parent},
                     {"draft_probability", or_null(node.has_draft_probability, node.draft_probability)},
                     {"target_probability", node.target_probability},
                     {"accepted", node.accepted}});
  json["draft"] = std::move(nodes);
  json["tokens"] = Json::array();
  json["origins"] = Json::array();
  for (const ShownToken& token : step.emitted) {
    json["tokens"].push_back(token.token);
    json["origins"].push_back(name_of(token.origin));
  }
  return json;
}

void add_spans(std::ostream& out, const SpeculateLane& lane, int row) {
  for (const auto& step : lane.steps) {
    std::int64_t at = step->begin_ns;
    const auto span = [&](std::int64_t ns, std::size_t kind) {
      if (ns > 0) out << ms(at) << ' ' << row << ' ' << ms(at + ns) << ' ' << kind << '\n';
      at += ns;
    };
    span(step->draft_ns, 0);
    span(step->prefill_ns, 1);
    span(step->verify_ns, 2);
    span(step->sample_ns, 3);
  }
}

}  // namespace

std::string_view name_of(TokenOrigin origin) {
  constexpr std::array<std::string_view, 4> kNames{"sampled", "accepted", "recovered", "bonus"};
  return kNames[static_cast<std::size_t>(origin)];
}

Json to_json(const SpeculateSnapshot& snapshot) {
  const SpeculateSettings& settings = snapshot.settings;
  Json json;
  json["model"] = snapshot.model;
  json["arithmetic"] = snapshot.arithmetic;
  json["drafter"] = settings.drafter;
  json["verifier"] = settings.verifier;
  json["tree"] = settings.tree.empty() ? Json(nullptr) : Json(settings.tree);
  add_lane(json, settings, snapshot.speculation, true);
  std::vector<AcceptanceCounts> clusters;
  for (const Generation& output : snapshot.speculation.outputs) clusters.push_back(output.acceptance);
  if (clusters.empty())
    clusters.push_back(snapshot.speculation.steps.empty() ? AcceptanceCounts()
                                                          : snapshot.speculation.steps.back()->acceptance);
  const AcceptanceMetrics metrics = acceptance_metrics(clusters);
  json["acceptance_length"] = metrics.acceptance_length;
  json["acceptance_by_position"] = acceptance_by_position_json(metrics);
  Json plain;
  add_lane(plain, settings, snapshot.plain, false);
  json["plain"] = std::move(plain);
  json["speedup"] = or_null(snapshot.speedup() > 0.0, snapshot.speedup());
  json["agree"] = snapshot.agree;
  json["must_agree"] = snapshot.must_agree;
  json["steps"] = Json::array();
  for (const auto& step : snapshot.speculation.steps) json["steps"].push_back(step_json(*step));
  return json;
}

Table to_table(const SpeculateSnapshot& snapshot) {
  Table table;
  table.columns = {"lane",      "step",        "begin_ms",     "end_ms",   "draft_ms", "prefill_ms",  "verify_ms",
                   "sample_ms", "target_rows", "draft_tokens", "accepted", "emitted",  "emitted_text"};
  const auto add = [&](const char* name, const SpeculateLane& lane) {
    for (std::size_t i = 0; i < lane.steps.size(); ++i) {
      const SpeculateStep& step = *lane.steps[i];
      std::string text;
      for (const ShownToken& token : step.emitted) text += token.text;
      table.rows.push_back({std::string(name), static_cast<std::int64_t>(i), ms(step.begin_ns), ms(step.end_ns),
                            ms(step.draft_ns), ms(step.prefill_ns), ms(step.verify_ns), ms(step.sample_ns),
                            std::int64_t{step.num_rows}, static_cast<std::int64_t>(step.draft.size()),
                            static_cast<std::int64_t>(step.path.size()), static_cast<std::int64_t>(step.emitted.size()),
                            std::move(text)});
    }
  };
  add("plain", snapshot.plain);
  add("speculation", snapshot.speculation);
  return table;
}

std::string to_figure(const SpeculateSnapshot& snapshot) {
  // Columns: begin, lane, end, kind of span.
  std::ostringstream script;
  script << "$spans << EOD\n";
  add_spans(script, snapshot.plain, 1);
  add_spans(script, snapshot.speculation, 0);
  script << "EOD\n";
  std::ostringstream title;
  title.precision(3);
  title << snapshot.model << ", drafter " << snapshot.settings.drafter << ": "
        << snapshot.speculation.tokens_per_second() << " tokens/s with speculation, "
        << snapshot.plain.tokens_per_second() << " without";
  script << "set title " << gnuplot_quoted(title.str()) << "\n"
         << "set xlabel 'time / ms'\nset yrange [-0.6:1.6]\nset ytics ('speculation' 0, 'plain' 1) scale 0\n"
         << "set key outside top center horizontal\nset style fill solid noborder\nplot ";
  struct Kind {
    const char* name;
    PaletteColour colour;
  };
  const std::array kinds{Kind{"draft", palette::kDraft}, Kind{"prefill", palette::kPrefill},
                         Kind{"verify", palette::kVerify}, Kind{"sample", palette::kSample}};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    script << (kind == 0 ? "" : ", ") << "$spans using ($4==" << kind
           << "?$1:NaN):2:1:3:($2-0.35):($2+0.35) with boxxyerror lc rgb '" << kinds[kind].colour.hex << "' title '"
           << kinds[kind].name << "'";
  script << "\n";
  return script.str();
}

std::vector<std::string> command_arguments(const SpeculateSettings& settings) {
  const SpeculateSettings plain;
  const auto shortest = [](double value) { return Json(value).dump(); };
  // In one word where the value would be taken for an option.
  std::vector<std::string> arguments{"draftproof", "generate", "--model", settings.model};
  const auto text = [&](const std::string& option, const std::string& value) {
    if (value.starts_with('-')) {
      arguments.push_back(option + "=" + value);
    } else {
      arguments.insert(arguments.end(), {option, value});
    }
  };
  text("--prompt", settings.prompt);
  if (settings.chat) arguments.emplace_back("--chat");
  if (settings.outputs != plain.outputs)
    arguments.insert(arguments.end(),
                     {"--outputs", std::to_string(settings.outputs), "--batch", std::to_string(settings.outputs)});
  arguments.insert(arguments.end(), {"--max-tokens", std::to_string(settings.max_tokens)});
  if (settings.ignore_eos) arguments.emplace_back("--ignore-eos");
  arguments.insert(arguments.end(), {"--temperature", shortest(settings.temperature)});
  if (settings.top_p != plain.top_p) arguments.insert(arguments.end(), {"--top-p", shortest(settings.top_p)});
  if (settings.top_k != plain.top_k) arguments.insert(arguments.end(), {"--top-k", std::to_string(settings.top_k)});
  if (settings.min_p != plain.min_p) arguments.insert(arguments.end(), {"--min-p", shortest(settings.min_p)});
  if (settings.cfg_scale != plain.cfg_scale) {
    arguments.insert(arguments.end(), {"--cfg-scale", shortest(settings.cfg_scale)});
    if (!settings.negative_prompt.empty()) text("--negative-prompt", settings.negative_prompt);
  }
  arguments.insert(arguments.end(), {"--drafter", settings.drafter, "--verifier", settings.verifier});
  if (!settings.tree.empty()) arguments.insert(arguments.end(), {"--tree", settings.tree});
  arguments.insert(arguments.end(), {"-k", std::to_string(settings.num_speculative_tokens)});
  try {
    arguments.insert(arguments.end(), {"--policy", text_of(speculation_of(settings))});
  } catch (const Error&) {  // the command itself says what is wrong with the draft
  }
  if (settings.seed != plain.seed) arguments.insert(arguments.end(), {"--seed", std::to_string(settings.seed)});
  if (settings.threads != plain.threads)
    arguments.insert(arguments.end(), {"--threads", std::to_string(settings.threads)});
  return arguments;
}

}  // namespace draftproof
