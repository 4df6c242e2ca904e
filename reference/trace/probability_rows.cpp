#include "reference/trace/probability_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>

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

void check_probability_rows(const std::string& path, std::span<const VerifyRequest> requests, int threads) {
  const auto any = [](const VerifyRequest& request) {
    return request.target_is_probabilities || request.proposal_kind == ProposalKind::probabilities;
  };
  if (std::none_of(requests.begin(), requests.end(), any)) return;
  parallel_for(static_cast<std::int64_t>(requests.size()), threads, [&](std::int64_t b, int) {
    const VerifyRequest& request = requests[static_cast<std::size_t>(b)];
    TileScratch scratch;
    const auto check_rows = [&](const RowMatrix& matrix, const char* tensor, std::int64_t first_row) {
      for (std::int64_t i = 0; i < matrix.rows; ++i) check_row(matrix.row(i), scratch, {first_row + i, tensor, i});
    };
    try {
      if (request.target_is_probabilities) check_rows(request.target, "target_probs", request.first_row);
      if (request.proposal_kind == ProposalKind::probabilities)
        check_rows(request.proposal, "draft_probs", request.first_proposal_row);
    } catch (const RowError& error) {
      throw input_error(path, error_in_request(request, b, error).what());
    }
  });
}

}  // namespace draftproof
