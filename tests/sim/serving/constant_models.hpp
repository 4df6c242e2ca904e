// The simplest acceptance model and a cost of a few constants: numbers that one can calculate with.
#pragma once

#include "engine/scheduler/step_cost.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/acceptance/rates.hpp"

namespace draftproof::testing {

// Every draft is accepted with probability `rate`, given that those before it were.
struct ConstantAcceptance final : AcceptanceModel {
  explicit ConstantAcceptance(double acceptance_rate, std::uint64_t its_seed = 7)
      : rate(acceptance_rate), seed(its_seed) {}

  double rate;
  std::uint64_t seed;

  AcceptanceState begin(std::uint64_t request) const override { return {request, 0, 0}; }
  std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t,
                        std::int32_t depth) const override {
    for (std::int32_t i = 0; i < depth; ++i) {
      const RandomBlock block =
          philox_block(seed, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(place.output_len),
                       static_cast<std::uint32_t>(state.seed), 0x7e57);
      if (uniform_53(high_half(block)) >= rate) return i;
    }
    return depth;
  }
  std::vector<double> survival(std::int32_t, std::int32_t depth, std::int32_t) const override {
    std::vector<double> rates(static_cast<std::size_t>(depth), rate);
    return survival_of(rates);
  }
};

inline LinearCost slow_cost() {
  LinearCost cost;
  cost.fixed_ns = 5e6;
  cost.row_ns = 30e3;
  cost.kv_token_ns = 40.0;
  cost.draft_pass_ns = 4e5;
  cost.engine_ns = 1e6;
  return cost;
}

}  // namespace draftproof::testing
