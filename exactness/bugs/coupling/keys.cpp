// Decisions of one request that share a key.
#include "exactness/bugs/coupling/family.hpp"
#include "exactness/bugs/coupling/key_faults.hpp"
#include "exactness/bugs/fixed_block.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "reference/verify/block.hpp"

namespace draftproof {
namespace {

constexpr auto kVerifyBlock = [](auto&&... arguments) { return verify_block(arguments...); };
RandomKey constant_step(RandomKey key) {
  key.address.step = 0;
  return key;
}
RandomKey one_target_sample_a_step(RandomKey key) {
  if (key.address.purpose == Purpose::target_sample) key.address.row = 0;
  return key;
}
RandomKey one_coin_a_step(RandomKey key) {
  if (key.address.purpose == Purpose::accept) key.address.row = 0;
  return key;
}

Bug coin_draws_the_residual() {
  return {"B03",
          "vllm-ascend #16370",
          "the uniform that rejected the draft is used again to draw the recovered token",
          {key_audit_hunt(residual_at_the_coin, Sampler::inverse, kVerifyChain),
           distribution_hunt({}, residual_at_the_coin, Sampler::inverse, kVerifyChain)},
          nullptr,
          {},
          [](const FixedRowsPointer& rows) { return speculative_sampler(rows, residual_at_the_coin, {}); }};
}

Bug position_keys_of_blocks() {
  return {"B04",
          "vLLM, block verification",
          "coins are keyed by position alone, so that a step draws again the coins that the step before drew ahead",
          {key_audit_hunt(coin_by_position, Sampler::inverse, kVerifyBlock),
           distribution_hunt({.vocab_size = 2, .draft_len = 2, .steps = 2}, coin_by_position, Sampler::inverse,
                             kVerifyBlock)},
          // The first step's tokens are right; the second token of the request comes from the second step if it must.
          nullptr,
          {},
          [](const FixedRowsPointer& rows) {
            return speculative_sampler(rows, coin_by_position,
                                       {.draft_len = 2, .position = 1, .verify = verify_fixed_block(rows)});
          }};
}

Bug offset_never_advances() {
  return {"B05",
          "TensorRT-Edge-LLM #211",
          "the Philox offset is the same in every step",
          {key_audit_hunt(constant_step, Sampler::inverse, kVerifyChain),
           distribution_hunt({.vocab_size = 2, .steps = 2}, constant_step, Sampler::inverse, kVerifyChain)},
          nullptr,
          {},
          [](const FixedRowsPointer& rows) {
            return plain_sampler(rows, [](std::uint64_t draw) {
              return constant_step({0, {0, 0, static_cast<std::uint32_t>(draw), Purpose::target_sample}});
            });
          }};
}

Bug one_seed_for_a_step() {
  return {"B11",
          "FastDeploy #5568",
          "both tokens of a step are sampled with one random number",
          {key_audit_hunt(one_target_sample_a_step, Sampler::inverse, kVerifyMatch),
           distribution_hunt({}, one_target_sample_a_step, Sampler::inverse, kVerifyMatch)},
          nullptr,
          {},
          [](const FixedRowsPointer& rows) {
            return plain_sampler(rows, [](std::uint64_t draw) {
              const auto row = static_cast<std::uint32_t>(draw % 2);
              return one_target_sample_a_step({derive_seed(0, draw / 2), {0, row, 0, Purpose::target_sample}});
            });
          }};
}

Bug one_coin_for_all_positions() {
  return {"B15",
          "a third-party verifier",
          "one uniform judges every draft of the request's step",
          {key_audit_hunt(one_coin_a_step, Sampler::inverse, kVerifyChain),
           distribution_hunt({.draft_len = 2}, one_coin_a_step, Sampler::inverse, kVerifyChain)},
          nullptr,
          {},
          [](const FixedRowsPointer& rows) {
            return speculative_sampler(rows, one_coin_a_step, {.draft_len = 2, .position = 1});
          }};
}

}  // namespace

std::vector<Bug> shared_key_bugs() {
  return {coin_draws_the_residual(), position_keys_of_blocks(), offset_never_advances(), one_seed_for_a_step(),
          one_coin_for_all_positions()};
}

}  // namespace draftproof
