// Decisions of one request that share a key.
#include "exactness/bugs/coupling/key_faults.hpp"
#include "exactness/bugs/families.hpp"
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

}  // namespace

std::vector<Bug> shared_key_bugs() {
  return {
      {.id = "B03",
       .source = "vllm-ascend #16370",
       .fault = "the uniform that rejected the draft is used again to draw the recovered token",
       .hunts = {key_audit_hunt(residual_at_the_coin, Sampler::inverse, kVerifyChain),
                 distribution_hunt({}, residual_at_the_coin, Sampler::inverse, kVerifyChain)},
       .rows_sampler =
           [](const FixedRowsPointer& rows) { return speculative_sampler(rows, residual_at_the_coin, {}); }},
      {.id = "B04",
       .source = "vLLM, block verification",
       .fault =
           "coins are keyed by position alone, so that a step draws again the coins that the step before drew ahead",
       .hunts = {key_audit_hunt(coin_by_position, Sampler::inverse, kVerifyBlock),
                 distribution_hunt({.vocab_size = 2, .draft_len = 2, .steps = 2}, coin_by_position, Sampler::inverse,
                                   kVerifyBlock)},
       // The first step's tokens are right; the second token of the request comes from the second step if it must.
       .rows_sampler =
           [](const FixedRowsPointer& rows) {
             return speculative_sampler(rows, coin_by_position,
                                        {.draft_len = 2, .position = 1, .verify = verify_fixed_block(rows)});
           }},
      {.id = "B05",
       .source = "TensorRT-Edge-LLM #211",
       .fault = "the Philox offset is the same in every step",
       .hunts = {key_audit_hunt(constant_step, Sampler::inverse, kVerifyChain),
                 distribution_hunt({.vocab_size = 2, .steps = 2}, constant_step, Sampler::inverse, kVerifyChain)},
       .rows_sampler =
           [](const FixedRowsPointer& rows) {
             return plain_sampler(rows, [](std::uint64_t draw) {
               return constant_step({0, {0, 0, static_cast<std::uint32_t>(draw), Purpose::target_sample}});
             });
           }},
      {.id = "B11",
       .source = "FastDeploy #5568",
       .fault = "both tokens of a step are sampled with one random number",
       .hunts = {key_audit_hunt(one_target_sample_a_step, Sampler::inverse, kVerifyMatch),
                 distribution_hunt({}, one_target_sample_a_step, Sampler::inverse, kVerifyMatch)},
       .rows_sampler =
           [](const FixedRowsPointer& rows) {
             return plain_sampler(rows, [](std::uint64_t draw) {
               const auto row = static_cast<std::uint32_t>(draw % 2);
               return one_target_sample_a_step({derive_seed(0, draw / 2), {0, row, 0, Purpose::target_sample}});
             });
           }},
      {.id = "B15",
       .source = "a third-party verifier",
       .fault = "one uniform judges every draft of the request's step",
       .hunts = {key_audit_hunt(one_coin_a_step, Sampler::inverse, kVerifyChain),
                 distribution_hunt({.draft_len = 2}, one_coin_a_step, Sampler::inverse, kVerifyChain)},
       .rows_sampler = [](const FixedRowsPointer& rows) {
         return speculative_sampler(rows, one_coin_a_step, {.draft_len = 2, .position = 1});
       }}};
}

}  // namespace draftproof
