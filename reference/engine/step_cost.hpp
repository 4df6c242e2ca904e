// What a step costs, as far as choosing the number of drafts needs it.
//
//   t(n) = alpha + beta n, n rows of the target model, and a fixed and a proportional part for every draft pass
#pragma once

#include <cstdint>

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

}  // namespace draftproof
