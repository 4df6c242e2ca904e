// The measurement as JSON, as rows, as a figure, and the command line that prints it.
#include <sstream>

#include "base/json_values.hpp"
#include "studies/figures/figure.hpp"
#include "studies/heads/heads.hpp"
#include "studies/palette.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json rate_or_null(double rate, std::int64_t trials) {
  return trials > 0 ? Json(rate) : Json(nullptr);
}

Json work_json(const HeadsWork& work) {
  const AcceptanceCounts& counts = work.metrics.counts;
  Json json;
  json["work"] = work.name;
  json["prompts"] = work.prompts;
  json["steps"] = counts.steps;
  json["drafts"] = counts.drafts;
  json["draft_tokens"] = counts.draft_tokens;
  json["accepted"] = counts.accepted_tokens;
  json["tokens"] = counts.received_tokens;
  json["acceptance_length"] = rate_or_null(work.metrics.acceptance_length, counts.drafts);
  json["tokens_per_step"] = rate_or_null(work.metrics.tokens_per_step, counts.steps);
  json["slots"] = json_list(work.slots, [](const SlotRate& slot) -> Json {
    return {{"reached", slot.reached},
            {"accepted", slot.accepted},
            {"rate", rate_or_null(slot.rate, slot.reached)},
            {"low", slot.interval.low},
            {"high", slot.interval.high}};
  });
  return json;
}

Json summary_json(const DriftSummary& summary) {
  return {{"mean", summary.mean}, {"p10", summary.p10}, {"p90", summary.p90}};
}

Json drift_json(const SlotDrift& drift) {
  return {{"slot", drift.slot},
          {"count", drift.count},
          {"target_cosine", summary_json(drift.target_cosine)},
          {"target_relative_l2", summary_json(drift.target_relative_l2)},
          {"own_cosine", summary_json(drift.own_cosine)},
          {"own_relative_l2", summary_json(drift.own_relative_l2)},
          {"target_cosine_accepted", or_null(drift.target_cosine_accepted)},
          {"target_cosine_rejected", or_null(drift.target_cosine_rejected)}};
}

Json reliability_json(const Reliability& reliability, std::size_t slot) {
  Json json;
  json["slot"] = slot == 0 ? Json(nullptr) : Json(slot);
  json["count"] = reliability.count;
  json["accepted"] = reliability.accepted;
  json["mean_confidence"] = rate_or_null(reliability.mean_confidence, reliability.count);
  json["rate"] = rate_or_null(reliability.rate, reliability.count);
  json["ece"] = rate_or_null(reliability.ece, reliability.count);
  json["bins"] = json_list(reliability.bins, [](const ReliabilityBin& bin) -> Json {
    return {{"count", bin.count},
            {"accepted", bin.accepted},
            {"mean_confidence", rate_or_null(bin.mean_confidence, bin.count)},
            {"rate", rate_or_null(bin.rate, bin.count)},
            {"low", bin.interval.low},
            {"high", bin.interval.high}};
  });
  return json;
}

Json step_json(const HeadStep& step) {
  Json json;
  json["output_len"] = step.output_len;
  json["accepted"] = step.num_accepted;
  json["next"] = {{"token", step.next.token}, {"text", step.next.text}};
  json["slots"] = json_list(step.slots, [](const HeadSlot& slot) -> Json {
    return {{"token", slot.draft.token},
            {"text", slot.draft.text},
            {"probability", slot.draft.probability},
            {"confidence", slot.confidence},
            {"accepted", slot.reached ? Json(slot.accepted) : Json(nullptr)},
            {"emitted", slot.emitted ? Json(slot.emitted->token) : Json(nullptr)},
            {"candidates", json_list(slot.candidates, [](const HeadCandidate& candidate) -> Json {
               return {{"token", candidate.token}, {"text", candidate.text}, {"probability", candidate.probability}};
             })}};
  });
  return json;
}

Json shown_json(const HeadsSnapshot& snapshot) {
  const HeadsPrompt* const prompt = snapshot.shown_prompt();
  if (prompt == nullptr) return nullptr;
  return {{"prompt", snapshot.settings.shown_prompt},
          {"step", snapshot.shown_step() != nullptr ? Json(snapshot.settings.shown_step) : Json(nullptr)},
          {"work", prompt->work},
          {"where", prompt->where},
          {"text", prompt->text},
          {"steps", json_list(prompt->steps, step_json)}};
}

}  // namespace

Json to_json(const HeadsSnapshot& snapshot) {
  Json json;
  if (!snapshot.note.empty()) {
    json["note"] = snapshot.note;
    return json;
  }
  json["model"] = snapshot.model;
  json["arithmetic"] = snapshot.arithmetic;
  json["head"] = snapshot.settings.head;
  json["family"] = snapshot.family;
  json["num_speculative_tokens"] = snapshot.num_speculative_tokens;
  json["temperature"] = snapshot.settings.temperature;
  json["confidence"] = snapshot.has_confidence_head ? "confidence_head" : "largest_probability";
  json["interval_level"] = kHeadsLevel;
  json["prompts"] = std::ssize(snapshot.prompts);
  json["works"] = json_list(snapshot.works, work_json);
  json["drift"] = snapshot.drafts_in_parallel ? Json(nullptr) : json_list(snapshot.drift, drift_json);
  json["reliability"] = Json::array();
  for (std::size_t i = 0; i < snapshot.reliability.size(); ++i)
    json["reliability"].push_back(reliability_json(snapshot.reliability[i], i));
  json["shown"] = shown_json(snapshot);
  return json;
}

Table to_table(const HeadsSnapshot& snapshot) {
  Table table{{"number", "of", "slot", "bin", "count", "value", "low", "high"}, {}};
  const TableCell none = std::string();
  for (const HeadsWork& work : snapshot.works)
    for (std::size_t i = 0; i < work.slots.size(); ++i) {
      const SlotRate& slot = work.slots[i];
      table.rows.push_back({std::string("acceptance"), work.name, static_cast<std::int64_t>(i) + 1, none, slot.reached,
                            slot.reached > 0 ? TableCell(slot.rate) : none, slot.interval.low, slot.interval.high});
    }
  for (const SlotDrift& drift : snapshot.drift) {
    const auto add = [&](const char* of, const char* name, const DriftSummary& summary) {
      table.rows.push_back({std::string("drift_") + name, std::string(of), std::int64_t{drift.slot}, none, drift.count,
                            summary.mean, summary.p10, summary.p90});
    };
    add("target", "cosine", drift.target_cosine);
    add("target", "relative_l2", drift.target_relative_l2);
    add("own", "cosine", drift.own_cosine);
    add("own", "relative_l2", drift.own_relative_l2);
  }
  for (std::size_t slot = 0; slot < snapshot.reliability.size(); ++slot)
    for (std::size_t i = 0; i < kReliabilityBins; ++i) {
      const ReliabilityBin& bin = snapshot.reliability[slot].bins[i];
      if (bin.count == 0) continue;
      table.rows.push_back({std::string("reliability"), std::string("confidence ") + json_number(bin.mean_confidence),
                            slot == 0 ? none : TableCell(static_cast<std::int64_t>(slot)),
                            static_cast<std::int64_t>(i) + 1, bin.count, bin.rate, bin.interval.low,
                            bin.interval.high});
    }
  return table;
}

std::string to_figure(const HeadsSnapshot& snapshot) {
  if (snapshot.works.empty()) return "";
  std::ostringstream script;
  std::ostringstream acceptance;
  const auto colour = [](std::size_t i) { return palette::kSeries[i % palette::kSeries.size()].hex; };
  for (std::size_t w = 0; w < snapshot.works.size(); ++w) {
    const HeadsWork& work = snapshot.works[w];
    script << "$work" << w << " << EOD\n";
    for (std::size_t i = 0; i < work.slots.size(); ++i)
      if (const SlotRate& slot = work.slots[i]; slot.reached > 0)
        script << static_cast<double>(i + 1) + 0.06 * static_cast<double>(w) << ' ' << slot.rate << ' '
               << slot.interval.low << ' ' << slot.interval.high << '\n';
    script << "EOD\n";
    acceptance << (w == 0 ? "" : ", ") << "$work" << w << " using 1:2:3:4 with yerrorlines pt 7 ps 0.6 lw 2 lc rgb '"
               << colour(w) << "' title " << gnuplot_quoted(work.name);
  }
  script << "$bins << EOD\n";
  for (const ReliabilityBin& bin : snapshot.reliability.front().bins)
    if (bin.count > 0)
      script << bin.mean_confidence << ' ' << bin.rate << ' ' << bin.interval.low << ' ' << bin.interval.high << '\n';
  script << "EOD\n$drift << EOD\n";
  for (const SlotDrift& drift : snapshot.drift)
    script << drift.slot << ' ' << drift.target_cosine.mean << ' ' << drift.target_cosine.p10 << ' '
           << drift.target_cosine.p90 << ' ' << drift.own_cosine.mean << ' ' << drift.own_cosine.p10 << ' '
           << drift.own_cosine.p90 << '\n';
  script << "EOD\nset multiplot layout 1," << (snapshot.drift.empty() ? 2 : 3)
         << "\nset grid lc rgb '#dddddd'\nset yrange [0:1.05]\n"
         << "set xrange [0.7:" << snapshot.num_speculative_tokens
         << ".5]\nset xtics 1\nset xlabel 'slot'\nset ylabel 'P(accepted | reached)'\nset key top right\nplot "
         << acceptance.str() << "\nset xrange [0:1]\nset xtics 0.2\nset xlabel 'confidence'\nset ylabel 'accepted'\n"
         << "set key off\nplot x with lines dt 2 lc rgb '" << palette::kGrey.hex
         << "', $bins using 1:2:3:4 with yerrorlines pt 7 ps 0.6 lw 2 lc rgb '" << palette::kAccepted.hex << "'\n";
  if (!snapshot.drift.empty())
    script << "set xrange [1.7:" << snapshot.num_speculative_tokens
           << ".3]\nset yrange [*:1.05]\nset xtics 1\nset xlabel 'slot'\nset ylabel 'cosine of the states'\nset key "
              "bottom left\nplot $drift using 1:2:3:4 with yerrorlines pt 7 ps 0.6 lw 2 lc rgb '"
           << palette::kTarget.hex << "' title " << gnuplot_quoted("to the target's")
           << ", $drift using ($1+0.08):5:6:7 with yerrorlines pt 7 ps 0.6 lw 2 lc rgb '" << palette::kDraft.hex
           << "' title 'to its own'\n";
  script << "unset multiplot\n";
  return script.str();
}

std::vector<std::string> command_arguments(const HeadsSettings& settings) {
  const HeadsSettings standard;
  const bool has_kind = settings.head.starts_with("head:") || settings.head.starts_with("head@");
  std::vector<std::string> arguments{"draftproof", "acceptance", has_kind ? settings.head : "head:" + settings.head,
                                     "--model", settings.model};
  const auto add = [&](const char* option, const std::string& value) {
    arguments.emplace_back(option);
    arguments.push_back(value);
  };
  if (!settings.prompts.empty()) add("--prompts", settings.prompts);
  if (settings.per_work != standard.per_work) add("--per-work", std::to_string(settings.per_work));
  if (settings.max_tokens != standard.max_tokens) add("--max-tokens", std::to_string(settings.max_tokens));
  if (settings.num_speculative_tokens != standard.num_speculative_tokens)
    add("-k", std::to_string(settings.num_speculative_tokens));
  if (settings.temperature != standard.temperature) add("--temperature", json_number(settings.temperature));
  if (settings.seed != standard.seed) add("--seed", std::to_string(settings.seed));
  if (settings.threads != standard.threads) add("--threads", std::to_string(settings.threads));
  if (settings.shown_prompt != standard.shown_prompt) add("--show-prompt", std::to_string(settings.shown_prompt));
  if (settings.shown_step != standard.shown_step) add("--show-step", std::to_string(settings.shown_step));
  return arguments;
}

}  // namespace draftproof
