/* Your kernels, tested by draftproof: export any of the seven calls below from a shared library, and run
 *
 *   draftproof regress --library ./libkernels.so
 *
 * docs/your_kernel.md says what is compared with what; `draftproof regress --skeleton cpu DIR` (or cuda) writes a
 * library to begin with. This file needs no other.
 *
 * Exports. draftproof_kernels_describe is required. Of the calls, one that is not exported is not tested.
 *
 * Memory. Pointers to arrays are host memory or device memory, as the description says; the structs themselves are
 * always on the host and are valid until the call returns. The caller allocates everything, the workspace too, which is
 * 256-byte aligned and holds as many bytes as draftproof_kernels_workspace_bytes says. Inputs stay as they are, and
 * nothing but the outputs is written: columns of an output from vocab_size on belong to the caller.
 *
 * Stream. `stream` is a cudaStream_t, NULL the default stream. A call may return before its work is done; the caller
 * waits for the device. Of libraries on the host it is NULL.
 *
 * Rows. A matrix of rows is f32 with `row_stride` elements from one row to the next, at least vocab_size; what stands
 * in the columns from vocab_size on (NaN, 1e30) is padding and must not be read. A logit of -infinity is a masked
 * token. Offsets, ids and parameters are valid, and every row leaves a token.
 *
 * Random numbers. What a row or a request draws depends on its seed and step alone, not on its neighbours, and no two
 * draws of a run have the same seed and step. Which numbers decide is said in the description:
 *   OWN       a generator of the library, keyed with seed and step. Judged by statistics.
 *   GIVEN     those of the arrays `uniforms`, `coins` and `draws`, which the caller has filled: multiples of 2^-24 in
 *             [0, 1), exact as floats. Judged decision by decision.
 *   RECORDED  a generator of the library, which writes the numbers that decided into the same arrays. Judged likewise,
 *             and the numbers must be uniform and independent.
 *   ADDRESSED draftproof's own: Philox4x32-10 with key = seed and counter (index, row, step, purpose)
 *             (reference/random/address.hpp). Judged bit for bit.
 * A number u draws the first token, in order of id, at which the running sum of probabilities is above u times their
 * total. A coin u accepts a draft of probability q under its proposal and p under the target if u q < p.
 *
 * Result. A call returns 0; DRAFTPROOF_KERNELS_UNSUPPORTED for a shape or parameter that the library does not take,
 * which is counted as skipped; any other number is a failure. A parameter that no case tested is named, and the exit
 * code is 4 unless --without names it too. */
#ifndef DRAFTPROOF_KERNELS_H
#define DRAFTPROOF_KERNELS_H

#include <stdint.h>

#if defined(_WIN32)
#define DRAFTPROOF_KERNELS_API __declspec(dllexport)
#else
#define DRAFTPROOF_KERNELS_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define DRAFTPROOF_KERNELS_VERSION 1 /* of this file */
#define DRAFTPROOF_KERNELS_UNSUPPORTED 1

typedef enum { DRAFTPROOF_KERNELS_HOST = 0, DRAFTPROOF_KERNELS_DEVICE = 1 } draftproof_kernels_memory;

typedef enum {
  DRAFTPROOF_KERNELS_OWN = 0,
  DRAFTPROOF_KERNELS_GIVEN = 1,
  DRAFTPROOF_KERNELS_RECORDED = 2,
  DRAFTPROOF_KERNELS_ADDRESSED = 3
} draftproof_kernels_numbers;

typedef struct {
  int32_t version;  /* DRAFTPROOF_KERNELS_VERSION */
  int32_t memory;   /* draftproof_kernels_memory */
  int32_t numbers;  /* draftproof_kernels_numbers; the same for all calls */
  const char* name; /* for reports */
} draftproof_kernels_description;

DRAFTPROOF_KERNELS_API void draftproof_kernels_describe(draftproof_kernels_description* description);

/* Optional: the workspace of "filter", "sample", "verify_chain", "verify_block", "verify_tree", "guidance" or
 * "tree_mask". `rows` are those of its struct; of verification those of target_probs, of tree_mask those of the mask.
 * Not exported: none is given. */
DRAFTPROOF_KERNELS_API int64_t draftproof_kernels_workspace_bytes(const char* call, int64_t rows, int64_t vocab_size);

/* Rows of logits and their parameters, one of each a row. Temperature comes first; min_p, top_k and top_p follow in the
 * order of the library's choice: each filter may see the whole row, or what the ones before it left. */
typedef struct {
  int64_t rows;
  int64_t vocab_size;
  int64_t row_stride;
  const float* logits;      /* [rows, row_stride] */
  const float* temperature; /* [rows]; 0: greedy, the lowest id of the largest logits */
  const int32_t* top_k;     /* [rows]; 0: off */
  const float* top_p;       /* [rows] in (0, 1]; 1: off */
  const float* min_p;       /* [rows] in [0, 1]; 0: off */
} draftproof_kernels_rows;

/* --- Filters: which tokens of a row may be drawn. --- */
typedef struct {
  draftproof_kernels_rows in;
  float* filtered; /* out [rows, row_stride]: logits over temperature (temperature 0: undivided); dropped: -infinity */
  void* workspace;
  int64_t workspace_bytes;
  void* stream;
} draftproof_kernels_filter_call;

/* --- A token of each row, from the distribution that the filters leave. --- */
typedef struct {
  draftproof_kernels_rows in;
  const uint64_t* seeds; /* [rows] */
  const uint32_t* steps; /* [rows] */
  double* uniforms;      /* [rows]: GIVEN in, RECORDED out */
  int32_t* tokens;       /* out [rows] */
  void* workspace;
  int64_t workspace_bytes;
  void* stream;
} draftproof_kernels_sample_call;

/* --- Chain verification of drafts against probabilities (Leviathan et al., arXiv 2211.17192, Algorithm 1). ---
 * Request b has the drafts cu_num_draft_tokens[b], ..., [b + 1] - 1, 0 or more. Draft i of the array was drawn from row
 * i of draft_probs and is judged by row i + b of target_probs; the row after those of its drafts is its bonus row.
 * Accepted is draft after draft until a coin rejects one; a token from norm(max(p - q, 0)) of that row follows, or one
 * of the bonus row where none was rejected. If p - q leaves nothing, the token is drawn from p. */
typedef struct {
  int64_t requests;
  int64_t draft_tokens_total;
  int64_t draft_len_max;
  int64_t vocab_size;
  int64_t row_stride;                 /* of both matrices */
  const int32_t* draft_tokens;        /* [draft_tokens_total] */
  const int32_t* cu_num_draft_tokens; /* [requests + 1], from 0 */
  const float* target_probs;          /* [draft_tokens_total + requests, row_stride] */
  const float* draft_probs;           /* [draft_tokens_total, row_stride]; NULL: q is 1 at the draft, 0 elsewhere */
  const uint64_t* seeds;              /* [requests] */
  const uint32_t* steps;              /* [requests] */
  double* coins;                      /* [draft_tokens_total]: GIVEN in, RECORDED out; of drafts that are reached */
  double* draws;                      /* [requests]: of the token after the accepted drafts, likewise */
  int32_t* tokens;                    /* out [requests, draft_len_max + 1]: accepted drafts, one more token, then -1 */
  int32_t* num_accepted;              /* out [requests] */
  void* workspace;
  int64_t workspace_bytes;
  void* stream;
} draftproof_kernels_verify_chain_call;

/* --- Block verification (Sun et al., arXiv 2403.10444): the drafts of a chain are judged jointly. ---
 * The arrays of chain verification. With x_i the drafts of a request, i = 1..K, p_i and q_i the rows they are judged
 * by and were drawn from:
 *   w_0 = 1, w_i = min(w_{i-1} p_i(x_i) / q_i(x_i), 1)      r_i = max(w_i p_{i+1} - q_{i+1}, 0), S_i its sum
 *   h_i = S_i / (S_i + 1 - w_i), 1 where that is 0 / 0; h_K = w_K
 * The last draft whose coin is below h_i is accepted with all before it, none where there is none. A token from
 * norm(r_i) follows, or of the bonus row after the last draft; where r_i leaves nothing, one from p_{i+1}. */
typedef draftproof_kernels_verify_chain_call draftproof_kernels_verify_block_call;

/* --- Tree verification of drafts, from the root down. ---
 * Request b has the nodes cu_num_draft_tokens[b], ... and the rows cu_num_draft_tokens[b] + b, ... of both matrices:
 * row 0 is the root's, row i + 1 that after its node i. The children of a node stand in order of their number. */
typedef enum {
  /* One coin a node: child j is accepted where the coin lies in [sum of p of the children before it, that with its
   * own). None: a token from p without the children. A child whose token is an earlier child's has no share. */
  DRAFTPROOF_KERNELS_TARGET_ONLY = 0,
  /* Recursive rejection sampling without replacement (arXiv 2402.14160, 2402.12374): child by child a coin u accepts x
   * if u q(x) < p(x), else p becomes norm(max(p - q, 0)) and q norm(q without x); a child that q cannot give is passed
   * over. None: a token from p as it is then. */
  DRAFTPROOF_KERNELS_RRSW = 1
} draftproof_kernels_tree_rule;

typedef struct {
  int64_t requests;
  int64_t draft_tokens_total;
  int64_t draft_len_max; /* the most nodes of a request */
  int64_t vocab_size;
  int64_t row_stride;                 /* of both matrices */
  int32_t rule;                       /* draftproof_kernels_tree_rule */
  const int32_t* draft_tokens;        /* [draft_tokens_total] */
  const int32_t* cu_num_draft_tokens; /* [requests + 1], from 0 */
  const int32_t* parents;             /* [draft_tokens_total]: -1 (the root) or an earlier node of the request */
  const float* target_probs;          /* [draft_tokens_total + requests, row_stride] */
  const float* draft_probs;           /* the same: row r proposes the children of its node; NULL with TARGET_ONLY */
  const uint64_t* seeds;              /* [requests] */
  const uint32_t* steps;              /* [requests] */
  double* coins;   /* [draft_tokens_total + requests]: GIVEN in, RECORDED out; with RRSW that of node i at its row,
                  * i + 1, with TARGET_ONLY that of the row whose children it decides on */
  double* draws;   /* [requests]: of the token after the accepted drafts, likewise */
  int32_t* tokens; /* out [requests, draft_len_max + 1]: accepted drafts, one more token, then -1 */
  int32_t* num_accepted; /* out [requests] */
  int32_t* path;         /* out [requests, draft_len_max]: the accepted nodes, then -1 */
  void* workspace;
  int64_t workspace_bytes;
  void* stream;
} draftproof_kernels_verify_tree_call;

/* --- Classifier-free guidance: out = u + scale (c - u); c where the scale is 1. --- */
typedef struct {
  int64_t rows;
  int64_t vocab_size;
  int64_t row_stride;         /* of all three matrices */
  const float* conditional;   /* [rows, row_stride] */
  const float* unconditional; /* [rows, row_stride]; not masked where `conditional` is not */
  const float* scale;         /* [rows] */
  float* out;                 /* [rows, row_stride]; -infinity where `conditional` is */
  void* workspace;
  int64_t workspace_bytes;
  void* stream;
} draftproof_kernels_guidance_call;

/* --- The attention mask of draft trees. ---
 * Request b has the rows cu_num_draft_tokens[b] + b, ...: row 0 is the root, row i + 1 its node i. Bit j % 32 of word
 * j / 32 of a row is set where the row's node attends to row j of the same request: itself, its ancestors, the root. */
typedef struct {
  int64_t requests;
  int64_t draft_tokens_total;
  int64_t draft_len_max;
  const int32_t* cu_num_draft_tokens; /* [requests + 1], from 0 */
  const int32_t* parents;             /* [draft_tokens_total]: -1 (the root) or an earlier node of the request */
  int64_t words_per_row;              /* at least draft_len_max / 32 + 1; unused bits are 0 */
  uint32_t* mask;                     /* out [draft_tokens_total + requests, words_per_row] */
  void* workspace;
  int64_t workspace_bytes;
  void* stream;
} draftproof_kernels_tree_mask_call;

DRAFTPROOF_KERNELS_API int draftproof_kernels_filter(const draftproof_kernels_filter_call* call);
DRAFTPROOF_KERNELS_API int draftproof_kernels_sample(const draftproof_kernels_sample_call* call);
DRAFTPROOF_KERNELS_API int draftproof_kernels_verify_chain(const draftproof_kernels_verify_chain_call* call);
DRAFTPROOF_KERNELS_API int draftproof_kernels_verify_block(const draftproof_kernels_verify_block_call* call);
DRAFTPROOF_KERNELS_API int draftproof_kernels_verify_tree(const draftproof_kernels_verify_tree_call* call);
DRAFTPROOF_KERNELS_API int draftproof_kernels_guidance(const draftproof_kernels_guidance_call* call);
DRAFTPROOF_KERNELS_API int draftproof_kernels_tree_mask(const draftproof_kernels_tree_mask_call* call);

#ifdef __cplusplus
}
#endif

#endif
