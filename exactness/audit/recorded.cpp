#include "exactness/audit/recorded.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/parallel.hpp"
#include "exactness/audit/independence.hpp"
#include "exactness/audit/tests.hpp"
#include "reference/step/replay.hpp"
#include "reference/verify/emitted_path.hpp"

namespace draftproof {
namespace {

// The first departure of each step that rounding does not explain.
std::vector<std::optional<Departure>> departures_of(const StepSample& sample, std::span<const StepRecord> records,
                                                    const AuditOptions& options) {
  std::vector<std::optional<Departure>> departures(records.size());
  VerifyOptions verify;
  verify.verifier = *options.verifier;
  verify.convention = sample.convention;
  std::vector<StepWorkspace> workspaces(static_cast<std::size_t>(options.threads));
  parallel_for(static_cast<std::int64_t>(records.size()), options.threads, [&](std::int64_t i, int thread) {
    const auto b = static_cast<std::size_t>(i);
    const VerifyRequest& request = sample.requests[b];
    if (!request.recorded.any()) return;
    const std::span<const Token> emitted = sample.emitted(b);
    const std::span<const std::int32_t> reported = sample.reported_path(b);
    std::vector<std::int32_t> path(reported.begin(), reported.end());
    if (!sample.path_nodes) path = find_emitted_path(request.draft, emitted.first(emitted.size() - 1)).nodes;
    departures[b] = find_departure(request, verify, emitted, path, workspaces[static_cast<std::size_t>(thread)]);
    if (departures[b] && departures[b]->distance <= records[b].ratio_tolerance) departures[b].reset();
  });
  return departures;
}

TestResult replay_test(const StepSample& sample, std::span<const StepRecord> records, const AuditOptions& options) {
  const std::vector<std::optional<Departure>> departures = departures_of(sample, records, options);
  std::int64_t n = 0;
  std::int64_t count = 0;
  std::vector<CountedCell> cells;
  for (std::size_t b = 0; b < departures.size(); ++b) {
    n += sample.requests[b].recorded.any() ? 1 : 0;
    if (!departures[b]) continue;
    ++count;
    if (cells.size() == kWorstCellsMax) continue;
    const auto at = static_cast<std::size_t>(departures[b]->position);
    const std::span<const Token> emitted = sample.emitted(b);
    cells.push_back({{{"request", static_cast<std::int64_t>(b)},
                      {"position", departures[b]->position},
                      {"token", at < emitted.size() ? emitted[at] : kPaddingToken}}});
    cells.back().observed = 1.0;
  }
  return certainty_test("replay", "steps", n, count, std::move(cells));
}

// Numbers at the end of [0, 1], which conventions with u <= 1 have, count to the last bin.
double below_one(double u) {
  return std::min(u, 1.0 - 0x1p-53);
}

// Given how a coin of this rate fell, where it stands in the part of [0, 1] that makes it fall so.
double given_decision(double u, double rate, bool accepted) {
  if (accepted) return rate > 0.0 ? below_one(std::min(1.0, u / rate)) : kNoTransform;
  return rate < 1.0 ? below_one(std::clamp((u - rate) / (1.0 - rate), 0.0, 1.0)) : kNoTransform;
}

// The coin of a step of the chain.
double judged_coin(const VerifyRequest& request, const StepRecord& record) {
  if (record.drafts.empty() || record.impossible_draft) return kNoTransform;
  const std::size_t judged = std::min<std::size_t>(record.accepted, record.drafts.size() - 1);
  const double rate = std::min(1.0, record.drafts[judged].ratio);
  return given_decision((*request.recorded.uniforms)[judged], rate, judged < record.accepted);
}

}  // namespace

std::vector<TestResult> recorded_tests(const StepSample& sample, std::span<const StepRecord> records,
                                       const AuditOptions& options) {
  std::vector<TestResult> tests;
  if (std::none_of(sample.requests.begin(), sample.requests.end(),
                   [](const VerifyRequest& r) { return r.recorded.any(); }))
    return tests;
  if (options.verifier) tests.push_back(replay_test(sample, records, options));
  UniformTally coins, draws;
  std::vector<double> coin, next_coin;
  std::vector<double> first_coin(records.size(), kNoTransform), next_request(records.size(), kNoTransform);
  std::vector<double> first_draft(records.size(), kNoTransform);
  std::vector<double> judged(records.size(), kNoTransform), last(records.size(), kNoTransform);
  const bool is_chain = options.verifier && options.verifier->info().decisions == Decisions::coin_per_draft;
  for (std::size_t b = 0; b < records.size(); ++b) {
    const VerifyRequest& request = sample.requests[b];
    if (has_greedy_target(request)) continue;  // its numbers are not looked at
    if (const auto& numbers = request.recorded.draw_uniforms)
      for (std::size_t i = 0; i < numbers->size(); ++i) draws.add(below_one((*numbers)[i]));
    const auto& numbers = request.recorded.uniforms;
    if (!numbers || numbers->size() == 0) continue;
    for (std::size_t i = 0; i < numbers->size(); ++i) coins.add(below_one((*numbers)[i]));
    for (std::size_t i = 0; i + 1 < numbers->size(); i += 2) {  // no coin stands twice
      coin.push_back(below_one((*numbers)[i]));
      next_coin.push_back(below_one((*numbers)[i + 1]));
    }
    first_coin[b] = below_one((*numbers)[0]);
    first_draft[b] = records[b].first_draft;
    if (b % 2 == 1) next_request[b - 1] = first_coin[b];
    if (!is_chain) continue;
    judged[b] = judged_coin(request, records[b]);
    last[b] = records[b].last;
  }
  append(tests, uniformity_tests("coins", "coins", coins, false));
  append(tests, uniformity_tests("draw_uniforms", "draws", draws, false));
  append(tests, correlation_of_pairs("coins", coin, next_coin));
  append(tests, correlation_of_pairs("coins_of_requests", first_coin, next_request));
  append(tests, correlation_of_pairs("draft_coin", first_draft, first_coin));
  append(tests, correlation_of_pairs("coin_last", judged, last));
  return tests;
}

}  // namespace draftproof
