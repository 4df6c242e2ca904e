// Where in the total order (value descending, id ascending) of a row a limit is reached: the exact end of top-k, of
// top-p and of the n most probable tokens (twin: longest_prefix in reference/logits/filters.cpp). One block a row.
//
// Tokens are counted, and their masses added up, in 2,048 buckets that are linear in how far a logit lies below the
// row's first: keys of floats would put most of a row into a few buckets. What lies 32 nats below has no mass, so that
// only a count can end there. The tokens of the one bucket in which a limit is reached are listed in shared memory,
// sorted and gone through in order. Where they are too many for the list, their bucket is narrowed first, by the bits
// of (key, id) in which they differ: eleven at a time.
#pragma once

#include <cstdint>

#include "gpu/kernels/row_reader.cuh"
#include "gpu/kernels/sort.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline constexpr std::uint32_t kBuckets = 2048;
inline constexpr int kBucketBits = 11;
inline constexpr float kBucketsPerNat = 64.0f;
inline constexpr std::uint32_t kListTokens = 2048;

// 40 KiB; every call gives the same arrays.
struct SearchMemory {
  Shared<std::uint32_t> count;     // of a bucket
  Shared<std::uint32_t> mass_low;  // its mass, in two words because shared memory adds 32 bits at once
  Shared<std::uint32_t> mass_high;
  Shared<std::uint64_t> list;  // packed_first of tokens
};
__device__ inline SearchMemory search_memory() {
  DRAFTPROOF_SHARED(std::uint32_t, bucket_count, kBuckets);
  DRAFTPROOF_SHARED(std::uint32_t, bucket_mass_low, kBuckets);
  DRAFTPROOF_SHARED(std::uint32_t, bucket_mass_high, kBuckets);
  DRAFTPROOF_SHARED(std::uint64_t, listed_tokens, kListTokens);
  return {bucket_count, bucket_mass_low, bucket_mass_high, listed_tokens};
}

// The value that packed_first was made of; of -0 it is +0.
__device__ inline float value_of_packed(std::uint64_t packed) {
  return value_of_key(static_cast<std::uint32_t>(packed >> 32));
}

// A prefix ends with the first token at which either limit is reached. Each is at least 1; the largest number is none.
struct PrefixLimits {
  std::uint32_t count;
  std::uint64_t mass;

  __device__ bool reached(std::uint32_t counted, std::uint64_t added) const {
    return counted >= count || added >= mass;
  }
};
inline constexpr std::uint32_t kNoCountLimit = 0xffffffff;
inline constexpr std::uint64_t kNoMassLimit = 0xffffffffffffffff;

struct Prefix {
  bool reached;        // no: all tokens that take part stay below the limits
  std::uint64_t last;  // packed_first of the last token; with ties its key and zeros for the id
  std::uint64_t mass;  // of the prefix; of all of them where no limit was reached
};

// Consecutive tokens of the total order, with what stands before them.
struct PrefixPart {
  std::uint64_t mass_before;
  std::uint64_t mass;
  std::uint32_t count_before;
  std::uint32_t count;
  std::uint32_t bucket;
};

// A value that at least `count` of the tokens that take part reach, if so many threads have one: the count-th of the
// largest values of the threads; else -infinity. count is above 0. By all threads of the block.
template <class Element, class Measure>
__device__ inline float value_reached_by(const RowReader<Element>& row, const Measure& measure, std::uint32_t count) {
  if (count > blockDim.x) return negative_infinity();
  float largest = negative_infinity();
  row.for_each([&](float x, std::int64_t token, std::int32_t exponent) {
    if (x > largest && measure.counts(x, token, exponent)) largest = x;
  });
  const Shared<std::uint64_t> list = search_memory().list;
  list[threadIdx.x] = order_key(largest);
  __syncthreads();
  sort_descending(list, blockDim.x);
  const std::uint64_t key = list[count - 1];
  __syncthreads();
  return value_of_key(static_cast<std::uint32_t>(key));
}

// Measure: counts(x, token, N_t), whether a token that is not masked takes part, and mass(x, N_t), 0 where only counts
// matter. The first value of the row must take part. kIsBounded: restart() says below which value tokens do not, where
// no limit is reached. kReverses: of ties the last ids come first; packed_first then has vocab_size - 1 - id.
template <class Element, class Measure, bool kIsBounded = false, bool kReverses = false>
class PrefixSearch {
 public:
  // keeps_ties: all tokens of the last value belong to a prefix.
  __device__ PrefixSearch(const RowReader<Element>& row, const Measure& measure, float first_value, bool keeps_ties)
      : row_(row), measure_(measure), memory_(search_memory()), first_value_(first_value), keeps_ties_(keeps_ties) {
    if constexpr (!kIsBounded) fill_linear();
  }
  // Before the first find().
  __device__ void restart(float lowest_value) {
    lowest_value_ = lowest_value;
    fill_linear();
  }

  __device__ std::uint64_t mass() const { return mass_; }  // of the tokens that take part

  __device__ Prefix find(const PrefixLimits& limits) {
    if (!is_linear_) fill_linear();
    PrefixPart part{};
    if (limits.reached(bucketed_, mass_)) {
      part = bucket_of(limits, PrefixPart{});
    } else if (limits.reached(bucketed_ + beyond_, mass_)) {
      part = {mass_, 0, bucketed_, beyond_, kBuckets};
    } else {
      return {false, 0, mass_};
    }
    linear_bucket_ = part.bucket;
    lowest_ = 0;
    highest_ = ~std::uint64_t{0};
    while (part.count > kListTokens) {
      if (!narrow(limits, part)) return {true, lowest_, part.mass_before + part.mass};
    }
    return end_in_list(limits, part);
  }

 private:
  __device__ bool is_below(float x) const {
    if constexpr (kIsBounded) return x < lowest_value_;
    return false;
  }
  // The larger, the further behind; kBuckets: beyond the last one.
  __device__ std::uint32_t linear_bucket(float x) const {
    const float below = (first_value_ - x) * kBucketsPerNat;
    return below < static_cast<float>(kBuckets) ? static_cast<std::uint32_t>(below) : kBuckets;
  }
  // Place of an id among all of them in the order of ties; its own inverse.
  __device__ std::int64_t place_of(std::int64_t token) const {
    if constexpr (kReverses) return row_.vocab_size() - 1 - token;
    return token;
  }
  // Sort key of this search.
  __device__ std::uint64_t order_of(float x, std::int64_t token) const {
    const std::uint64_t packed = packed_first(x, place_of(token));
    return keeps_ties_ ? packed & 0xffffffff00000000u : packed;
  }
  // visit(x, token, N_t, order) for the tokens of the current bucket.
  template <class Visit>
  __device__ void for_each_of_bucket(Visit visit) const {
    row_.for_each([&](float x, std::int64_t token, std::int32_t exponent) {
      if (is_below(x) || linear_bucket(x) != linear_bucket_) return;
      const std::uint64_t order = order_of(x, token);
      if (order < lowest_ || order > highest_ || !measure_.counts(x, token, exponent)) return;
      visit(x, token, exponent, order);
    });
  }

  __device__ void clear_buckets() {
    for (std::uint32_t b = threadIdx.x; b < kBuckets; b += blockDim.x) {
      memory_.count[b] = 0;
      memory_.mass_low[b] = 0;
      memory_.mass_high[b] = 0;
    }
    __syncthreads();
  }
  __device__ void add_to_bucket(std::uint32_t bucket, std::uint64_t mass) {
    atomicAdd(&memory_.count[bucket], 1u);
    if (mass == 0) return;
    const auto low = static_cast<std::uint32_t>(mass);
    const std::uint32_t before = atomicAdd(&memory_.mass_low[bucket], low);
    const std::uint32_t carry = before > 0xffffffffu - low ? 1 : 0;
    const std::uint32_t high = static_cast<std::uint32_t>(mass >> 32) + carry;
    if (high != 0) atomicAdd(&memory_.mass_high[bucket], high);
  }
  __device__ std::uint64_t mass_of_bucket(std::uint32_t bucket) const {
    const std::uint32_t low = memory_.mass_low[bucket];
    const std::uint32_t high = memory_.mass_high[bucket];
    return static_cast<std::uint64_t>(high) << 32 | low;
  }

  __device__ void fill_linear() {
    clear_buckets();
    std::uint32_t beyond = 0;
    row_.for_each([&](float x, std::int64_t token, std::int32_t exponent) {
      if (is_below(x) || !measure_.counts(x, token, exponent)) return;
      const std::uint32_t bucket = linear_bucket(x);
      if (bucket == kBuckets) {
        ++beyond;
      } else {
        add_to_bucket(bucket, measure_.mass(x, exponent));
      }
    });
    __syncthreads();
    std::uint32_t count = 0;
    std::uint64_t mass = 0;
    for (std::uint32_t b = threadIdx.x; b < kBuckets; b += blockDim.x) {
      count += memory_.count[b];
      mass += mass_of_bucket(b);
    }
    beyond_ = block_reduce(beyond, Sum{});
    bucketed_ = block_reduce(count, Sum{});
    mass_ = block_reduce(mass, Sum{});
    is_linear_ = true;
  }

  // The first bucket with which a limit is reached; one is.
  __device__ PrefixPart bucket_of(const PrefixLimits& limits, const PrefixPart& before) {
    const std::uint32_t share = kBuckets / blockDim.x;
    const std::uint32_t begin = threadIdx.x * share;
    PrefixPart own{0, 0, 0, 0, 0};
    for (std::uint32_t b = begin; b < begin + share; ++b) {
      own.count += memory_.count[b];
      own.mass += mass_of_bucket(b);
    }
    PrefixPart part{before.mass_before + block_scan(own.mass).before, 0,
                    before.count_before + block_scan(own.count).before, 0, begin};
    bool is_here = !limits.reached(part.count_before, part.mass_before) &&
                   limits.reached(part.count_before + own.count, part.mass_before + own.mass);
    if (is_here) {
      for (;; ++part.bucket) {
        part.count = memory_.count[part.bucket];
        part.mass = mass_of_bucket(part.bucket);
        if (limits.reached(part.count_before + part.count, part.mass_before + part.mass)) break;
        part.count_before += part.count;
        part.mass_before += part.mass;
      }
    }
    return block_broadcast(is_here, part);
  }

  // Cuts the current bucket into up to 2,048 by the highest bits in which its tokens differ, and takes the one in which
  // a limit is reached. False if all are one value, ties kept: nothing is left to cut.
  __device__ bool narrow(const PrefixLimits& limits, PrefixPart& part) {
    std::uint64_t smallest = ~std::uint64_t{0};
    std::uint64_t largest = 0;
    for_each_of_bucket([&](float, std::int64_t, std::int32_t, std::uint64_t order) {
      smallest = order < smallest ? order : smallest;
      largest = order > largest ? order : largest;
    });
    smallest = block_reduce(smallest, Min{});
    largest = block_reduce(largest, Max{});
    if (smallest == largest) {
      lowest_ = smallest;
      return false;
    }
    const int differing = 64 - __clzll(static_cast<long long>(smallest ^ largest));
    const int shift = differing > kBucketBits ? differing - kBucketBits : 0;
    constexpr std::uint64_t kDigit = kBuckets - 1;
    is_linear_ = false;
    clear_buckets();
    for_each_of_bucket([&](float x, std::int64_t, std::int32_t exponent, std::uint64_t order) {
      add_to_bucket(static_cast<std::uint32_t>(kDigit - (order >> shift & kDigit)), measure_.mass(x, exponent));
    });
    __syncthreads();
    part = bucket_of(limits, part);
    lowest_ = ((largest >> shift & ~kDigit) | (kDigit - part.bucket)) << shift;
    highest_ = lowest_ + ((std::uint64_t{1} << shift) - 1);
    return true;
  }

  __device__ Prefix end_in_list(const PrefixLimits& limits, const PrefixPart& part) {
    DRAFTPROOF_SHARED(std::uint32_t, listed, 1);
    if (threadIdx.x == 0) listed[0] = 0;
    __syncthreads();
    for_each_of_bucket([&](float x, std::int64_t token, std::int32_t, std::uint64_t) {
      memory_.list[atomicAdd(&listed[0], 1u)] = packed_first(x, place_of(token));
    });
    __syncthreads();
    sort_descending(memory_.list, part.count);

    const std::uint32_t share = (part.count + blockDim.x - 1) / blockDim.x;
    const std::uint32_t begin = threadIdx.x * share;
    const std::uint32_t end = begin + share < part.count ? begin + share : part.count;
    std::uint64_t own = 0;
    for (std::uint32_t i = begin; i < end; ++i) own += mass_of_listed(i);
    std::uint64_t mass = part.mass_before + block_scan(own).before;
    std::uint64_t last = 0;
    bool is_here = begin < end && !limits.reached(part.count_before + begin, mass);
    if (is_here) {
      std::uint32_t i = begin;
      for (; i < end; ++i) {
        mass += mass_of_listed(i);
        if (limits.reached(part.count_before + i + 1, mass)) break;
      }
      is_here = i < end;
      if (is_here) last = memory_.list[i];
    }
    last = block_broadcast(is_here, last);
    if (keeps_ties_) last &= 0xffffffff00000000u;
    own = 0;
    for (std::uint32_t i = begin; i < end; ++i)
      if (memory_.list[i] >= last) own += mass_of_listed(i);
    own = block_reduce(own, Sum{});
    return {true, last, part.mass_before + own};
  }
  __device__ std::uint64_t mass_of_listed(std::uint32_t i) const {
    const std::uint64_t packed = memory_.list[i];
    return measure_.mass(value_of_packed(packed), row_.tile_exponent(place_of(token_of_packed(packed))));
  }

  const RowReader<Element>& row_;
  const Measure& measure_;
  SearchMemory memory_;
  float first_value_;
  float lowest_value_ = 0.0f;
  bool keeps_ties_;
  bool is_linear_ = false;
  std::uint32_t bucketed_ = 0;  // tokens in linear buckets
  std::uint32_t beyond_ = 0;    // and beyond the last
  std::uint64_t mass_ = 0;
  // The current bucket: its number, and which orders it spans.
  std::uint32_t linear_bucket_ = 0;
  std::uint64_t lowest_ = 0;
  std::uint64_t highest_ = 0;
};

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
