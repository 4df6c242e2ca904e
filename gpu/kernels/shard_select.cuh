// The last kept token of rows that lie on several devices: a radix search over the order keys, eight bits a round,
// whose histograms the caller adds up over the devices; then over the tokens of the value that it ends at (twin:
// reference/shard/prefix_search.hpp).
//
//   round 0 to 3   histogram of the measure (a count for top-k, m_i for top-p) by eight bits more
//   round 4        the measure that the device's tokens of that value have
//   round 5        the device in which it ends finds the token
//   round 6        every device knows the kept set
//
// Ladder (bytes that must move: the device's logits once a round, from L2 after the first):
//   v1 (this)  a block a tile; buckets in shared memory, added to the message by integer atomics. Only tokens whose
//       higher bits are those found take part.
//   next: the survivors of round 0 listed, so that later rounds read them alone.
#pragma once

#include "gpu/kernels/shard_rows.cuh"
#include "reference/numerics/fraction.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline constexpr std::int32_t kSearchBuckets = 256;
inline constexpr std::int32_t kSearchThreads = 256;  // of blocks that look at a message: one a bucket
inline constexpr std::int32_t kHistogramRounds = 4;

struct ShardSearch {
  ShardView shard;
  CombinedRows rows;
  ParametersView parameters;
  bool is_mass;  // top-p; else top-k
  std::int32_t round;
  std::int64_t words;                    // of a row of `message`
  Global<const std::uint64_t> combined;  // of the round before
  Global<draftproof_shard_search> search;
  Global<draftproof_shard_kept> kept;
  Global<std::uint64_t> message;

  __device__ std::uint64_t measure(float x, std::int32_t row_exponent, std::int32_t tile_exponent) const {
    return is_mass ? row_scale(mass_in_tile(x, tile_exponent), row_exponent, tile_exponent) : 1;
  }
  // Does a token take part in the search? Top-p after top-k looks at what that left.
  __device__ bool counts(const DistributionRow& record, bool top_k_first, float x, std::int64_t token,
                         std::int32_t tile_exponent) const {
    return !(is_mass && top_k_first) || is_kept(record, x, token, tile_exponent);
  }
};

// Consecutive shares in the order of threads, and where a limit is reached in them.
struct ReachedShare {
  std::uint64_t before;
  std::uint64_t total;
  std::int32_t place;  // thread
};
__device__ inline ReachedShare reach(std::uint64_t before, std::uint64_t share, std::uint64_t limit) {
  const Scanned<std::uint64_t> scanned = block_scan(share);
  const std::uint64_t own_before = before + scanned.before;
  const bool is_here = own_before < limit && own_before + share >= limit;
  const ReachedShare own{own_before, scanned.total, static_cast<std::int32_t>(threadIdx.x)};
  if (!block_any(is_here)) return {before, scanned.total, 0};  // the message was not what devices wrote
  return block_broadcast(is_here, own);
}

__device__ inline void end_search(const Parameters& p, std::uint32_t key, Token last_token, draftproof_shard_kept& kept,
                                  draftproof_shard_search& search) {
  const float value = value_of_key(key);
  const Token token = p.keeps_ties ? 0x7fffffff : last_token;
  if (value > kept.last_value || (value == kept.last_value && token < kept.last_token)) {
    kept.last_value = value;
    kept.last_token = token;
  }
  search.limit = 0;
}

// State before the first message. All threads get it.
__device__ inline void begin_search(const ShardSearch& s, const Parameters& p, std::int64_t row, float temperature,
                                    draftproof_shard_kept& kept, draftproof_shard_search& search) {
  if (!s.is_mass) kept = {0, negative_infinity(), 0x7fffffff, DRAFTPROOF_ROW_OK, 0};
  if (!p.valid) kept.status = DRAFTPROOF_ROW_BAD_PARAMETER;
  CombinedRows rows = s.rows;
  rows.kept = nullptr;
  const DistributionRow record = combined_row(rows, row, temperature);
  const bool draws = record.status == DRAFTPROOF_ROW_OK && kept.status == DRAFTPROOF_ROW_OK && temperature != 0.0f;
  if (draws && !s.is_mass && p.min_p != 0.0f) {
    const float first = value_of_largest(s.rows.largest[row]);
    kept.least_mass = ceil_of_fraction(p.min_p, mass_in_tile(first, record.exponent));
  }
  const bool searches = draws && (s.is_mass ? p.top_p != 1.0f : p.top_k != 0);
  search = {0, searches ? std::uint64_t{1} : 0, 0, -1};
}

// The bucket of the message in which the limit is reached becomes part of the key.
__device__ inline void take_histogram(const ShardSearch& s, const Parameters& p, std::int64_t row,
                                      draftproof_shard_search& search) {
  const std::int32_t bucket = kSearchBuckets - 1 - static_cast<std::int32_t>(threadIdx.x);  // from the largest keys on
  const std::uint64_t word =
      s.is_mass ? s.combined[row * kSearchBuckets + bucket] : s.combined[row * kSearchBuckets / 2 + bucket / 2];
  const std::uint64_t share = s.is_mass ? word : word >> 32 * (bucket % 2) & 0xffffffffu;
  if (s.round == 1) {
    const std::uint64_t whole = block_reduce(share, Sum{});
    const std::uint64_t mass_limit = s.is_mass ? ceil_of_fraction(p.top_p, whole) : 0;
    search.limit = s.is_mass ? Max{}(mass_limit, std::uint64_t{1}) : static_cast<std::uint64_t>(p.top_k);
    if (!s.is_mass && whole <= search.limit) search.limit = 0;  // keeps all
    if (search.limit == 0) return;
  }
  const ReachedShare reached = reach(search.before, share, search.limit);
  search.before = reached.before;
  search.key |= static_cast<std::uint32_t>(kSearchBuckets - 1 - reached.place) << (32 - 8 * s.round);
}

// Takes the combined message of the round before, and clears that of this one. Grid: rows blocks of kSearchThreads.
__global__ void step_shard_search(ShardSearch s) {
  const std::int64_t row = blockIdx.x;
  const Parameters p = parameters_of(s.parameters, row);
  for (std::int64_t w = threadIdx.x; w < s.words; w += blockDim.x) s.message[row * s.words + w] = 0;
  draftproof_shard_kept kept{};
  draftproof_shard_search search{};
  if (s.round != 0) search = s.search[row];
  if (s.round != 0 || s.is_mass) kept = s.kept[row];
  __syncthreads();
  if (s.round == 0) {
    begin_search(s, p, row, s.shard.temperature_of(row), kept, search);
  } else if (search.limit != 0 && s.round <= kHistogramRounds) {
    take_histogram(s, p, row, search);
    if (s.round == kHistogramRounds && search.limit != 0 && p.keeps_ties) end_search(p, search.key, 0, kept, search);
  } else if (search.limit != 0 && s.round == kHistogramRounds + 1) {
    const bool is_device = threadIdx.x < static_cast<std::uint32_t>(s.shard.devices);
    const ReachedShare reached = reach(
        search.before, is_device ? s.combined[row * s.shard.devices + threadIdx.x] : std::uint64_t{0}, search.limit);
    search.before = reached.before;
    search.owner = reached.place;
  } else if (search.limit != 0) {
    end_search(p, search.key, static_cast<Token>(s.combined[row]) - 1, kept, search);
  }
  if (threadIdx.x != 0) return;
  s.search[row] = search;
  s.kept[row] = kept;
}

// Adds a tile's tokens to the message: the histogram of round 0 to 3, the measure of one value in round 4. Grid: rows *
// tiles of the device blocks.
__global__ void add_to_shard_search(ShardSearch s) {
  const std::int64_t row = blockIdx.x / static_cast<std::uint32_t>(s.shard.device_tiles);
  const std::int64_t tile = s.shard.first_tile + blockIdx.x % static_cast<std::uint32_t>(s.shard.device_tiles);
  const draftproof_shard_search search = s.search[row];
  if (search.limit == 0) return;  // the same in all threads
  const bool top_k_first = value_of<std::uint8_t>(s.parameters.filter_order, row, 0) != 0;
  const DistributionRow record = combined_row(s.rows, row, s.shard.temperature_of(row));
  const std::int32_t exponent = s.rows.exponent(row, tile);
  if (s.round == kHistogramRounds) {
    std::uint64_t sum = 0;
    s.shard.for_each(row, tile, [&](float x, std::int64_t token) {
      if (order_key(x) != search.key || !s.counts(record, top_k_first, x, token, exponent)) return;
      sum += s.measure(x, record.exponent, exponent);
    });
    sum = block_reduce(sum, Sum{});
    if (threadIdx.x == 0 && sum != 0) atomicAdd(&s.message[row * s.words + s.shard.device], sum);
    return;
  }
  DRAFTPROOF_SHARED(std::uint64_t, bucket, kSearchBuckets);
  for (std::uint32_t b = threadIdx.x; b < kSearchBuckets; b += blockDim.x) bucket[b] = 0;
  __syncthreads();
  const int shift = 24 - 8 * s.round;
  const std::uint32_t known = s.round == 0 ? 0 : ~0u << (shift + 8);
  s.shard.for_each(row, tile, [&](float x, std::int64_t token) {
    const std::uint32_t key = order_key(x);
    if ((key & known) != (search.key & known) || !s.counts(record, top_k_first, x, token, exponent)) return;
    const std::uint64_t amount = s.measure(x, record.exponent, exponent);
    if (amount != 0) atomicAdd(&bucket[key >> shift & 0xffu], amount);
  });
  __syncthreads();
  for (std::uint32_t b = threadIdx.x; b < kSearchBuckets; b += blockDim.x) {
    const std::uint64_t sum = bucket[b];
    if (sum == 0) continue;
    if (s.is_mass) {
      atomicAdd(&s.message[row * s.words + b], sum);
    } else {
      atomicAdd(&s.message[row * s.words + b / 2], sum << 32 * (b % 2));
    }
  }
}

// Round 5: the token of the value at which the limit is reached, as token + 1, where this device has it. Grid: rows
// blocks.
__global__ void find_shard_tie(ShardSearch s) {
  const std::int64_t row = blockIdx.x;
  const draftproof_shard_search search = s.search[row];
  if (search.limit == 0 || search.owner != s.shard.device) return;  // the same in all threads
  const bool top_k_first = value_of<std::uint8_t>(s.parameters.filter_order, row, 0) != 0;
  const float temperature = s.shard.temperature_of(row);
  const DistributionRow record = combined_row(s.rows, row, temperature);
  constexpr int kCount = ShardView::kCount;
  std::uint64_t before = search.before;
  for (std::int64_t first = s.shard.begin / kCount * kCount; first < s.shard.end; first += blockDim.x * kCount) {
    const std::int64_t column = first + threadIdx.x * kCount;
    std::uint64_t amount[kCount];
    std::uint64_t own = 0;
    float x[kCount];
    s.shard.load(row, column, x);
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      amount[i] = 0;
      const float logit = over_temperature(x[i], temperature);
      if (!(logit >= -kLogitLimit) || order_key(logit) != search.key) continue;
      const std::int32_t exponent = s.rows.exponent(row, (column + i) / kTileTokens);
      if (s.counts(record, top_k_first, logit, column + i, exponent))
        amount[i] = s.measure(logit, record.exponent, exponent);
      own += amount[i];
    }
    const Scanned<std::uint64_t> scanned = block_scan(own);
    if (before + scanned.total < search.limit) {
      before += scanned.total;
      continue;
    }
    std::uint64_t passed = before + scanned.before;
    if (passed < search.limit && passed + own >= search.limit) {
      int i = 0;
      while (passed + amount[i] < search.limit) passed += amount[i++];
      s.message[row] = static_cast<std::uint64_t>(column + i) + 1;
    }
    return;
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
