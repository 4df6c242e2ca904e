// The sampling parameters of requests on the device, and which of their values are refused (twin: validate in
// reference/logits/parameters.hpp).
#pragma once

#include <cstdint>

#include "gpu/device.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Each [requests] or null, which is off.
struct ParametersView {
  Global<const float> temperature;
  Global<const std::int32_t> top_k;
  Global<const float> top_p;
  Global<const float> min_p;
  Global<const std::uint8_t> filter_order;
  Global<const std::uint8_t> ties;
  Global<const std::uint8_t> top_p_rule;
  Global<const float> repetition_penalty;
  Global<const float> frequency_penalty;
  Global<const float> presence_penalty;
  Global<const float> guidance_scale;
  Global<const std::uint8_t> nan_policy;
};

// Those of one request.
struct Parameters {
  float temperature;
  std::int32_t top_k;
  float top_p;
  float min_p;
  bool top_k_first;
  bool keeps_ties;
  std::uint8_t top_p_rule;
  float repetition_penalty;
  float frequency_penalty;
  float presence_penalty;
  float guidance_scale;
  bool nan_is_masked;
  bool valid;  // all of them lie in their ranges

  __device__ bool filters() const { return top_k != 0 || top_p != 1.0f || min_p != 0.0f; }
  __device__ bool penalises() const {
    return repetition_penalty != 1.0f || frequency_penalty != 0.0f || presence_penalty != 0.0f;
  }
};

inline ParametersView view_of(OperationMemory& memory, const draftproof_parameters& p, std::int64_t requests) {
  return {memory.input("temperature", p.temperature, requests),
          memory.input("top_k", p.top_k, requests),
          memory.input("top_p", p.top_p, requests),
          memory.input("min_p", p.min_p, requests),
          memory.input("filter_order", p.filter_order, requests),
          memory.input("ties", p.ties, requests),
          memory.input("top_p_rule", p.top_p_rule, requests),
          memory.input("repetition_penalty", p.repetition_penalty, requests),
          memory.input("frequency_penalty", p.frequency_penalty, requests),
          memory.input("presence_penalty", p.presence_penalty, requests),
          memory.input("guidance_scale", p.guidance_scale, requests),
          memory.input("nan_policy", p.nan_policy, requests)};
}

template <class T>
__device__ inline T value_of(Global<const T> values, std::int64_t at, T off) {
  return values == nullptr ? off : static_cast<T>(values[at]);
}

__device__ inline bool is_finite(float x) {
  return x >= -0x1.fffffep127f && x <= 0x1.fffffep127f;
}

__device__ inline Parameters parameters_of(const ParametersView& view, std::int64_t request) {
  const std::uint8_t order = value_of<std::uint8_t>(view.filter_order, request, 0);
  const std::uint8_t ties = value_of<std::uint8_t>(view.ties, request, 0);
  const std::uint8_t top_p_rule = value_of<std::uint8_t>(view.top_p_rule, request, 0);
  const std::uint8_t nan_policy = value_of<std::uint8_t>(view.nan_policy, request, 0);
  Parameters p{value_of(view.temperature, request, 1.0f),
               value_of<std::int32_t>(view.top_k, request, 0),
               value_of(view.top_p, request, 1.0f),
               value_of(view.min_p, request, 0.0f),
               order != 0,
               ties != 0,
               top_p_rule,
               value_of(view.repetition_penalty, request, 1.0f),
               value_of(view.frequency_penalty, request, 0.0f),
               value_of(view.presence_penalty, request, 0.0f),
               value_of(view.guidance_scale, request, 1.0f),
               nan_policy != 0,
               order <= 1 && ties <= 1 && top_p_rule <= 3 && nan_policy <= 1};
  p.valid = p.valid && p.temperature >= 0.0f && is_finite(p.temperature) && p.top_p > 0.0f && p.top_p <= 1.0f &&
            p.min_p >= 0.0f && p.min_p <= 1.0f && p.top_k >= 0 && p.repetition_penalty > 0.0f &&
            is_finite(p.repetition_penalty) && is_finite(p.frequency_penalty) && is_finite(p.presence_penalty) &&
            is_finite(p.guidance_scale);
  return p;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
