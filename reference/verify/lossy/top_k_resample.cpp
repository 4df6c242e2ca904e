#include "reference/verify/lossy/top_k_resample.hpp"

#include <cmath>
#include <utility>

namespace draftproof {
namespace {

constexpr std::size_t kVocabSize = 1024;

// normalised() sums in fixed point, which needs sums below 4: the weights, at most 1 each, are scaled down first.
DenseMasses<double> distribution_of(DenseMasses<double> weights) {
  for (double& w : weights) w /= static_cast<double>(kVocabSize);
  return normalised(std::move(weights));
}

template <class Weight>
DenseMasses<double> row_of(Weight weight) {
  DenseMasses<double> weights(kVocabSize);
  for (std::size_t i = 0; i < kVocabSize; ++i) weights[i] = weight(static_cast<int>(i));
  return distribution_of(std::move(weights));
}

}  // namespace

std::vector<TopKResampleRow> top_k_resample_table() {
  const std::vector<std::pair<std::string, DenseMasses<double>>> rows{
      {"peaked", row_of([](int i) { return std::ldexp(1.0, -i); })},
      {"flat", row_of([](int) { return 1.0; })},
      {"Zipf", row_of([](int i) { return 1.0 / (i + 1); })}};
  std::vector<TopKResampleRow> table;
  for (const auto& [name, p] : rows) {
    DenseMasses<double> one_hot(kVocabSize, 0.0);
    one_hot[0] = 1.0;  // the lowest id of the greatest probability in all three
    DenseMasses<double> warm = p;
    for (double& x : warm) x = std::sqrt(x) / 32.0;  // sqrt(p) sums to at most sqrt(V) = 32
    warm = normalised(std::move(warm));
    for (std::size_t k = 1; k <= kVocabSize; k *= 2)
      table.push_back({name, k, top_k_resample_distance(p, one_hot, k), top_k_resample_distance(p, warm, k)});
  }
  return table;
}

}  // namespace draftproof
