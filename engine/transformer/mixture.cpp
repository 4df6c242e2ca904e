#include "engine/transformer/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "reference/numerics/natural_exp.hpp"

namespace draftproof {
namespace {

double sigmoid(float x) {
  return 1.0 / (1.0 + natural_exp(-static_cast<double>(std::clamp(x, -80.0f, 80.0f))));
}

// Leaves the indices of the `count` largest scores, the first of equal ones, in front.
void put_best_first(std::vector<std::size_t>& indices, std::size_t count, std::span<const double> scores) {
  std::ranges::partial_sort(indices, indices.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](auto a, auto b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
}

// Scores of experts outside the best groups become the lowest.
void leave_out_groups(const ExpertShape& shape, std::vector<double>& scores) {
  const auto groups = static_cast<std::size_t>(shape.groups);
  const std::size_t in_group = scores.size() / groups;
  std::vector<double> best(groups);
  std::vector<std::size_t> order(groups);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t g = 0; g < groups; ++g) {
    double first = scores[g * in_group];
    double second = -std::numeric_limits<double>::infinity();
    for (std::size_t i = g * in_group + 1; i < (g + 1) * in_group; ++i) {
      second = std::max(second, std::min(first, scores[i]));
      first = std::max(first, scores[i]);
    }
    best[g] = first + second;
  }
  put_best_first(order, static_cast<std::size_t>(shape.groups_chosen), best);
  for (std::size_t i = static_cast<std::size_t>(shape.groups_chosen); i < groups; ++i)
    std::fill_n(scores.begin() + static_cast<std::ptrdiff_t>(order[i] * in_group), in_group,
                -std::numeric_limits<double>::infinity());
}

}  // namespace

void route_row(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMixture& mixture,
               const ExpertShape& shape, const float* row, std::span<ExpertRoute> routes) {
  thread_local AlignedFloats logits;
  const std::size_t count = mixture.experts.size();
  multiply_row(kernels, arithmetic, *mixture.router, row, logits);
  const auto of_experts = std::span(logits).first(count);
  if (!kernels.all_finite(of_experts.data(), count)) {
    for (std::size_t i = 0; i < routes.size(); ++i) routes[i] = {i, std::numeric_limits<float>::quiet_NaN()};
    return;
  }
  std::vector<double> scores(count);
  const double largest = std::ranges::max(of_experts);
  for (std::size_t i = 0; i < count; ++i)
    scores[i] = shape.by_sigmoid ? sigmoid(of_experts[i]) : natural_exp(std::max(of_experts[i] - largest, -80.0));
  if (!shape.by_sigmoid) {
    const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
    for (double& score : scores) score /= sum;
  }
  std::vector<double> choosing = scores;
  for (std::size_t i = 0; i < mixture.router_bias.size(); ++i)
    choosing[i] += static_cast<double>(mixture.router_bias[i]);
  if (shape.groups > 1) leave_out_groups(shape, choosing);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  put_best_first(order, routes.size(), choosing);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(routes.size()));
  double sum = 0.0;
  for (std::size_t i = 0; i < routes.size(); ++i) sum += scores[order[i]];
  const double factor = shape.scale / (shape.normalised ? sum : 1.0);
  for (std::size_t i = 0; i < routes.size(); ++i) routes[i] = {order[i], static_cast<float>(scores[order[i]] * factor)};
}

void run_expert(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMixture::Expert& expert,
                const float* row, float* out) {
  thread_local AlignedFloats gate, up, down;
  multiply_row(kernels, arithmetic, *expert.gate, row, gate);
  multiply_row(kernels, arithmetic, *expert.up, row, up);
  kernels.swiglu(gate.data(), up.data(), static_cast<std::size_t>(expert.gate->rows()), gate.data());
  multiply_row(kernels, arithmetic, *expert.down, gate.data(), down);
  std::copy_n(down.begin(), expert.down->rows(), out);
}

void combine_experts(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMixture& mixture,
                     const float* row, std::span<const ExpertRoute> routes, const float* rows,
                     std::span<float> shared) {
  if (mixture.shared_gate) {
    thread_local AlignedFloats gate;
    multiply_row(kernels, arithmetic, *mixture.shared_gate, row, gate);
    const auto factor =
        std::isfinite(gate[0]) ? static_cast<float>(sigmoid(gate[0])) : std::numeric_limits<float>::quiet_NaN();
    kernels.scale(shared.data(), shared.size(), factor, shared.data());
  }
  for (std::size_t i = 0; i < routes.size(); ++i)
    for (std::size_t d = 0; d < shared.size(); ++d) shared[d] += routes[i].weight * rows[i * shared.size() + d];
}

}  // namespace draftproof
