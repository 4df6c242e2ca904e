/* Rows of logits over three devices in one process: the messages of draftproof_shard_*, combined here, and a token of each row
 * that is that of draftproof_sample on the whole rows. The second row is cut by top_k and top_p. Exit code 0 where tokens and
 * log-probabilities agree in every bit, by the reference and by the kernels on the CPU executor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/draftproof.h"

enum { kRows = 2, kVocabSize = 5000, kTiles = 2, kDevices = 3, kBuckets = 256 };
static const int64_t kCuts[kDevices + 1] = {0, 1700, 4500, kVocabSize}; /* the second cut is inside the last tile */
static const int32_t kTopK[kRows] = {0, 40};
static const float kTopP[kRows] = {1.0f, 0.9f};
static const uint64_t kSeed[kRows] = {11, 12};
static const uint32_t kStep[kRows] = {0, 7};
static float logits[kRows][kVocabSize];

/* What one device holds: its logits, its own notes, and what it has to say. */
typedef struct {
  draftproof_shard shard;
  int32_t tile_exponent[kRows * (kTiles + 1)];
  int64_t largest[kRows];
  int32_t own_exponent[kRows * kTiles];
  uint64_t own_sum[kRows * kTiles];
  uint64_t tile_sum[kRows * kTiles];
  draftproof_shard_search search[kRows];
  draftproof_shard_kept kept[kRows];
  uint64_t message[kRows * kBuckets];
  int64_t drawn[kRows * kDevices];
  int32_t tokens[kRows];
  float logprobs[kRows];
  int32_t status[kRows];
} device;

static int check(int code, const char* call) {
  if (code == DRAFTPROOF_SUCCESS) return 1;
  fprintf(stderr, "%s: code %d, %s\n", call, code, draftproof_error_message());
  return 0;
}

/* Stands for a collective call: SUM of 64-bit words, MAX of 64-bit and of 32-bit integers; then all have the result. */
#define COMBINE(field, count, type, statement)                    \
  for (int64_t i = 0; i < (count); ++i) {                         \
    type all = devices[0].field[i];                               \
    for (int d = 1; d < kDevices; ++d) {                          \
      const type one = devices[d].field[i];                       \
      statement;                                                  \
    }                                                             \
    for (int d = 0; d < kDevices; ++d) devices[d].field[i] = all; \
  }
#define SUM(field, count, type) COMBINE(field, count, type, all += one)
#define MAX(field, count, type) COMBINE(field, count, type, all = one > all ? one : all)

static int summarise(device* devices, const draftproof_settings* settings, int filtered) {
  for (int d = 0; d < kDevices; ++d) {
    device* const one = &devices[d];
    const draftproof_shard_summarise_arguments a = {.shard = one->shard,
                                                    .tile_exponent = one->tile_exponent,
                                                    .own_exponent = one->own_exponent,
                                                    .own_sum = one->own_sum,
                                                    .kept = filtered ? one->kept : NULL,
                                                    .tile_sum = one->tile_sum};
    if (!check(draftproof_shard_summarise(&a, settings), "shard_summarise")) return 0;
  }
  SUM(tile_sum, kRows * kTiles, uint64_t)
  return 1;
}

static int select_filter(device* devices, const draftproof_settings* settings, int32_t filter) {
  const int64_t words = filter == DRAFTPROOF_SHARD_TOP_P ? kBuckets : kBuckets / 2;
  uint64_t combined[kRows * kBuckets];
  for (int32_t round = 0; round <= 6; ++round) {
    const int64_t said = kRows * (round < 4 ? words : round == 4 ? kDevices : 1);
    for (int d = 0; d < kDevices; ++d) {
      device* const one = &devices[d];
      draftproof_shard_select_arguments a = {.shard = one->shard,
                                             .tile_exponent = one->tile_exponent,
                                             .largest = one->largest,
                                             .filter = filter,
                                             .round = round,
                                             .combined = round == 0 ? NULL : combined,
                                             .search = one->search,
                                             .kept = one->kept,
                                             .message = round == 6 ? NULL : one->message};
      a.parameters.top_k = kTopK;
      a.parameters.top_p = kTopP;
      if (!check(draftproof_shard_select(&a, settings), "shard_select")) return 0;
    }
    if (round == 6) break;
    SUM(message, said, uint64_t)
    memcpy(combined, devices[0].message, (size_t)said * sizeof(uint64_t));
  }
  return 1;
}

static int draw(device* devices, const draftproof_settings* settings) {
  int64_t combined[kRows * kDevices];
  for (int32_t stage = 0; stage <= 2; ++stage) {
    for (int d = 0; d < kDevices; ++d) {
      device* const one = &devices[d];
      const draftproof_shard_draw_arguments a = {.shard = one->shard,
                                                 .tile_exponent = one->tile_exponent,
                                                 .largest = one->largest,
                                                 .tile_sum = one->tile_sum,
                                                 .kept = one->kept,
                                                 .randomness = {kSeed, kStep},
                                                 .sampler = DRAFTPROOF_INVERSE, /* needs no workspace */
                                                 .purpose = DRAFTPROOF_TARGET_SAMPLE,
                                                 .stage = stage,
                                                 .combined = stage == 0 ? NULL : combined,
                                                 .message = stage == 2 ? NULL : one->drawn,
                                                 .tokens = one->tokens,
                                                 .logprobs = one->logprobs,
                                                 .status = one->status};
      if (!check(draftproof_shard_draw(&a, settings), "shard_draw")) return 0;
    }
    if (stage == 0) SUM(drawn, kRows * kDevices, int64_t)
    if (stage == 1) MAX(drawn, kRows, int64_t)
    memcpy(combined, devices[0].drawn, sizeof(combined));
  }
  return 1;
}

static int across_devices(int32_t executor, int32_t* tokens, float* logprobs) {
  static device devices[kDevices];
  memset(devices, 0, sizeof(devices));
  draftproof_settings settings = {0};
  settings.executor = executor;
  for (int d = 0; d < kDevices; ++d) {
    device* const one = &devices[d];
    one->shard = (draftproof_shard){.rows = kRows,
                                    .vocab_size = kVocabSize,
                                    .begin = kCuts[d],
                                    .end = kCuts[d + 1],
                                    .device = d,
                                    .devices = kDevices,
                                    .logits = {&logits[0][kCuts[d]], kVocabSize, DRAFTPROOF_F32}};
    const draftproof_shard_prepare_arguments a = {.shard = one->shard,
                                                  .tile_exponent = one->tile_exponent,
                                                  .largest = one->largest,
                                                  .own_exponent = one->own_exponent,
                                                  .own_sum = one->own_sum};
    if (!check(draftproof_shard_prepare(&a, &settings), "shard_prepare")) return 0;
  }
  MAX(tile_exponent, kRows * (kTiles + 1), int32_t)
  MAX(largest, kRows, int64_t)
  if (!summarise(devices, &settings, 0) || !select_filter(devices, &settings, DRAFTPROOF_SHARD_TOP_K) ||
      !select_filter(devices, &settings, DRAFTPROOF_SHARD_TOP_P) || !summarise(devices, &settings, 1) ||
      !draw(devices, &settings))
    return 0;
  for (int d = 1; d < kDevices; ++d)
    if (memcmp(devices[d].tokens, devices[0].tokens, sizeof(devices[0].tokens)) != 0) return 0;
  memcpy(tokens, devices[0].tokens, sizeof(devices[0].tokens));
  memcpy(logprobs, devices[0].logprobs, sizeof(devices[0].logprobs));
  return 1;
}

int main(void) {
  uint32_t word = 1;
  for (int r = 0; r < kRows; ++r)
    for (int i = 0; i < kVocabSize; ++i) {
      word = word * 1664525u + 1013904223u;
      logits[r][i] = (float)(word >> 8) * 0x1p-20f; /* [0, 16) */
    }

  int32_t whole[kRows], status[kRows];
  float whole_logprobs[kRows];
  draftproof_sample_arguments a = {0};
  const draftproof_settings reference = {0};
  a.rows = a.requests = kRows;
  a.vocab_size = kVocabSize;
  a.logits = (draftproof_rows){logits, kVocabSize, DRAFTPROOF_F32};
  a.parameters.top_k = kTopK;
  a.parameters.top_p = kTopP;
  a.randomness = (draftproof_randomness){kSeed, kStep};
  a.sampler = DRAFTPROOF_INVERSE;
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = whole;
  a.logprobs = whole_logprobs;
  a.status = status;
  if (!check(draftproof_sample(&a, &reference), "sample")) return 1;

  const int32_t executors[2] = {DRAFTPROOF_REFERENCE, DRAFTPROOF_SIMT};
  for (int e = 0; e < 2; ++e) {
    int32_t tokens[kRows];
    float logprobs[kRows];
    if (!across_devices(executors[e], tokens, logprobs)) return 1;
    for (int r = 0; r < kRows; ++r)
      printf("row %d: token %d over %d devices, %d whole\n", r, (int)tokens[r], kDevices, (int)whole[r]);
    if (memcmp(tokens, whole, sizeof(whole)) != 0 || memcmp(logprobs, whole_logprobs, sizeof(logprobs)) != 0) return 1;
  }
  printf("devices and whole rows are equal\n");
  return 0;
}
