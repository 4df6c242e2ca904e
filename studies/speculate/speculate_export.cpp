// Numbers of the panel "Speculate" for others: JSON with the keys of `draftproof generate --json`, a row a step for
// CSV, the two lanes as a figure, and the command line that prints the same tokens.
#include <array>
#include <sstream>

#include "base/json_values.hpp"
#include "engine/metrics/acceptance_json.hpp"
#include "studies/figures/figure.hpp"
#include "studies/palette.hpp"
#include "studies/speculate/speculate.hpp"
#include "studies/speculate/speculate_request.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json requests_json(const SpeculateSettings& settings, const SpeculateLane& lane, bool speculates) {
  return json_list(lane.outputs, [&](const Generation& output) {
    const bool drafted = speculates && output.acceptance.drafts > 0;
    Json json;
    json["prompt"] = settings.prompt;
    json["prompt_tokens"] = lane.num_prompt_tokens;
    json["text"] = output.text;
    json["tokens"] = output.tokens;
    json["finish_reason"] = detail_name(output.finish_reason);
    json["num_steps"] = output.target_steps;
    json["acceptance_length"] = drafted ? Json(output.acceptance.acceptance_length()) : Json(nullptr);
    json["tokens_per_step"] = speculates ? tokens_per_step_json({&output.acceptance, 1}) : Json(nullptr);
    return json;
  });
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
  json["tokens_per_second"] = lane.time_ns() > 0 ? Json(lane.tokens_per_second()) : Json(nullptr);
  json["drafter_share"] = share(lane, &SpeculateStep::draft_ns);
  json["target_share"] = share(lane, &SpeculateStep::verify_ns) + share(lane, &SpeculateStep::prefill_ns);
}

Json step_json(const SpeculateStep& step) {
  Json json;
  json["begin_ms"] = ms(step.begin_ns);
  json["end_ms"] = ms(step.end_ns);
  for (const SpeculatePart& part : kSpeculateParts) json[std::string(part.name) + "_ms"] = ms(step.*part.ns);
  json["rows"] = step.num_rows;
  json["draft"] = json_list(step.draft, [](const ShownNode& node) -> Json {
    return {{"token", node.token},
            {"parent", node.parent},
            {"draft_probability", node.has_draft_probability ? Json(node.draft_probability) : Json(nullptr)},
            {"target_probability", node.target_probability},
            {"accepted", node.accepted}};
  });
  json["tokens"] = json_list(step.emitted, &ShownToken::token);
  json["origins"] = json_list(step.emitted, [](const ShownToken& token) { return name_of(token.origin); });
  return json;
}

void add_spans(std::ostream& out, const SpeculateLane& lane, int row) {
  for (const auto& step : lane.steps) {
    std::int64_t at = step->begin_ns;
    for (std::size_t kind = 0; kind < kSpeculateParts.size(); ++kind) {
      const std::int64_t ns = (*step).*kSpeculateParts[kind].ns;
      if (ns > 0) out << ms(at) << ' ' << row << ' ' << ms(at + ns) << ' ' << kind << '\n';
      at += ns;
    }
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
  json["tree"] = text_or_null(settings.tree);
  add_lane(json, settings, snapshot.speculation, true);
  std::vector<AcceptanceCounts> clusters;
  for (const Generation& output : snapshot.speculation.outputs) clusters.push_back(output.acceptance);
  if (clusters.empty())
    clusters.push_back(snapshot.speculation.steps.empty() ? AcceptanceCounts()
                                                          : snapshot.speculation.steps.back()->acceptance);
  const AcceptanceMetrics metrics = acceptance_metrics(clusters);
  json["acceptance_length"] = metrics.acceptance_length;
  json["tokens_per_step"] = tokens_per_step_json(clusters);
  json["acceptance_by_position"] = acceptance_by_position_json(metrics);
  const SpeculateStep none;
  const SpeculateStep& last = snapshot.speculation.steps.empty() ? none : *snapshot.speculation.steps.back();
  json["acceptance_rate_p50"] = last.acceptance_rate_p50;
  json["overhead_ratio"] = last.overhead_ratio;
  json["effective_speedup"] = last.effective_speedup;
  json["tokens_per_row"] = last.tokens_per_row;
  Json plain;
  add_lane(plain, settings, snapshot.plain, false);
  json["plain"] = std::move(plain);
  json["speedup"] = snapshot.speedup() > 0.0 ? Json(snapshot.speedup()) : Json(nullptr);
  json["agree"] = snapshot.agree;
  json["must_agree"] = snapshot.must_agree;
  json["steps"] = json_list(snapshot.speculation.steps, [](const auto& step) { return step_json(*step); });
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
  for (std::size_t kind = 0; kind < kSpeculateParts.size(); ++kind)
    script << (kind == 0 ? "" : ", ") << "$spans using ($4==" << kind
           << "?$1:NaN):2:1:3:($2-0.35):($2+0.35) with boxxyerror lc rgb '" << kSpeculateParts[kind].colour->hex
           << "' title '" << kSpeculateParts[kind].name << "'";
  script << "\n";
  return script.str();
}

std::vector<std::string> command_arguments(const SpeculateSettings& settings) {
  const SpeculateSettings plain;
  std::vector<std::string> arguments{"draftproof", "generate"};
  const auto add = [&](std::initializer_list<std::string> words) { arguments.insert(arguments.end(), words); };
  const auto add_number = [&](const char* option, auto value) { add({option, Json(value).dump()}); };
  const auto add_changed = [&](const char* option, auto SpeculateSettings::*field) {
    if (settings.*field != plain.*field) add_number(option, settings.*field);
  };
  // In one word where the value would be taken for an option.
  const auto add_text = [&](const std::string& option, const std::string& value) {
    if (value.starts_with('-')) {
      add({option + "=" + value});
    } else {
      add({option, value});
    }
  };
  add({"--model", settings.model});
  add_text("--prompt", settings.prompt);
  if (settings.chat) add({"--chat"});
  add_changed("--outputs", &SpeculateSettings::outputs);
  add_changed("--batch", &SpeculateSettings::outputs);
  add_number("--max-tokens", settings.max_tokens);
  if (settings.ignore_eos) add({"--ignore-eos"});
  add_number("--temperature", settings.temperature);
  add_changed("--top-p", &SpeculateSettings::top_p);
  add_changed("--top-k", &SpeculateSettings::top_k);
  add_changed("--min-p", &SpeculateSettings::min_p);
  add_changed("--cfg-scale", &SpeculateSettings::cfg_scale);
  if (settings.cfg_scale != plain.cfg_scale && !settings.negative_prompt.empty())
    add_text("--negative-prompt", settings.negative_prompt);
  if (const std::size_t colon = settings.grammar.find(':'); colon != std::string::npos) {
    const std::string form = settings.grammar.substr(0, colon);
    const std::string option = form == "gbnf" ? "--grammar" : form == "json_schema" ? "--json-schema" : "--" + form;
    add_text(option, settings.grammar.substr(colon + 1));
  }
  add({"--drafter", settings.drafter, "--verifier", settings.verifier});
  if (!settings.tree.empty()) add({"--tree", settings.tree});
  add_number("-k", settings.num_speculative_tokens);
  try {
    add({"--policy", text_of(speculation_of(settings))});
  } catch (const Error&) {  // the command itself says what is wrong with the draft
  }
  add_changed("--seed", &SpeculateSettings::seed);
  add_changed("--threads", &SpeculateSettings::threads);
  return arguments;
}

}  // namespace draftproof
