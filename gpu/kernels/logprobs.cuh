// The n most probable tokens of every row in order, and the rank of a sampled one; one block a row (twin:
// reference/logits/logprobs.hpp).
//
//   distribution, sampled [rows] -> tokens, logprobs, ranks [rows, n + 1], status [rows]
//
// Ladder (bytes that must move: vocab_size * sizeof(element) a row and pass, from L2 after the first; 16 a listed
// token):
//   v2 (this)  one pass for a value that n tokens reach, the n-th of the threads' largest ones; one that lists the few
//       that reach it and counts what stands before the sampled token; a sort in shared memory. Where they are too many
//       for the list, and for n above the threads, a search for the n-th token comes between (prefix_search.cuh), as
//       for all rows in v1: two passes more, one of which puts every token within 32 nats of the first into a bucket.
//   next: both passes in the mass pass' tiles, their lists merged.
#pragma once

#include "gpu/kernels/prefix_search.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline constexpr std::int32_t kLogprobsMax = 1024;
static_assert(kLogprobsMax <= kListTokens);

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
  Global<Token> tokens;
  Global<float> logprobs;
  Global<std::int64_t> ranks;
  Global<std::int32_t> status;

  __device__ void write(std::int64_t row, std::int64_t place, Token token, float logprob, std::int64_t rank) const {
    const std::int64_t at = row * (n + 1) + place;
    tokens[at] = token;
    logprobs[at] = logprob;
    ranks[at] = rank;
  }
  // The places from `first` on, but for the sampled token's.
  __device__ void pad(std::int64_t row, std::int64_t first) const {
    for (std::int64_t i = first + threadIdx.x; i < n; i += blockDim.x)
      write(row, i, DRAFTPROOF_NO_TOKEN, negative_infinity(), 0);
  }
};

// Outputs of a row that is refused, or has one token.
__device__ inline void write_without_search(const LogprobRows& l, std::int64_t row, Token greedy_token) {
  const bool greedy = greedy_token != DRAFTPROOF_NO_TOKEN;
  l.pad(row, greedy ? 1 : 0);
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
  std::int32_t status = kept.row.status;
  if ((sampled < 0 || sampled >= l.distribution.vocab_size) && status < DRAFTPROOF_ROW_BAD_ID)
    status = DRAFTPROOF_ROW_BAD_ID;
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
  l.pad(row, count);
  before = block_reduce(before, Sum{});
  if (threadIdx.x == 0)
    l.write(row, l.n, sampled, log_probability(l.distribution, row, sampled), std::int64_t{1} + before);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
