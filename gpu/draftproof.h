/* The C interface: kernels from logits to emitted tokens, and the CPU reference that they equal bit for bit, for an
 * engine in any language. The same argument structs serve C++ (gpu/api.hpp).
 *
 * Memory. Every pointer inside an argument struct is memory of the executor that runs the call: host memory for
 * DRAFTPROOF_REFERENCE and DRAFTPROOF_SIMT, device memory for DRAFTPROOF_CUDA. The structs themselves and the settings
 * are on the host and are read before the call returns. Nothing is allocated for the caller: a call that needs scratch
 * says how much (draftproof_*_workspace_bytes) and takes `workspace`, 256-byte aligned. NULL switches an optional input
 * or output off.
 *
 * Rows. A matrix of rows is (data, row_stride in elements, dtype); columns from vocab_size on are padding and are never
 * read. A batch has `requests`; parameters, seeds, steps, histories and the lists of constraints belong to a request
 * and are always indexed by it. Row r of a call belongs to request row_request[r], or to request r where that is NULL.
 * All offsets are 64 bits wide: rows times stride may exceed 2^32.
 *
 * Sizes. Counts, strides and lengths are 0 or more. No array, with its strides, and no workspace spans more than
 * DRAFTPROOF_BYTES_MAX bytes: rows * row_stride * bytes of an element of a matrix, rows * stride * 4 of an output or a
 * mask, layers * layer_stride_bytes and num_slots * slot_stride_bytes of a cache. Requests, history_len_max and the
 * blocks of a launch (rows * ceil(vocab_size / 4096); of block verification requests * (draft_len_max + 1) of these; of
 * kv_commit with a path requests * layers * ceil(slot_bytes / 128)) are at most 2^31 - 1. vocab_size is at most 2^19,
 * os_threads at most 1024.
 *
 * Errors. What the host can see (a shape, a stride, a size, a NULL, a dtype, a workspace too small, no GPU) is refused
 * before anything runs, by every executor alike: the call returns a code other than 0, draftproof_*_workspace_bytes
 * returns -1, and draftproof_error_message() says what was expected. What only the data shows (a NaN, an id outside the
 * vocabulary, an offset outside its array, a row with nothing left) is reported per row in `status` [rows], or per
 * request for the verifiers: its tokens are then DRAFTPROOF_NO_TOKEN, nothing of it is emitted, and the other rows are
 * as if it were not there. If several codes apply to a row, the highest is reported. A request has the code of the
 * first row that its verification comes to and that has one, a target row before its proposal row. Block verification
 * looks at the rows of all drafts: the highest code of rows of logits, then that of probabilities.
 *
 * Offsets and indices. No value in an array makes a call read or write outside of the arrays that it was given; what
 * leads there has status DRAFTPROOF_ROW_BAD_ID.
 *   cu_num_draft_tokens   from 0, ascending, to draft_tokens_total. An offset outside [0, draft_tokens_total], or below
 *                         an earlier one inside, is invalid; a request has the status if one of its two offsets is, if
 *                         it is the first and does not begin at 0, the last and does not end at the total, or longer
 *                         than draft_len_max.
 *   list offsets          list b is [offsets[b], offsets[b + 1]), inside the array and of 0 or more elements. A list
 *                         that is looked at for a row and is not so gives the row the status.
 *   row_request           in [0, requests).
 *   parents               -1 or an earlier node.
 *   num_accepted, path    no more than the request's drafts; nodes that ascend, then -1.
 *   slots                 in [0, num_slots), those of one request different. Requests that name the same slot are the
 *                         caller's mistake, which is not looked for.
 *   kv_len                in [0, 2^62).
 *
 * Guarantee. All outputs are the same bits for every executor that has the call, every block size and every batch that
 * the row sits in. Randomness is addressed: Philox4x32-10 with key = seed and counter (index, row, step, purpose); see
 * reference/random/address.hpp. A step number must not be used twice for a seed.
 *
 * Functions of one executor may be called from several threads at once. The CUDA calls are asynchronous on `stream`. */
#ifndef DRAFTPROOF_H
#define DRAFTPROOF_H

#include <stdint.h>

#if defined(_WIN32)
#define DRAFTPROOF_API
#else
#define DRAFTPROOF_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define DRAFTPROOF_ABI_VERSION 4 /* rises when a struct or a call changes; new ones leave it as it is */
#define DRAFTPROOF_NO_TOKEN (-1)
#define DRAFTPROOF_TREE_NODES_MAX 1024          /* of one request's draft tree */
#define DRAFTPROOF_BYTES_MAX (INT64_C(1) << 60) /* of one array with its strides, and of a workspace */

typedef enum { DRAFTPROOF_REFERENCE = 0, DRAFTPROOF_SIMT = 1, DRAFTPROOF_CUDA = 2 } draftproof_executor;
typedef enum { DRAFTPROOF_F32 = 0, DRAFTPROOF_F16 = 1, DRAFTPROOF_BF16 = 2 } draftproof_dtype;

/* What a call returns. */
typedef enum {
  DRAFTPROOF_SUCCESS = 0,
  DRAFTPROOF_USAGE = 1,      /* an invalid argument */
  DRAFTPROOF_INPUT = 2,      /* invalid input */
  DRAFTPROOF_INTERNAL = 3,   /* a bug of ours, or a fault that the CPU executor found in a kernel */
  DRAFTPROOF_UNAVAILABLE = 4 /* this build or this machine lacks the executor, or the executor lacks the call */
} draftproof_result;

/* What `status` says of a row or of a request; which of several: see Errors. */
typedef enum {
  DRAFTPROOF_ROW_OK = 0,
  DRAFTPROOF_ROW_NOTHING_LEFT = 1,    /* every token is masked, or far below every limit */
  DRAFTPROOF_ROW_ALL_ZERO = 2,        /* every probability is 0 */
  DRAFTPROOF_ROW_BAD_SUM = 3,         /* the probabilities sum to more than 3 */
  DRAFTPROOF_ROW_LOGIT_TOO_LARGE = 4, /* a logit over the temperature is above 2^29 */
  DRAFTPROOF_ROW_INFINITE_LOGIT = 5,  /* +infinity, as given or after bias, penalties and temperature */
  DRAFTPROOF_ROW_NAN_LOGIT = 6,
  DRAFTPROOF_ROW_BAD_PROBABILITY = 7, /* not a number in [0, 1] */
  DRAFTPROOF_ROW_BAD_GUIDANCE = 8,    /* +infinity, or a token that only the unconditional row masks, or overflow */
  DRAFTPROOF_ROW_BAD_ID = 9,          /* a token id, an offset or an index outside its range; see above */
  DRAFTPROOF_ROW_BAD_PARAMETER = 10   /* a sampling parameter outside its range */
} draftproof_row_status;

typedef struct {
  int32_t executor;      /* draftproof_executor */
  void* stream;          /* cudaStream_t; NULL: the default stream. Ignored by the others */
  int32_t block_threads; /* 0: each kernel's own choice; else 128, 256 or 512 threads a block */
  int32_t os_threads;    /* simt: OS threads; 0: 1 */
  uint64_t seed;         /* simt: the order in which threads and blocks run. No result depends on it */
} draftproof_settings;

typedef struct {
  const void* data;   /* NULL: absent */
  int64_t row_stride; /* elements from one row to the next, at least vocab_size */
  int32_t dtype;      /* draftproof_dtype */
} draftproof_rows;

/* Sampling parameters, each [requests] or NULL for "off". */
typedef struct {
  const float* temperature;        /* 0: greedy; NULL: 1 */
  const int32_t* top_k;            /* 0: off */
  const float* top_p;              /* (0, 1]; 1: off */
  const float* min_p;              /* [0, 1]; 0: off */
  const uint8_t* filter_order;     /* 0: joint, 1: top_k_first (reference/logits/filters.hpp) */
  const uint8_t* ties;             /* 0: exact_k, 1: keep_all */
  const uint8_t* top_p_rule;       /* 0: before, 1: up_to, 2: through, 3: ascending (filters.hpp, too) */
  const float* repetition_penalty; /* 1: off */
  const float* frequency_penalty;  /* 0: off */
  const float* presence_penalty;   /* 0: off */
  const float* guidance_scale;     /* 1: the conditional logits, bit for bit */
  const uint8_t* nan_policy;       /* 0: error, 1: as -infinity */
} draftproof_parameters;

/* What may not be drawn, and the history that penalties, bad words and min_tokens look at. A list of lists is one array
 * with its length and offsets: list b is [offsets[b], offsets[b + 1]). */
typedef struct {
  const uint32_t* allowed_mask; /* [rows, allowed_mask_stride]: bit j of word w allows token 32 w + j; NULL: all */
  int64_t allowed_mask_stride;  /* words, at least ceil(vocab_size / 32) */

  const int32_t* allowed_ids; /* [allowed_ids_count]: the only ids allowed; an empty list is no constraint */
  int64_t allowed_ids_count;
  const int64_t* allowed_offsets; /* [requests + 1] */

  const int32_t* history_tokens; /* [history_tokens_count]: prompt, then committed output */
  int64_t history_tokens_count;
  const int64_t* history_offsets; /* [requests + 1] */
  const int64_t* prompt_len;      /* [requests]: how many of them are the prompt's */
  int64_t history_len_max;        /* the longest history of a row, drafts included; sizes the workspace */

  /* Drafted tokens that stand between the committed history and the row. Verifiers fill these in themselves. */
  const int32_t* row_draft_tokens; /* [row_draft_tokens_count], of all rows */
  int64_t row_draft_tokens_count;
  const int64_t* row_draft_begin; /* [rows] */
  const int32_t* row_draft_len;   /* [rows] */

  const int32_t* bad_word_tokens; /* [bad_word_tokens_count] */
  int64_t bad_word_tokens_count;
  const int64_t* bad_word_offsets; /* [bad_word_sequences_count + 1], into bad_word_tokens */
  int64_t bad_word_sequences_count;
  const int64_t* bad_word_sequences; /* [requests + 1]: sequences [b], ..., [b + 1] - 1 are those of request b */

  const int64_t* min_tokens; /* [requests]; stop ids are banned while the output is shorter */
  const int32_t* stop_ids;   /* [stop_ids_count] */
  int64_t stop_ids_count;
  const int64_t* stop_offsets; /* [requests + 1] */

  const int32_t* bias_tokens; /* [bias_count] */
  const float* bias_values;   /* [bias_count]; added, in the order of the list */
  int64_t bias_count;
  const int64_t* bias_offsets; /* [requests + 1] */
} draftproof_constraints;

/* Who draws: the key and the step of the address. */
typedef struct {
  const uint64_t* seed; /* [requests] */
  const uint32_t* step; /* [requests]; verification steps done, or tokens emitted in plain decoding */
} draftproof_randomness;

/* --- Mass pass: the fixed-point softmax of rows of logits, tile by tile (reference/numerics/fixed_point.hpp). --- */
typedef struct {
  int64_t rows;
  int64_t vocab_size;
  draftproof_rows logits;
  const float* temperature; /* [rows], above 0; NULL: 1 */
  uint64_t* tile_sum;       /* out [rows, tiles], tiles = ceil(vocab_size / 4096): S_t */
  int32_t* tile_exponent;   /* out [rows, tiles]: N_t; -2^30: every token is masked */
  int32_t* row_exponent;    /* out [rows]: N */
  uint64_t* row_total;      /* out [rows]: S */
  int32_t* status;          /* out [rows] */
  void* workspace;
  int64_t workspace_bytes;
} draftproof_mass_pass_arguments;

/* --- Guidance alone: l = l_u + s (l_c - l_u). --- */
typedef struct {
  int64_t rows;
  int64_t vocab_size;
  draftproof_rows conditional;
  draftproof_rows unconditional;
  const float* scale; /* [rows] */
  float* out;         /* [rows, out_stride]; a row that is refused is filled with NaN */
  int64_t out_stride;
  int32_t* status; /* out [rows] */
} draftproof_guidance_arguments;

/* --- The pipeline and a draw: guidance, NaN policy, masks, bias, penalties, temperature, filters, token. --- */
typedef enum { DRAFTPROOF_INVERSE = 0, DRAFTPROOF_RACE = 1 } draftproof_sampler;
typedef enum { DRAFTPROOF_DRAFT_SAMPLE = 1, DRAFTPROOF_TARGET_SAMPLE = 4 } draftproof_purpose;

typedef struct {
  int64_t rows;
  int64_t requests;
  int64_t vocab_size;
  const int32_t* row_request; /* [rows]; NULL: row r is request r */
  draftproof_rows logits;
  draftproof_rows unconditional; /* needed where a guidance_scale is not 1 */
  draftproof_parameters parameters;
  draftproof_constraints constraints;
  draftproof_randomness randomness;
  const uint32_t* row_in_step; /* [rows]: the `row` of the address; NULL: 0 */
  int32_t sampler;             /* draftproof_sampler */
  int32_t purpose;             /* draftproof_purpose */
  int32_t* tokens;             /* out [rows] */
  float* logprobs;             /* out [rows] or NULL: natural log of the drawn token's probability */
  float* kept_mass;            /* out [rows] or NULL: share of the unfiltered row's mass that the kept tokens have */
  int64_t* kept_count;         /* out [rows] or NULL */
  float* probabilities; /* out [rows, probabilities_stride] or NULL: the distribution itself, 0 for dropped tokens */
  int64_t probabilities_stride;
  int32_t* status; /* out [rows] */
  void* workspace;
  int64_t workspace_bytes;
} draftproof_sample_arguments;

/* --- Log-probabilities: the first n of the total order, then the sampled token with its rank, then given ids. --- */
typedef struct {
  int64_t rows;
  int64_t requests;
  int64_t vocab_size;
  const int32_t* row_request;
  draftproof_rows logits;
  draftproof_rows unconditional;
  draftproof_parameters parameters; /* the distribution that is reported; leave them NULL for raw log-probabilities */
  draftproof_constraints constraints;
  int32_t n;              /* 0 to 1024 */
  const int32_t* sampled; /* [rows] */
  const int32_t* ids;     /* [ids_count]: tokens that each request asks for beside; NULL: none */
  int64_t ids_count;
  const int64_t* ids_offsets; /* [requests + 1] */
  int32_t ids_max;            /* 0 to 128: their places in a row; a longer list has status DRAFTPROOF_ROW_BAD_ID */
  int32_t* tokens; /* out [rows, n + 1 + ids_max]: the top n, padded with DRAFTPROOF_NO_TOKEN; the sampled token; the
                        request's ids in their order, padded */
  float* logprobs; /* out, as tokens: natural log; -infinity where padded */
  int64_t* ranks;  /* out, as tokens: 1 is the first; 0 where padded; of a dropped token that was sampled or asked for,
                        1 + the kept tokens that stand before it */
  int32_t* status; /* out [rows] */
  void* workspace;
  int64_t workspace_bytes;
} draftproof_logprobs_arguments;

/* --- Verification of drafts: chain, block, tree. --- */
typedef enum {
  DRAFTPROOF_ONE_HOT = 0,
  DRAFTPROOF_PROBABILITIES = 1,
  DRAFTPROOF_LOGITS = 2
} draftproof_distribution_kind;
typedef enum { DRAFTPROOF_TARGET_ONLY = 0, DRAFTPROOF_RRSW = 1 } draftproof_tree_rule;

/* What mass_pass wrote of rows. */
typedef struct {
  const int32_t* row_exponent; /* [rows]; NULL: not given */
  const uint64_t* row_total;   /* [rows] */
  const int32_t* status;       /* [rows] */
} draftproof_row_sums;

/* Request b has draft_len(b) = cu_num_draft_tokens[b + 1] - cu_num_draft_tokens[b] drafts, 0 or more. Its proposal rows
 * are cu_num_draft_tokens[b] + i, its target rows cu_num_draft_tokens[b] + b + i, the bonus row last. Of a tree, target
 * row i + 1 of the request is the distribution after node i and row 0 that of the root; proposal rows are laid out like
 * target rows there (row r proposes the children of the node of row r), since every inner node proposes. */
typedef struct {
  int64_t requests;
  int64_t draft_tokens_total; /* cu_num_draft_tokens[requests] */
  int64_t draft_len_max;      /* the longest draft; of a tree, the most nodes */
  int64_t vocab_size;
  const int32_t* draft_tokens;        /* [draft_tokens_total] */
  const int64_t* cu_num_draft_tokens; /* [requests + 1], from 0, ascending */
  const int32_t* parents;             /* trees: [draft_tokens_total], -1 or an earlier node of the request; else NULL */
  int32_t tree_rule;                  /* trees: draftproof_tree_rule */

  int32_t target_kind; /* probabilities (taken as processed) or logits */
  draftproof_rows target;
  draftproof_rows unconditional;
  draftproof_parameters parameters; /* of target logits */
  draftproof_constraints constraints;

  int32_t proposal_kind;
  draftproof_rows proposal;
  /* Of proposal logits: temperature and filters only. Temperature 0 means argmax drafting: a chain's proposals are
   * one-hot at its drafts, whose rows are not read; a tree's at the argmax of each row. */
  draftproof_parameters draft_parameters;
  /* Chains, of proposal logits without filters, where the drafter has kept them: what mass_pass wrote of these rows
   * with the temperatures of draft_parameters (of a temperature of 0, anything). No row is then read for its sum: of
   * chain verification's only the drafts' elements and the rows where requests stopped. Sums of other rows give the
   * tokens of another distribution. */
  draftproof_row_sums proposal_sums;

  draftproof_randomness randomness;

  int32_t* num_accepted; /* out [requests]: tau; 0 where status is not 0 */
  int32_t* tokens;       /* out [requests, draft_len_max + 1]: accepted drafts, the recovered or bonus token, padding */
  float* logprobs; /* out, as tokens, or NULL: natural log under the target's distribution; -infinity where padded */
  int32_t* path;   /* trees: out [requests, draft_len_max] or NULL: the accepted nodes, padded with -1 */
  int32_t* status; /* out [requests] */
  void* workspace;
  int64_t workspace_bytes;
} draftproof_verify_arguments;

/* --- Verification by any verifier of `draftproof verifiers`, by name. --- */

/* Of the reference executor alone: not every verifier has kernels. Request b's draft is a chain where drafts.parents is
 * NULL, else a tree, with rows as of a tree. A draft that the verifier does not take is refused before anything runs
 * (DRAFTPROOF_USAGE), with a message that says which verifiers take it. */
typedef struct {
  const char* verifier;     /* a name, with parameters where it takes some: "rrs", "synthetic:rate=0.8" */
  int32_t sampler;          /* draftproof_sampler: draws the tokens that are no drafts; coupled verifiers always race */
  const uint32_t* position; /* [requests]: tokens emitted before this step; for coupled verifiers, else ignored */
  draftproof_verify_arguments drafts; /* its tree_rule and workspace are not looked at; path may be given of chains */
} draftproof_verify_by_name_arguments;

/* --- Tree attention: positions and the mask, from parents. --- */

/* Row 0 of a request is the root's, row i + 1 is node i. */
typedef struct {
  int64_t requests;
  int64_t draft_tokens_total;
  int64_t draft_len_max;
  const int64_t* cu_num_draft_tokens; /* [requests + 1] */
  const int32_t* parents;             /* [draft_tokens_total] */
  int32_t* depths;       /* out [draft_tokens_total + requests]: row r of request b at cu[b] + b + r; 0 where refused */
  uint32_t* mask;        /* out [draft_tokens_total + requests, words_per_row]; 0 where refused */
  int64_t words_per_row; /* at least ceil((draft_len_max + 1) / 32) */
  int32_t* status;       /* out [requests] */
} draftproof_tree_mask_arguments;

/* --- KV slots: keep what was accepted, free the rest. --- */

/* A step wrote one KV entry per row of the request (the root's token, then its drafts) into the slots
 * slots[cu[b] + b + r]. The entries of the root and of the accepted nodes move to the request's first num_accepted + 1
 * slots, in order, layer by layer; the other slots are freed. For a chain nothing is moved. */
typedef struct {
  int64_t requests;
  int64_t draft_tokens_total;
  int64_t draft_len_max;
  const int64_t* cu_num_draft_tokens; /* [requests + 1] */
  const int32_t* num_accepted;        /* [requests] */
  const int32_t* path;                /* [requests, draft_len_max]: as verification writes it; NULL: a chain */
  const int64_t* slots;               /* [draft_tokens_total + requests]; all different */
  int64_t num_slots;                  /* of the cache */
  void* cache; /* in and out: [layers, num_slots, slot_bytes]; a layer holds all slots, or a slot all layers */
  int64_t layers;
  int64_t layer_stride_bytes;
  int64_t slot_stride_bytes;
  int64_t slot_bytes;   /* moved; at most slot_stride_bytes */
  int64_t* kv_len;      /* in and out [requests]: grows by num_accepted + 1 */
  int64_t* freed_slots; /* out [draft_tokens_total + requests]: as slots; the freed ones, the others -1 */
  int32_t* status;      /* out [requests]: a request that is refused is left as it is */
} draftproof_kv_commit_arguments;

/* --- Rows across devices: device `device` of `devices` holds the tokens [begin, end) of every row (docs/shards.md). --
 *
 * Each call is a pure function of the device's logits and of messages. A message is an array that every device writes
 * and the caller then combines over all devices, element by element: MAX, or SUM modulo 2^64 (NCCL, MPI, gloo). The
 * next call takes it combined, the same on every device. In this order:
 *
 *   shard_prepare                    tile_exponent MAX, largest MAX
 *   shard_summarise                  tile_sum SUM
 *   shard_select   top_k, rounds 0 to 6; where a row has top_p also that, rounds 0 to 6: message SUM, none after 6
 *   shard_summarise with `kept`      tile_sum SUM, in place of the sums before
 *   shard_draw     stages 0, 1, 2    message SUM (stage 0 of DRAFTPROOF_INVERSE), else MAX; none after stage 2
 *
 * Without filters the two calls before the last are left out. Tokens, log-probabilities and statuses are those of
 * draftproof_sample on the whole rows, bit for bit, on every device. shard_verify takes the place of shard_draw where
 * drafts are verified. Masks, bias and penalties are local to a token: the caller edits the logits before.
 * tiles = ceil(vocab_size / 4096). */
typedef struct {
  int64_t rows;
  int64_t vocab_size; /* of the whole rows */
  int64_t begin;      /* [begin, end) in [0, vocab_size]; equal: no tokens */
  int64_t end;
  int32_t device;
  int32_t devices;          /* 1 to 256; their ranges hold [0, vocab_size) in order */
  draftproof_rows logits;   /* [rows, end - begin]: column c is token begin + c; not looked at where there are none */
  const float* temperature; /* [rows]; 0: greedy; NULL: 1 */
} draftproof_shard;

/* Which tokens the filters of a row keep: those not behind (last_value, last_token) in the total order, of a mass of
 * least_mass or more. The same on every device after round 6. */
typedef struct {
  uint64_t least_mass;
  float last_value;
  int32_t last_token;
  int32_t status; /* DRAFTPROOF_ROW_BAD_PARAMETER where a parameter is refused */
  int32_t reserved;
} draftproof_shard_kept;

/* Where a device is in the search for the last kept token of a row. */
typedef struct {
  uint64_t before; /* measure of the tokens before those whose order key begins with `key` */
  uint64_t limit;  /* measure at which the prefix ends; 0: the row is not searched */
  uint32_t key;
  int32_t owner; /* the device that holds the last token, known from round 5 on; else -1 */
} draftproof_shard_search;

typedef struct {
  draftproof_shard shard;
  int32_t* tile_exponent; /* message [rows, tiles + 1]: N_t of each tile, -2^30 where all is masked; last the status */
  int64_t* largest;       /* message [rows]: order key of the largest logit * 2^19 + 2^19 - 1 - token; -1: none */
  int32_t* own_exponent;  /* out [rows, tiles]: for shard_summarise on this device; as tile_exponent */
  uint64_t* own_sum;      /* out [rows, tiles]: S_t of the device's tokens in the scale of own_exponent */
} draftproof_shard_prepare_arguments;

/* Without `kept` only tiles are read again whose exponent another device raised. */
typedef struct {
  draftproof_shard shard;
  const int32_t* tile_exponent;      /* combined */
  const int32_t* own_exponent;       /* of shard_prepare */
  const uint64_t* own_sum;           /* of shard_prepare */
  const draftproof_shard_kept* kept; /* [rows]; NULL: all tokens */
  uint64_t* tile_sum;                /* message [rows, tiles]: S_t of the device's tokens */
} draftproof_shard_summarise_arguments;

typedef enum { DRAFTPROOF_SHARD_TOP_K = 0, DRAFTPROOF_SHARD_TOP_P = 1 } draftproof_shard_filter;

/* The last token of a prefix: a radix search over the order keys, eight bits a round, then over the tokens of its
 * value. A message has, a row: rounds 0 to 3 256 words (top_k 128, of two counts each), round 4 `devices` words, round
 * 5 one. Of `parameters` ([rows] each) the filters are looked at; the others must be NULL, top_p_rule, too. */
typedef struct {
  draftproof_shard shard;
  const int32_t* tile_exponent; /* combined */
  const int64_t* largest;       /* combined */
  draftproof_parameters parameters;
  int32_t filter;                  /* draftproof_shard_filter; top_k comes first, though no row may have it */
  int32_t round;                   /* 0 to 6 */
  const uint64_t* combined;        /* the message of the round before; NULL in round 0 */
  draftproof_shard_search* search; /* in and out [rows]; written in round 0 */
  draftproof_shard_kept* kept;     /* in and out [rows]; written in round 0 of top_k */
  uint64_t* message;               /* out [rows, words]; NULL in round 6 */
} draftproof_shard_select_arguments;

/* A message has, a row: stage 0 of DRAFTPROOF_INVERSE `devices` words, else one. */
typedef struct {
  draftproof_shard shard;
  const int32_t* tile_exponent;      /* combined */
  const int64_t* largest;            /* combined */
  const uint64_t* tile_sum;          /* combined; over the kept tokens where there are filters */
  const draftproof_shard_kept* kept; /* [rows]; NULL: all tokens */
  draftproof_randomness randomness;  /* [rows] */
  const uint32_t* row_in_step;       /* [rows]: the `row` of the address; NULL: 0 */
  int32_t sampler;                   /* draftproof_sampler */
  int32_t purpose;                   /* draftproof_purpose */
  int32_t stage;                     /* 0 to 2 */
  const int64_t* combined;           /* the message of the stage before; NULL in stage 0 */
  int64_t* winner;                   /* in and out [rows, 2], of DRAFTPROOF_RACE: the device's best from stage 0 to 1 */
  int64_t* message;                  /* out [rows, words]; NULL in stage 2 */
  int32_t* tokens;                   /* stage 2: out [rows] */
  float* logprobs;                   /* stage 2: out [rows] */
  int32_t* status;                   /* stage 2: out [rows] */
  void* workspace;
  int64_t workspace_bytes;
} draftproof_shard_draw_arguments;

/* Rows as the calls before leave them. */
typedef struct {
  draftproof_shard shard;
  const int32_t* tile_exponent;      /* combined */
  const int64_t* largest;            /* combined */
  const uint64_t* tile_sum;          /* combined; over the kept tokens where there are filters */
  const draftproof_shard_kept* kept; /* [rows]; NULL: all tokens */
} draftproof_shard_rows;

/* What draftproof_verify_chain gives for target logits, in five stages. Each but the last writes its own message, which
 * the stages after it take combined, in the same array: SUM, of stage 3 MAX. A row's temperature belongs to its request
 * or to its place; one of 0 makes the row greedy, and a proposal one-hot at its draft. */
typedef struct {
  int64_t requests;
  int64_t draft_tokens_total;
  int64_t draft_len_max;
  const int32_t* draft_tokens;        /* [draft_tokens_total] */
  const int64_t* cu_num_draft_tokens; /* [requests + 1] */
  draftproof_shard_rows target;       /* [draft_tokens_total + requests], of logits */
  int32_t proposal_kind;              /* draftproof_distribution_kind */
  draftproof_shard_rows proposal;   /* [draft_tokens_total], split as the target; of one-hot proposals nothing is looked
                                     at, of probabilities shard.logits, which holds them */
  draftproof_randomness randomness; /* [requests] */
  int32_t stage;                    /* 0 to 4 */
  uint64_t* draft;       /* message of stage 0 [draft_tokens_total]: the target's logit over the temperature, and q */
  uint64_t* residual;    /* of stage 1 [requests, tiles + 1]: residual masses of tiles, or the mass of a draft that was
                            certain in its tile; last the devices whose part of the proposal is refused */
  int64_t* share;        /* of stage 2 [requests, devices] */
  int64_t* drawn;        /* of stage 3 [requests] */
  int32_t* num_accepted; /* stage 4: out [requests] */
  int32_t* tokens;       /* stage 4: out [requests, draft_len_max + 1] */
  float* logprobs;       /* stage 4: out, as tokens, or NULL */
  int32_t* status;       /* stage 4: out [requests] */
  void* workspace;
  int64_t workspace_bytes;
} draftproof_shard_verify_arguments;

DRAFTPROOF_API int draftproof_abi_version(void);
/* sizeof a struct of this header, for bindings that mirror it: "draftproof_settings"; -1 where there is none. */
DRAFTPROOF_API int64_t draftproof_struct_bytes(const char* name);
/* Message of this thread's last failed call; never NULL. */
DRAFTPROOF_API const char* draftproof_error_message(void);
DRAFTPROOF_API const char* draftproof_row_status_text(int32_t status);
/* DRAFTPROOF_SUCCESS where the executor can run here. */
DRAFTPROOF_API int draftproof_executor_available(int32_t executor);

/* Of a call with these arguments, whose workspace is not looked at; -1 where they are refused. The reference executor
 * needs none. */
DRAFTPROOF_API int64_t draftproof_mass_pass_workspace_bytes(const draftproof_mass_pass_arguments* arguments);
DRAFTPROOF_API int64_t draftproof_sample_workspace_bytes(const draftproof_sample_arguments* arguments);
DRAFTPROOF_API int64_t draftproof_logprobs_workspace_bytes(const draftproof_logprobs_arguments* arguments);
DRAFTPROOF_API int64_t draftproof_verify_chain_workspace_bytes(const draftproof_verify_arguments* arguments);
DRAFTPROOF_API int64_t draftproof_verify_block_workspace_bytes(const draftproof_verify_arguments* arguments);
DRAFTPROOF_API int64_t draftproof_verify_tree_workspace_bytes(const draftproof_verify_arguments* arguments);
DRAFTPROOF_API int64_t draftproof_shard_draw_workspace_bytes(const draftproof_shard_draw_arguments* arguments);
DRAFTPROOF_API int64_t draftproof_shard_verify_workspace_bytes(const draftproof_shard_verify_arguments* arguments);

DRAFTPROOF_API int draftproof_mass_pass(const draftproof_mass_pass_arguments* arguments,
                                        const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_guidance(const draftproof_guidance_arguments* arguments,
                                       const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_sample(const draftproof_sample_arguments* arguments, const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_logprobs(const draftproof_logprobs_arguments* arguments,
                                       const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_verify_chain(const draftproof_verify_arguments* arguments,
                                           const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_verify_block(const draftproof_verify_arguments* arguments,
                                           const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_verify_tree(const draftproof_verify_arguments* arguments,
                                          const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_verify_by_name(const draftproof_verify_by_name_arguments* arguments,
                                             const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_tree_mask(const draftproof_tree_mask_arguments* arguments,
                                        const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_kv_commit(const draftproof_kv_commit_arguments* arguments,
                                        const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_shard_prepare(const draftproof_shard_prepare_arguments* arguments,
                                            const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_shard_summarise(const draftproof_shard_summarise_arguments* arguments,
                                              const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_shard_select(const draftproof_shard_select_arguments* arguments,
                                           const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_shard_draw(const draftproof_shard_draw_arguments* arguments,
                                         const draftproof_settings* settings);
DRAFTPROOF_API int draftproof_shard_verify(const draftproof_shard_verify_arguments* arguments,
                                           const draftproof_settings* settings);

#ifdef __cplusplus
}
#endif

#endif
