#include "reference/step/dense_step_rows.hpp"

#include <algorithm>
#include <string>

#include "reference/numerics/fixed_point.hpp"
#include "reference/numerics/unsigned_128.hpp"

namespace draftproof {

DenseMasses<double> dense_row(const Distribution& distribution) {
  const auto vocab_size = static_cast<std::size_t>(distribution.vocab_size());
  DenseMasses<double> masses;
  masses.reserve(vocab_size);
  std::vector<float> scratch(kTileTokens);
  for (std::size_t tile = 0; tile < distribution.tile_count(); ++tile) {
    const float* probabilities = distribution.tile_probabilities(tile, scratch.data());
    const std::size_t count = std::min<std::size_t>(kTileTokens, vocab_size - masses.size());
    masses.insert(masses.end(), probabilities, probabilities + count);
  }
  return masses;
}

void check_dense_row(const DenseMasses<double>& row, const Distribution& distribution, bool check_sum) {
  const ProbabilityRow* given = distribution.probabilities();
  if (given == nullptr) return;  // made by us, hence valid
  Unsigned128 sum = 0;           // in fixed point, so that the verdict has no order
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!(row[i] >= 0.0 && row[i] <= 1.0)) given->probability(static_cast<Token>(i));  // throws, naming the column
    sum += residual_mass(row[i]);
  }
  if (!check_sum) return;
  if (sum > static_cast<Unsigned128>(3) << kResidualBits) throw bad_sum(given->row());
  if (sum == 0) throw all_zero(given->row());
}

const DenseMasses<double>& DenseStepRows::row(std::uint32_t r) const {
  if (made_[r]) return *made_[r];
  const bool is_target = side_ == Side::target;
  if (!is_target && rows_.request().draft.children(static_cast<std::int32_t>(r) - 1).empty()) return made_[r].emplace();
  const Distribution& distribution = is_target ? rows_.target(r) : rows_.proposal(r);
  made_[r] = dense_row(distribution);
  check_dense_row(*made_[r], distribution, true);
  return *made_[r];
}

}  // namespace draftproof
