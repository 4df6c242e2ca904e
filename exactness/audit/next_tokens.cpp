#include "exactness/audit/next_tokens.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "exactness/audit/tests.hpp"

namespace draftproof {
namespace {

// At most this many bins at a depth.
constexpr std::size_t kDepthBinsMax = 8;

// visit(depth, transform), depth 1 for the second token.
template <class Visit>
void for_each_next_token(std::span<const StepRecord> records, const Assumptions& assumed, std::uint64_t key,
                         const Visit& visit) {
  for (std::size_t b = 0; b < records.size(); ++b) {
    const StepRecord& record = records[b];
    if (record.impossible_token) continue;
    const std::size_t end = assumed.exact_at_nodes ? record.emitted.size() : record.depth_max + std::size_t{1};
    for (std::size_t depth = 1; depth < end; ++depth) {
      const double u = depth < record.emitted.size() ? record.emitted[depth] : kNoTransform;
      if (u != kNoTransform) {
        visit(depth, u);
      } else if (!assumed.exact_at_nodes) {
        visit(depth, audit_uniform(key, static_cast<std::int64_t>(b), static_cast<std::uint32_t>(depth),
                                   AuditUse::absent_token));
      }
    }
  }
}

using DepthBins = std::array<std::int64_t, kDepthBinsMax>;

CountFit fit_depth(const DepthBins& fine, std::size_t depth) {
  const std::size_t bins = affordable_bins(std::accumulate(fine.begin(), fine.end(), std::int64_t{0}), kDepthBinsMax);
  if (bins < 2) return {};
  std::vector<std::int64_t> counts(bins, 0);
  for (std::size_t i = 0; i < kDepthBinsMax; ++i) counts[i * bins / kDepthBinsMax] += fine[i];
  return fit_counts(counts, std::vector<double>(bins, 1.0 / static_cast<double>(bins)), [&](std::size_t bin) {
    return CountedCell{{{"depth", static_cast<std::int64_t>(depth)}, {"bin", static_cast<std::int64_t>(bin)}}};
  });
}

}  // namespace

std::vector<TestResult> next_token_tests(std::span<const StepRecord> records, const Assumptions& assumed,
                                         std::uint64_t key) {
  UniformTally all;
  std::vector<DepthBins> at_depth;
  for_each_next_token(records, assumed, key, [&](std::size_t depth, double u) {
    all.add(u);
    if (at_depth.size() < depth) at_depth.resize(depth, DepthBins{});
    const auto bin = static_cast<std::size_t>(u * static_cast<double>(kDepthBinsMax));
    ++at_depth[depth - 1][std::min(bin, kDepthBinsMax - 1)];
  });
  std::vector<TestResult> tests = uniformity_tests("next_tokens", "tokens", all, false);
  CountFit by_depth;
  for (std::size_t i = 0; i < at_depth.size(); ++i) by_depth.add(fit_depth(at_depth[i], i + 1));
  std::vector<TestResult> counts = count_tests("next_tokens_by_depth", "tokens", by_depth, false);
  if (!counts.empty()) tests.push_back(std::move(counts.front()));
  return tests;
}

}  // namespace draftproof
