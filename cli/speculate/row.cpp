// A row as JSON.
#include "base/utc_now.hpp"
#include "cli/shared/this_machine.hpp"
#include "cli/speculate/measure.hpp"
#include "cli/speculate/table.hpp"
#include "engine/metrics/acceptance_json.hpp"

namespace draftproof {
namespace {

Json ms_per_step(std::int64_t ns, const StepTimes& times) {
  return times.steps > 0 ? Json(1e-6 * static_cast<double>(ns) / static_cast<double>(times.steps)) : Json(nullptr);
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

Json row_json(const std::string& work, const Configuration& configuration, std::int64_t batch,
              const SpeculateRow& measured) {
  const AcceptanceMetrics metrics = acceptance_metrics(measured.acceptance);
  const AcceptanceCounts& counts = metrics.counts;
  const Speedup speedup = estimate_speedup(measured.pairs), plain = estimate_speedup(measured.plain_pairs);
  const StepTimes& speculative = measured.speculative;
  return {
      {"work", work},
      {"drafter", configuration.drafter},
      {"k", configuration.k},
      {"tree", or_null(configuration.tree)},
      {"verifier", configuration.verifier},
      {"policy", configuration.policy},
      {"temperature", configuration.temperature},
      {"draft_temperature", measured.ranks.has_candidates ? Json(configuration.draft_temperature()) : Json(nullptr)},
      {"batch", batch},
      {"inputs_sha256", text_or_null(measured.inputs_sha256)},
      {"measured", utc_now()},
      {"prompts", measured.prompts},
      {"plain_tokens", measured.plain_tokens},
      {"tokens", counts.received_tokens},
      {"steps", counts.steps},
      {"drafts", counts.drafts},
      {"draft_tokens", counts.draft_tokens},
      {"accepted", counts.accepted_tokens},
      {"acceptance_length", counts.drafts > 0 ? Json(metrics.acceptance_length) : Json(nullptr)},
      {"tokens_per_step", counts.steps > 0 ? Json(metrics.tokens_per_step) : Json(nullptr)},
      {"acceptance_by_position", acceptance_by_position_json(metrics)},
      {"ranked_positions", measured.ranks.positions},
      {"acceptance_by_rank", rates_by_rank(measured.ranks)},
      {"speedup", speedup.ratio},
      {"speedup_low", or_null(speedup.low)},
      {"speedup_high", or_null(speedup.high)},
      {"plain_speedup", plain.ratio},
      {"plain_speedup_low", or_null(plain.low)},
      {"plain_speedup_high", or_null(plain.high)},
      {"draft_ms", ms_per_step(speculative.draft_ns, speculative)},
      {"verify_ms", ms_per_step(speculative.verify_ns, speculative)},
      {"sample_ms", ms_per_step(speculative.sample_ns, speculative)},
      {"mask_ms", ms_per_step(speculative.mask_ns, speculative)},
      {"step_ms", ms_per_step(speculative.wall_ns, speculative)},
      {"plain_ms", ms_per_step(measured.plain.wall_ns, measured.plain)},
      {"requests", counted_requests_json(measured.requests)},
      {"equal", or_null(measured.equal)},
      {"difference", text_or_null(measured.difference)}};
}

}  // namespace draftproof
