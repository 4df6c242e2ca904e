// The calls of draftproof_kernels.h answered by libdraftproof: a library whose numbers are draftproof's own.
#include <cstdint>
#include <vector>

#include "gpu/draftproof.h"
#include "gpu/draftproof_kernels.h"

namespace {

const draftproof_settings kReference{DRAFTPROOF_REFERENCE, nullptr, 0, 0, 0};

// Arguments of libdraftproof that all calls of verification share.
template <class Call, class Verify>
int verify(const Call& call, draftproof_verify_arguments a, Verify function) {
  const std::vector<std::int64_t> offsets(call.cu_num_draft_tokens, call.cu_num_draft_tokens + call.requests + 1);
  std::vector<std::int32_t> status(static_cast<std::size_t>(call.requests));
  a.requests = call.requests;
  a.draft_tokens_total = call.draft_tokens_total;
  a.draft_len_max = call.draft_len_max;
  a.vocab_size = call.vocab_size;
  a.draft_tokens = call.draft_tokens;
  a.cu_num_draft_tokens = offsets.data();
  a.target_kind = DRAFTPROOF_PROBABILITIES;
  a.target = {call.target_probs, call.row_stride, DRAFTPROOF_F32};
  a.proposal_kind = call.draft_probs == nullptr ? DRAFTPROOF_ONE_HOT : DRAFTPROOF_PROBABILITIES;
  if (call.draft_probs != nullptr) a.proposal = {call.draft_probs, call.row_stride, DRAFTPROOF_F32};
  a.randomness = {call.seeds, call.steps};
  a.num_accepted = call.num_accepted;
  a.tokens = call.tokens;
  a.status = status.data();
  return function(&a, &kReference);
}

}  // namespace

void draftproof_kernels_describe(draftproof_kernels_description* description) {
  *description = {DRAFTPROOF_KERNELS_VERSION, DRAFTPROOF_KERNELS_HOST, DRAFTPROOF_KERNELS_ADDRESSED, "libdraftproof"};
}

int draftproof_kernels_sample(const draftproof_kernels_sample_call* call) {
  const draftproof_kernels_rows& in = call->in;
  std::vector<std::int32_t> status(static_cast<std::size_t>(in.rows));
  draftproof_sample_arguments a{};
  a.rows = a.requests = in.rows;
  a.vocab_size = in.vocab_size;
  a.logits = {in.logits, in.row_stride, DRAFTPROOF_F32};
  a.parameters.temperature = in.temperature;
  a.parameters.top_k = in.top_k;
  a.parameters.top_p = in.top_p;
  a.parameters.min_p = in.min_p;
  a.randomness = {call->seeds, call->steps};
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = call->tokens;
  a.status = status.data();
  return draftproof_sample(&a, &kReference);
}

int draftproof_kernels_verify_chain(const draftproof_kernels_verify_chain_call* call) {
  return verify(*call, {}, draftproof_verify_chain);
}

int draftproof_kernels_verify_block(const draftproof_kernels_verify_block_call* call) {
  return verify(*call, {}, draftproof_verify_block);
}

int draftproof_kernels_verify_tree(const draftproof_kernels_verify_tree_call* call) {
  draftproof_verify_arguments a{};
  a.parents = call->parents;
  a.tree_rule = call->rule == DRAFTPROOF_KERNELS_RRSW ? DRAFTPROOF_RRSW : DRAFTPROOF_TARGET_ONLY;
  a.path = call->path;
  return verify(*call, a, draftproof_verify_tree);
}
