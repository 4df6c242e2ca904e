// Attention in vectors, a tile of 16 positions of one head at a time, for several queries.
// Read once per instruction set by transformer_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_TRANSFORMER_SIMD_ATTENTION_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_TRANSFORMER_SIMD_ATTENTION_TOGGLE
#undef DRAFTPROOF_TRANSFORMER_SIMD_ATTENTION_TOGGLE
#else
#define DRAFTPROOF_TRANSFORMER_SIMD_ATTENTION_TOGGLE
#endif

#include "reference/model/transformer/simd_lanes.hpp"

#if DRAFTPROOF_TRANSFORMER_TARGET
#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

constexpr int kQueriesAtOnce = 8;  // accumulators in registers

template <int kQueries>
HWY_INLINE void scores_of(const float* const* queries, const std::uint16_t* key, std::size_t head_len,
                          float* const* scores) {
  const LaneTag d;
  for (std::size_t v = 0; v < kVectors; ++v) {
    LaneVector sums[kQueries];
    for (LaneVector& sum : sums) sum = hn::Zero(d);
    for (std::size_t i = 0; i < head_len; ++i) {
      const LaneVector k = load_f16(key + i * 16 + v * kVectorLanes);
      for (int j = 0; j < kQueries; ++j) sums[j] = hn::MulAdd(hn::Set(d, queries[j][i]), k, sums[j]);
    }
    for (int j = 0; j < kQueries; ++j) hn::StoreU(sums[j], d, scores[j] + v * kVectorLanes);
  }
}

template <int kQueries>
HWY_INLINE void values_of(const float* const* weights, std::size_t count, const std::uint16_t* value,
                          std::size_t head_len, float* const* out) {
  const LaneTag d;
  for (std::size_t i = 0; i < head_len; i += kVectorLanes) {
    LaneVector sums[kQueries];
    for (int j = 0; j < kQueries; ++j) sums[j] = hn::LoadU(d, out[j] + i);
    for (std::size_t p = 0; p < count; ++p) {
      const LaneVector v = load_f16(value + p * head_len + i);
      for (int j = 0; j < kQueries; ++j) sums[j] = hn::MulAdd(hn::Set(d, weights[j][p]), v, sums[j]);
    }
    for (int j = 0; j < kQueries; ++j) hn::StoreU(sums[j], d, out[j] + i);
  }
}

// Calls one of body<1> ... body<8> for every chunk of queries.
template <class Body>
HWY_INLINE void by_queries(int num_queries, Body body) {
  for (int j = 0; j < num_queries; j += kQueriesAtOnce) {
    switch (std::min(num_queries - j, kQueriesAtOnce)) {
      case 1:
        body.template operator()<1>(j);
        break;
      case 2:
        body.template operator()<2>(j);
        break;
      case 3:
        body.template operator()<3>(j);
        break;
      case 4:
        body.template operator()<4>(j);
        break;
      case 5:
        body.template operator()<5>(j);
        break;
      case 6:
        body.template operator()<6>(j);
        break;
      case 7:
        body.template operator()<7>(j);
        break;
      default:
        body.template operator()<8>(j);
    }
  }
}

void tile_scores(const float* const* queries, int num_queries, const std::uint16_t* key, std::int64_t head_len,
                 float* const* scores) {
  by_queries(num_queries, [&]<int kQueries>(int j) HWY_ATTR {
    scores_of<kQueries>(queries + j, key, static_cast<std::size_t>(head_len), scores + j);
  });
}

void tile_values(const float* const* weights, int num_queries, std::size_t count, const std::uint16_t* value,
                 std::int64_t head_len, float* const* out) {
  by_queries(num_queries, [&]<int kQueries>(int j) HWY_ATTR {
    values_of<kQueries>(weights + j, count, value, static_cast<std::size_t>(head_len), out + j);
  });
}

float softmax(float* scores, std::size_t count) {
  const LaneTag d;
  const std::size_t whole = (count + 15) / 16 * 16;
  // The rest of the last tile must not be the largest, and weighs nothing.
  std::fill(scores + count, scores + whole, scores[0]);
  LaneVector largest = hn::Set(d, scores[0]);
  for (std::size_t p = 0; p < whole; p += kVectorLanes) largest = hn::Max(largest, hn::LoadU(d, scores + p));
  const LaneVector top = hn::MaxOfLanes(d, largest);
  LaneVector sums[kVectors];
  for (LaneVector& sum : sums) sum = hn::Zero(d);
  for (std::size_t p = 0; p < whole; p += kVectorLanes) {
    LaneVector weight = limited_exp(hn::Sub(hn::LoadU(d, scores + p), top));
    if (p + kVectorLanes > count) weight = hn::IfThenElseZero(hn::FirstN(d, p < count ? count - p : 0), weight);
    hn::StoreU(weight, d, scores + p);
    LaneVector& sum = sums[p / kVectorLanes % kVectors];
    sum = hn::Add(sum, weight);
  }
  return 1.0f / sum_of_lanes(sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
