#include "reference/trace/probability_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "reference/row_kernels/row_kernels.hpp"
#include "reference/sampling/row_status.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {
namespace {

using TileScratch = std::array<float, kTileTokens>;

[[noreturn]] void throw_bad_element(const float* tile, std::size_t count, std::int64_t begin, const RowName& name) {
  const float* const bad = std::find_if_not(tile, tile + count, [](float p) { return p >= 0.0f && p <= 1.0f; });
  throw RowError(RowStatus::bad_probability, name, begin + (bad - tile),
                 "the probability is " + std::to_string(*bad) + "; expected a number in [0, 1]");
}

// The kernel sums in fixed point, so the sum, which a message may print, does not depend on the machine.
void check_row(const RowView& row, TileScratch& scratch, const RowName& name) {
  double sum = 0.0;
  for (std::int64_t begin = 0; begin < row.vocab_size; begin += kTileTokens) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kTileTokens, row.vocab_size - begin));
    const float* const tile = elements_of(row, begin, count, scratch.data());
    const TileResidual tile_sum = row_kernels().residual(tile, nullptr, count);
    if (!tile_sum.valid) throw_bad_element(tile, count, begin, name);
    sum += static_cast<double>(tile_sum.high) * 0x1p-30 + static_cast<double>(tile_sum.low) * 0x1p-62;
  }
  const double tolerance = row.dtype == DType::f32 ? 1e-3 : 2e-2;
  if (!(std::abs(sum - 1.0) <= tolerance))
    throw RowError(RowStatus::bad_sum, name, -1,
                   "the probabilities sum to " + std::to_string(sum) + "; expected 1 within " +
                       (row.dtype == DType::f32 ? "0.001" : "0.02"));
}

}  // namespace

void check_probability_rows(const std::string& path, std::span<const VerifyRequest> requests, int threads,
                            const char* target_name) {
  const auto any = [](const VerifyRequest& request) {
    return request.target_is_probabilities || request.proposal_kind == ProposalKind::probabilities;
  };
  if (std::none_of(requests.begin(), requests.end(), any)) return;
  parallel_for(static_cast<std::int64_t>(requests.size()), threads, [&](std::int64_t b, int) {
    const VerifyRequest& request = requests[static_cast<std::size_t>(b)];
    TileScratch scratch;
    try {
      if (request.target_is_probabilities)
        for (std::int64_t i = 0; i < request.target.rows; ++i)
          check_row(request.target.row(i), scratch, {request.first_row + i, target_name, i});
      if (request.proposal_kind != ProposalKind::probabilities) return;
      const bool has_leaves = request.proposal.rows > request.draft.size();
      std::vector<bool> proposes(static_cast<std::size_t>(request.proposal.rows), !has_leaves);
      for (const std::int32_t parent : request.draft.parents)
        if (parent >= kRootNode && parent < request.proposal.rows - 1)
          proposes[static_cast<std::size_t>(parent + 1)] = true;
      for (std::int64_t i = 0; i < request.proposal.rows; ++i)
        if (proposes[static_cast<std::size_t>(i)])
          check_row(request.proposal.row(i), scratch, {request.first_proposal_row + i, "draft_probs", i});
    } catch (const RowError& error) {
      throw input_error(path, error_in_request(request, b, error).what());
    }
  });
}

}  // namespace draftproof
