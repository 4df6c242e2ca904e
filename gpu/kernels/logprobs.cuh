// The n most probable tokens of every row in order, and the rank of a sampled one; one block a row (twin:
// reference/logits/logprobs.hpp). What stands before given ids is counted by a kernel of their own, in one pass more.
//
//   distribution, sampled [rows], ids [ids_count] -> tokens, logprobs, ranks [rows, n + 1 + ids_max], status [rows]
//
// Ladder (bytes that must move: vocab_size * sizeof(element) a row and pass, from L2 after the first; 16 a listed
// token):
//   v2 (this)  one pass for a value that n tokens reach, the n-th of the threads' largest ones; one that lists the few
//       that reach it and counts what stands before the sampled token; a sort in shared memory. Where they are too many
//       for the list, and for n above the threads, a search for the n-th token comes between (prefix_search.cuh), as
//       for all rows in v1: two passes more, one of which puts every token within 32 nats of the first into a bucket.
//   next: both passes in the mass pass' tiles, their lists merged.
#pragma once

#include "gpu/kernels/constraints.cuh"
#include "gpu/kernels/prefix_search.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline constexpr std::int32_t kLogprobsMax = 1024;
static_assert(kLogprobsMax <= kListTokens);
inline constexpr std::int32_t kLogprobIdsMax = 128;

// Only kept tokens are ranked.
struct KeptMeasure {
  DistributionRow row;

  __device__ bool counts(float x, std::int64_t token, std::int32_t tile_exponent) const {
    return is_kept(row, x, token, tile_exponent);
  }
  __device__ std::uint64_t mass(float, std::int32_t) const { return 0; }
};

struct LogprobRows {
  LogitsDistribution distribution;
  std::int32_t n;
  Global<const Token> sampled;
  Global<const Token> ids;
  std::int64_t ids_count;
  Global<const std::int64_t> ids_offsets;
  std::int32_t ids_max;
  Global<Token> tokens;
  Global<float> logprobs;
  Global<std::int64_t> ranks;
  Global<std::int32_t> status;

  __device__ void write(std::int64_t row, std::int64_t place, Token token, float logprob, std::int64_t rank) const {
    const std::int64_t at = row * (n + 1 + ids_max) + place;
    tokens[at] = token;
    logprobs[at] = logprob;
    ranks[at] = rank;
  }
  __device__ void pad(std::int64_t row, std::int64_t first, std::int64_t end) const {
    for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x)
      write(row, i, DRAFTPROOF_NO_TOKEN, negative_infinity(), 0);
  }
  __device__ ListRange ids_of(std::int64_t row) const {
    return list_of(ids_offsets, distribution.request_of(row), ids_count);
  }
  // The status of a row whose distribution has `own`.
  __device__ std::int32_t status_of(std::int64_t row, std::int32_t own) const {
    const ListRange asked = ids_of(row);
    bool bad =
        !is_index(static_cast<Token>(sampled[row]), distribution.vocab_size) || !asked.valid || asked.count() > ids_max;
    for (std::int64_t i = asked.begin; !bad && i < asked.end; ++i)
      bad = !is_index(static_cast<Token>(ids[i]), distribution.vocab_size);
    return bad && own < DRAFTPROOF_ROW_BAD_ID ? DRAFTPROOF_ROW_BAD_ID : own;
  }
};

// Outputs of a row that is refused, or has one token.
__device__ inline void write_without_search(const LogprobRows& l, std::int64_t row, Token greedy_token) {
  const bool greedy = greedy_token != DRAFTPROOF_NO_TOKEN;
  l.pad(row, greedy ? 1 : 0, l.n);
  if (threadIdx.x != 0) return;
  if (!greedy) return l.write(row, l.n, DRAFTPROOF_NO_TOKEN, negative_infinity(), 0);
  const Token sampled = l.sampled[row];
  const bool is_it = sampled == greedy_token;
  if (l.n > 0) l.write(row, 0, greedy_token, 0.0f, 1);
  l.write(row, l.n, sampled, is_it ? 0.0f : negative_infinity(), is_it ? 1 : 2);
}

// Grid: rows blocks.
template <class Element>
__global__ void logprob_rows(LogprobRows l) {
  const std::int64_t row = blockIdx.x;
  const KeptMeasure kept{l.distribution.rows[row]};
  const Token sampled = l.sampled[row];
  const std::int32_t status = l.status_of(row, kept.row.status);
  if (threadIdx.x == 0) l.status[row] = status;
  if (status != DRAFTPROOF_ROW_OK) return write_without_search(l, row, DRAFTPROOF_NO_TOKEN);  // the same in all threads
  if (kept.row.greedy_token != DRAFTPROOF_NO_TOKEN) return write_without_search(l, row, kept.row.greedy_token);

  const RowReader<Element> reader(l.distribution.logits, row, l.distribution.vocab_size,
                                  l.distribution.temperature_of(row),
                                  l.distribution.tile_exponent + row * l.distribution.tiles);
  const Shared<std::uint64_t> list = search_memory().list;
  DRAFTPROOF_SHARED(std::uint32_t, listed, 1);
  const std::uint64_t sampled_packed = packed_first(processed_logit(l.distribution, row, sampled), sampled);
  const auto n = static_cast<std::uint32_t>(l.n);
  const float reached = n > 0 ? value_reached_by(reader, kept, n) : negative_infinity();
  bool searches = n > 0 && reached == negative_infinity();
  // packed_first of the last token that is listed, or less; the largest number: none is
  std::uint64_t last = n > 0 ? static_cast<std::uint64_t>(order_key(reached)) << 32 : ~std::uint64_t{0};
  std::uint32_t before = 0;
  for (;;) {
    if (searches) {
      PrefixSearch<Element, KeptMeasure> search(reader, kept, reader.first_value(kept.row.exponent), false);
      const Prefix prefix = search.find({n, kNoMassLimit});
      last = prefix.reached ? prefix.last : 0;
    }
    if (threadIdx.x == 0) listed[0] = 0;
    __syncthreads();
    before = 0;
    reader.for_each([&](float x, std::int64_t token, std::int32_t exponent) {
      const std::uint64_t packed = packed_first(x, token);
      if (packed < last && packed <= sampled_packed) return;
      if (!kept.counts(x, token, exponent)) return;
      if (packed > sampled_packed) ++before;
      if (packed < last) return;
      const std::uint32_t place = atomicAdd(&listed[0], 1u);
      if (place < kListTokens) list[place] = packed;
    });
    __syncthreads();
    if (listed[0] <= kListTokens) break;  // the same in all threads; a search leaves n at most
    searches = true;
    __syncthreads();
  }
  const std::uint32_t found = listed[0];
  sort_descending(list, found);
  const std::uint32_t count = found < n ? found : n;
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const Token token = token_of_packed(list[i]);
    l.write(row, i, token, log_probability(l.distribution, row, token), i + 1);
  }
  l.pad(row, count, l.n);
  before = block_reduce(before, Sum{});
  if (threadIdx.x == 0)
    l.write(row, l.n, sampled, log_probability(l.distribution, row, sampled), std::int64_t{1} + before);
}

// The first place of a descending list that holds less than `packed`; `count` where none does.
__device__ inline std::uint32_t first_below(Shared<std::uint64_t> list, std::uint32_t count, std::uint64_t packed) {
  std::uint32_t first = 0;
  while (first < count) {
    const std::uint32_t middle = first + (count - first) / 2;
    if (list[middle] < packed) {
      count = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

// The places behind the sampled token. Grid: rows blocks.
template <class Element>
__global__ void logprob_ids(LogprobRows l) {
  const std::int64_t row = blockIdx.x;
  const KeptMeasure kept{l.distribution.rows[row]};
  const ListRange asked = l.ids_of(row);
  const bool ok = l.status_of(row, kept.row.status) == DRAFTPROOF_ROW_OK;
  const std::uint32_t count = ok ? static_cast<std::uint32_t>(asked.count()) : 0;
  const std::int64_t first = l.n + 1;
  l.pad(row, first + count, first + l.ids_max);
  if (count == 0) return;  // the same in all threads
  const Token greedy = kept.row.greedy_token;
  DRAFTPROOF_SHARED(std::uint64_t, list, kLogprobIdsMax);
  DRAFTPROOF_SHARED(std::uint32_t, before, kLogprobIdsMax);  // kept tokens from one place of the list to the next
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const Token token = l.ids[asked.begin + i];
    list[i] = packed_first(processed_logit(l.distribution, row, token), token);
    before[i] = 0;
    if (greedy == DRAFTPROOF_NO_TOKEN) continue;
    l.write(row, first + i, token, token == greedy ? 0.0f : negative_infinity(), token == greedy ? 1 : 2);
  }
  if (greedy != DRAFTPROOF_NO_TOKEN) return;
  __syncthreads();
  sort_descending(list, count);
  const std::uint64_t last = list[count - 1];
  const RowReader<Element> reader(l.distribution.logits, row, l.distribution.vocab_size,
                                  l.distribution.temperature_of(row),
                                  l.distribution.tile_exponent + row * l.distribution.tiles);
  reader.for_each([&](float x, std::int64_t token, std::int32_t exponent) {
    const std::uint64_t packed = packed_first(x, token);
    if (packed > last && kept.counts(x, token, exponent)) atomicAdd(&before[first_below(list, count, packed)], 1u);
  });
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const Token token = l.ids[asked.begin + i];
    const std::uint64_t packed = packed_first(processed_logit(l.distribution, row, token), token);
    std::int64_t rank = 1;
    for (std::uint32_t place = 0; place < count; ++place) {
      rank += before[place];
      if (list[place] == packed) break;
    }
    l.write(row, first + i, token, log_probability(l.distribution, row, token), rank);
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
