// Chain verification on a GPU, one thread a request: a library to begin with. Put your own kernels into it, export
// further calls of draftproof_kernels.h, and run ./ci.sh.
#include <cuda_runtime.h>

#include <cstdint>

#include "draftproof_kernels.h"

namespace {

// A token from norm(max(p - scale q, 0)), or from p where that leaves nothing. q is a row of the proposal; NULL: 1 at
// `draft`, 0 elsewhere. Two passes: the total, then the first token above u times the total.
__device__ std::int32_t draw_recovered(const float* p, const float* q, float scale, std::int32_t draft,
                                       std::int64_t vocab_size, double u) {
  const auto left = [&](std::int64_t i) {
    const float proposed = q != nullptr ? q[i] : i == draft ? 1.0f : 0.0f;
    return fmaxf(p[i] - scale * proposed, 0.0f);
  };
  double total = 0.0;
  for (std::int64_t i = 0; i < vocab_size; ++i) total += left(i);
  if (total == 0.0) {
    scale = 0.0f;
    for (std::int64_t i = 0; i < vocab_size; ++i) total += left(i);
  }
  double sum = 0.0;
  std::int32_t last = 0;
  for (std::int32_t i = 0; i < vocab_size; ++i) {
    const float mass = left(i);
    if (mass == 0.0f) continue;
    last = i;
    sum += mass;
    if (sum > u * total) break;
  }
  return last;
}

__global__ void verify_chain(draftproof_kernels_verify_chain_call call) {
  const std::int64_t b = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (b >= call.requests) return;
  const std::int32_t begin = call.cu_num_draft_tokens[b];
  const std::int32_t draft_len = call.cu_num_draft_tokens[b + 1] - begin;
  std::int32_t* const tokens = call.tokens + b * (call.draft_len_max + 1);
  for (std::int64_t place = 0; place <= call.draft_len_max; ++place) tokens[place] = -1;
  std::int32_t place = 0;
  float scale = 0.0f;  // of the proposal at the end: a bonus row has none
  const float* p = nullptr;
  const float* q = nullptr;
  std::int32_t draft = 0;
  for (;; ++place) {
    p = call.target_probs + (begin + b + place) * call.row_stride;
    if (place == draft_len) {
      q = nullptr;
      scale = 0.0f;
      break;
    }
    draft = call.draft_tokens[begin + place];
    q = call.draft_probs == nullptr ? nullptr : call.draft_probs + (begin + place) * call.row_stride;
    scale = 1.0f;
    if (!(call.coins[begin + place] * (q == nullptr ? 1.0f : q[draft]) < p[draft])) break;
    tokens[place] = draft;
  }
  tokens[place] = draw_recovered(p, q, scale, draft, call.vocab_size, call.draws[b]);
  call.num_accepted[b] = place;
}

}  // namespace

void draftproof_kernels_describe(draftproof_kernels_description* description) {
  *description = {DRAFTPROOF_KERNELS_VERSION, DRAFTPROOF_KERNELS_DEVICE, DRAFTPROOF_KERNELS_GIVEN,
                  "naive CUDA chain verification"};
}

int draftproof_kernels_verify_chain(const draftproof_kernels_verify_chain_call* call) {
  constexpr int kThreads = 64;
  const auto blocks = static_cast<unsigned>((call->requests + kThreads - 1) / kThreads);
  verify_chain<<<blocks, kThreads, 0, static_cast<cudaStream_t>(call->stream)>>>(*call);
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
