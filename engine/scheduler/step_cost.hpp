// Cost of a step, as far as choosing the number of drafts needs it.
//
//   t(n) = alpha + beta n, n rows of the target model, and a fixed and a proportional part for every draft pass
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace draftproof {

class StepCost {
 public:
  virtual ~StepCost() = default;
  // Nanoseconds of a forward pass of the target over num_tokens rows of `batch` requests.
  virtual double target_ns(std::int64_t num_tokens, std::int64_t batch) const = 0;
  // Nanoseconds of `passes` draft passes, one after the other, each over `batch` requests.
  virtual double draft_ns(std::int32_t passes, std::int64_t batch) const = 0;
};

// The linear model with a cost per request of the batch (its KV, its sampling).
struct LinearStepCost final : StepCost {
  double target_fixed_ns = 0.0;
  double target_token_ns = 0.0;
  double target_request_ns = 0.0;
  double draft_pass_ns = 0.0;
  double draft_token_ns = 0.0;

  double target_ns(std::int64_t num_tokens, std::int64_t batch) const override {
    return target_fixed_ns + target_token_ns * static_cast<double>(num_tokens) +
           target_request_ns * static_cast<double>(batch);
  }
  double draft_ns(std::int32_t passes, std::int64_t batch) const override {
    return static_cast<double>(passes) * (draft_pass_ns + draft_token_ns * static_cast<double>(batch));
  }
};

// The shape of this project's own passes where no machine has been timed: milliseconds by rows of SmolLM2-135M behind
// 96 tokens, a little above what one thread of a processor with AVX-512 VNNI takes (docs/models.md), since more rows
// cost more with two. Machine-independent on purpose: draft length affects sampled tokens. Drafts cost nothing.
struct DefaultStepCost final : StepCost {
  double target_ns(std::int64_t num_tokens, std::int64_t) const override {
    constexpr std::array<std::pair<double, double>, 6> kMs{
        {{1, 3.15}, {2, 3.40}, {4, 3.95}, {8, 5.45}, {12, 7.95}, {16, 10.4}}};
    const auto rows = static_cast<double>(num_tokens);
    std::size_t above = 1;
    while (above + 1 < kMs.size() && kMs[above].first < rows) ++above;
    const auto [rows_a, ms_a] = kMs[above - 1];
    const auto [rows_b, ms_b] = kMs[above];
    return 1e6 * (ms_a + (ms_b - ms_a) * (rows - rows_a) / (rows_b - rows_a));
  }
  double draft_ns(std::int32_t, std::int64_t) const override { return 0.0; }
};

}  // namespace draftproof
