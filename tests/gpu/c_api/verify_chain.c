/* The C interface from C: a chain is verified, a tree's mask is made and tokens are sampled, by the reference and by
 * the kernels on the CPU executor. Prints what came out; exit code 0 where both agree in every bit, else 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/draftproof.h"

enum { kRequests = 2, kDrafts = 3, kDraftLenMax = 2, kVocabSize = 5, kRows = kDrafts + kRequests };

typedef struct {
  int32_t num_accepted[kRequests];
  int32_t chain_tokens[kRequests][kDraftLenMax + 1];
  float chain_logprobs[kRequests][kDraftLenMax + 1];
  int32_t chain_status[kRequests];

  int32_t depths[kRows];
  uint32_t mask[kRows];
  int32_t mask_status[kRequests];

  int32_t sampled[kRequests];
  float sampled_logprobs[kRequests];
  int32_t sampled_status[kRequests];
} results;

/* Request 0 has two drafts, request 1 has one. */
static const int64_t kCuNumDraftTokens[kRequests + 1] = {0, 2, 3};
static const int32_t kDraftTokens[kDrafts] = {3, 1, 4};
static const int32_t kParents[kDrafts] = {-1, 0, -1};
static const uint64_t kSeed[kRequests] = {11, 12};
static const uint32_t kStep[kRequests] = {0, 7};

/* Rows of probabilities: request 0 has rows 0 to 2, its bonus row last; request 1 has rows 3 and 4. */
static const float kTarget[kRows][kVocabSize] = {{0.125f, 0.125f, 0.125f, 0.5f, 0.125f},
                                                 {0.5f, 0.0f, 0.25f, 0.125f, 0.125f},
                                                 {0.25f, 0.25f, 0.25f, 0.125f, 0.125f},
                                                 {0.0f, 0.0f, 0.25f, 0.25f, 0.5f},
                                                 {0.0f, 1.0f, 0.0f, 0.0f, 0.0f}};
static const float kProposal[kDrafts][kVocabSize] = {
    {0.25f, 0.125f, 0.125f, 0.25f, 0.25f}, {0.25f, 0.25f, 0.25f, 0.125f, 0.125f}, {0.25f, 0.0f, 0.25f, 0.0f, 0.5f}};
static const float kLogits[kRequests][kVocabSize] = {{1.0f, 2.0f, 3.0f, 2.0f, 1.0f}, {0.0f, -1.0f, 0.5f, 4.0f, 0.0f}};
static const float kTemperature[kRequests] = {0.8f, 0.0f}; /* the second request is greedy */

static int check(int code, const char* call) {
  if (code != DRAFTPROOF_SUCCESS) fprintf(stderr, "%s: code %d, %s\n", call, code, draftproof_error_message());
  return code == DRAFTPROOF_SUCCESS;
}

/* Scratch as calls want it; `bytes` is what draftproof_*_workspace_bytes said. */
static void* allocate_workspace(int64_t bytes) {
  return bytes < 0 ? NULL : aligned_alloc(256, ((size_t)bytes / 256 + 1) * 256);
}

static int verify_chain(const draftproof_settings* settings, results* out) {
  draftproof_verify_arguments a = {0};
  a.requests = kRequests;
  a.draft_tokens_total = kDrafts;
  a.draft_len_max = kDraftLenMax;
  a.vocab_size = kVocabSize;
  a.draft_tokens = kDraftTokens;
  a.cu_num_draft_tokens = kCuNumDraftTokens;
  a.target_kind = DRAFTPROOF_PROBABILITIES;
  a.target = (draftproof_rows){kTarget, kVocabSize, DRAFTPROOF_F32};
  a.proposal_kind = DRAFTPROOF_PROBABILITIES;
  a.proposal = (draftproof_rows){kProposal, kVocabSize, DRAFTPROOF_F32};
  a.randomness = (draftproof_randomness){kSeed, kStep};
  a.num_accepted = out->num_accepted;
  a.tokens = &out->chain_tokens[0][0];
  a.logprobs = &out->chain_logprobs[0][0];
  a.status = out->chain_status;
  a.workspace_bytes = draftproof_verify_chain_workspace_bytes(&a);
  a.workspace = allocate_workspace(a.workspace_bytes);
  const int succeeded = check(draftproof_verify_chain(&a, settings), "verify_chain");
  free(a.workspace);
  return succeeded;
}

static int make_tree_mask(const draftproof_settings* settings, results* out) {
  draftproof_tree_mask_arguments a = {0};
  a.requests = kRequests;
  a.draft_tokens_total = kDrafts;
  a.draft_len_max = kDraftLenMax;
  a.cu_num_draft_tokens = kCuNumDraftTokens;
  a.parents = kParents;
  a.depths = out->depths;
  a.mask = out->mask;
  a.words_per_row = 1;
  a.status = out->mask_status;
  return check(draftproof_tree_mask(&a, settings), "tree_mask");
}

static int sample(const draftproof_settings* settings, results* out) {
  draftproof_sample_arguments a = {0};
  a.rows = kRequests;
  a.requests = kRequests;
  a.vocab_size = kVocabSize;
  a.logits = (draftproof_rows){kLogits, kVocabSize, DRAFTPROOF_F32};
  a.parameters.temperature = kTemperature;
  a.randomness = (draftproof_randomness){kSeed, kStep};
  a.sampler = DRAFTPROOF_INVERSE;
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = out->sampled;
  a.logprobs = out->sampled_logprobs;
  a.status = out->sampled_status;
  a.workspace_bytes = draftproof_sample_workspace_bytes(&a);
  a.workspace = allocate_workspace(a.workspace_bytes);
  const int succeeded = check(draftproof_sample(&a, settings), "sample");
  free(a.workspace);
  return succeeded;
}

static int run(int32_t executor, results* out) {
  draftproof_settings settings = {0};
  settings.executor = executor;
  memset(out, 0xa5, sizeof(*out));
  return verify_chain(&settings, out) && make_tree_mask(&settings, out) && sample(&settings, out);
}

int main(void) {
  static results reference;
  static results kernels;
  if (!run(DRAFTPROOF_REFERENCE, &reference) || !run(DRAFTPROOF_SIMT, &kernels)) return 1;
  for (int b = 0; b < kRequests; ++b) {
    printf("request %d: %d accepted, tokens", b, (int)kernels.num_accepted[b]);
    for (int i = 0; i <= kDraftLenMax; ++i) printf(" %d", (int)kernels.chain_tokens[b][i]);
    printf("; sampled %d, %s\n", (int)kernels.sampled[b], draftproof_row_status_text(kernels.sampled_status[b]));
  }
  for (int r = 0; r < kRows; ++r)
    printf("row %d: depth %d, mask %x\n", r, (int)kernels.depths[r], (unsigned)kernels.mask[r]);
  const int equal = memcmp(&reference, &kernels, sizeof(reference)) == 0;
  printf("reference and kernels are %s\n", equal ? "equal" : "different");

  /* What the host can see is refused before anything runs, with a reason. */
  draftproof_tree_mask_arguments invalid = {0};
  const draftproof_settings settings = {0};
  invalid.requests = -1;
  const int code = draftproof_tree_mask(&invalid, &settings);
  printf("an invalid call: code %d, %s\n", code, draftproof_error_message());
  return equal && code == DRAFTPROOF_USAGE ? 0 : 1;
}
