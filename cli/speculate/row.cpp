// A row as JSON.
#include "cli/shared/this_machine.hpp"
#include "cli/speculate/table.hpp"
#include "engine/metrics/acceptance_json.hpp"

namespace draftproof {
namespace {

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json per_step(double ms, const StepTimes& times) {
  return times.steps > 0 ? Json(ms / static_cast<double>(times.steps)) : Json(nullptr);
}

Json rates_by_rank(const RankCounts& ranks) {
  Json rates = Json::array();
  const std::size_t candidates = ranks.has_candidates ? kRanks : 1;
  if (ranks.positions == 0) return rates;
  for (std::size_t rank = 0; rank < candidates; ++rank)
    rates.push_back(static_cast<double>(ranks.by_rank[rank]) / static_cast<double>(ranks.positions));
  return rates;
}

}  // namespace

Json inputs_json(const std::string& inputs_sha256) {
  return inputs_sha256.empty() ? Json(nullptr) : Json(inputs_sha256);
}

Json row_json(const std::string& work, const Configuration& configuration, std::int64_t batch,
              const SpeculateRow& measured) {
  const AcceptanceMetrics metrics = acceptance_metrics(measured.acceptance);
  const AcceptanceCounts& counts = metrics.counts;
  const Speedup speedup = estimate_speedup(measured.pairs);
  Json row;
  row["work"] = work;
  row["drafter"] = configuration.drafter;
  row["k"] = configuration.k;
  row["tree"] = configuration.tree ? Json(*configuration.tree) : Json(nullptr);
  row["verifier"] = configuration.verifier;
  row["policy"] = configuration.policy();
  row["temperature"] = configuration.temperature;
  row["draft_temperature"] = measured.ranks.has_candidates ? Json(configuration.draft_temperature()) : Json(nullptr);
  row["batch"] = batch;
  row["inputs_sha256"] = inputs_json(measured.inputs_sha256);
  row["prompts"] = measured.prompts;
  row["plain_tokens"] = measured.plain_tokens;
  row["tokens"] = counts.received_tokens;
  row["steps"] = counts.steps;
  row["drafts"] = counts.drafts;
  row["draft_tokens"] = counts.draft_tokens;
  row["accepted"] = counts.accepted_tokens;
  row["acceptance_length"] = counts.drafts > 0 ? Json(metrics.acceptance_length) : Json(nullptr);
  row["tokens_per_step"] = counts.steps > 0 ? Json(metrics.tokens_per_step) : Json(nullptr);
  row["acceptance_by_position"] = acceptance_by_position_json(metrics);
  row["ranked_positions"] = measured.ranks.positions;
  row["acceptance_by_rank"] = rates_by_rank(measured.ranks);
  row["speedup"] = speedup.ratio;
  row["speedup_low"] = or_null(speedup.low);
  row["speedup_high"] = or_null(speedup.high);
  row["draft_ms"] = per_step(measured.speculative.draft_ms, measured.speculative);
  row["verify_ms"] = per_step(measured.speculative.verify_ms, measured.speculative);
  row["sample_ms"] = per_step(measured.speculative.sample_ms, measured.speculative);
  row["step_ms"] = per_step(measured.speculative.ms, measured.speculative);
  row["plain_ms"] = per_step(measured.plain.ms, measured.plain);
  row["requests"] = counted_requests_json(measured.requests);
  row["equal"] = measured.equal ? Json(*measured.equal) : Json(nullptr);
  row["difference"] = measured.difference.empty() ? Json(nullptr) : Json(measured.difference);
  return row;
}

}  // namespace draftproof
