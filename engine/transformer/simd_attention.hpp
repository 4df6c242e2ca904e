// Attention in vectors, a tile of 16 positions of one head at a time, for several queries.
// Read once per instruction set by transformer_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_TRANSFORMER_SIMD_ATTENTION_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_TRANSFORMER_SIMD_ATTENTION_TOGGLE
#undef DRAFTPROOF_TRANSFORMER_SIMD_ATTENTION_TOGGLE
#else
#define DRAFTPROOF_TRANSFORMER_SIMD_ATTENTION_TOGGLE
#endif

#include "engine/transformer/simd_lanes.hpp"

#if DRAFTPROOF_TRANSFORMER_TARGET
#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

constexpr int kQueriesAtOnce = 12;  // accumulators in registers, of which AVX2 has 16

// Loops over accumulators are unrolled by pragma: g++ 12 would keep their array in memory otherwise.
template <int kQueries>
HWY_INLINE void scores_of(const float* queries, std::size_t query_stride, const std::uint16_t* key,
                          std::size_t head_len, float* scores) {
  const LaneTag d;
  for (std::size_t v = 0; v < kVectors; ++v) {
    const float* q = queries;
    const std::uint16_t* k = key + v * kVectorLanes;
    const LaneVector first = load_f16(k);
    LaneVector sums[kQueries];
#pragma GCC unroll 12
    for (int j = 0; j < kQueries; ++j) sums[j] = hn::MulAdd(hn::Set(d, q[j]), first, hn::Zero(d));
    for (std::size_t i = 1; i < head_len; ++i) {
      q += query_stride;
      k += 16;
      const LaneVector keys = load_f16(k);
#pragma GCC unroll 12
      for (int j = 0; j < kQueries; ++j) sums[j] = hn::MulAdd(hn::Set(d, q[j]), keys, sums[j]);
    }
#pragma GCC unroll 12
    for (int j = 0; j < kQueries; ++j) hn::StoreU(sums[j], d, scores + j * 16 + v * kVectorLanes);
  }
}

template <int kQueries>
HWY_INLINE void values_of(const float* weights, std::size_t count, const std::uint16_t* value, std::size_t head_len,
                          float* out) {
  const LaneTag d;
  for (std::size_t i = 0; i < head_len; i += kVectorLanes) {
    LaneVector sums[kQueries];
#pragma GCC unroll 12
    for (std::size_t j = 0; j < kQueries; ++j) sums[j] = hn::LoadU(d, out + j * head_len + i);
    const std::uint16_t* v = value + i;
    const float* w = weights;
    for (std::size_t p = 0; p < count; ++p, v += head_len, ++w) {
      const LaneVector values = load_f16(v);
#pragma GCC unroll 12
      for (int j = 0; j < kQueries; ++j) sums[j] = hn::MulAdd(hn::Set(d, w[j * 16]), values, sums[j]);
    }
#pragma GCC unroll 12
    for (std::size_t j = 0; j < kQueries; ++j) hn::StoreU(sums[j], d, out + j * head_len + i);
  }
}

// Calls one of body<1> ... body<12> for every chunk of queries.
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
      case 8:
        body.template operator()<8>(j);
        break;
      case 9:
        body.template operator()<9>(j);
        break;
      case 10:
        body.template operator()<10>(j);
        break;
      case 11:
        body.template operator()<11>(j);
        break;
      default:
        body.template operator()<12>(j);
    }
  }
}

void tile_scores(const float* queries, std::size_t query_stride, int num_queries, const std::uint16_t* key,
                 std::int64_t head_len, float* scores) {
  by_queries(num_queries, [&]<int kQueries>(int j) HWY_ATTR {
    scores_of<kQueries>(queries + j, query_stride, key, static_cast<std::size_t>(head_len), scores + j * 16);
  });
}

void tile_values(const float* weights, int num_queries, std::size_t count, const std::uint16_t* value,
                 std::int64_t head_len, float* out) {
  by_queries(num_queries, [&]<int kQueries>(int j) HWY_ATTR {
    values_of<kQueries>(weights + j * 16, count, value, static_cast<std::size_t>(head_len), out + j * head_len);
  });
}

float softmax(float* scores, std::size_t first, std::size_t count, std::size_t tile_stride) {
  const LaneTag d;
  const std::size_t tiles = (count + 15) / 16;
  // Scores before the first and behind the last position must not be the largest, and weigh nothing.
  std::fill_n(scores, first, scores[first]);
  const std::size_t in_last = count - (tiles - 1) * 16;
  float* const last = scores + (tiles - 1) * tile_stride;
  std::fill(last + in_last, last + 16, scores[0]);
  LaneVector largest = hn::Set(d, scores[0]);
  for (std::size_t t = 0; t < tiles; ++t)
    for (std::size_t v = 0; v < kVectors; ++v)
      largest = hn::Max(largest, hn::LoadU(d, scores + t * tile_stride + v * kVectorLanes));
  const LaneVector top = hn::MaxOfLanes(d, largest);
  LaneVector sums[kVectors];
  for (LaneVector& sum : sums) sum = hn::Zero(d);
  for (std::size_t t = 0; t < tiles; ++t)
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const at = scores + t * tile_stride + v * kVectorLanes;
      LaneVector weight = limited_exp(hn::Sub(hn::LoadU(d, at), top));
      const std::size_t begin = t * 16 + v * kVectorLanes;
      if (begin + kVectorLanes > count)
        weight = hn::IfThenElseZero(hn::FirstN(d, begin < count ? count - begin : 0), weight);
      if (begin < first) weight = hn::IfThenZeroElse(hn::FirstN(d, first - begin), weight);
      hn::StoreU(weight, d, at);
      sums[v] = hn::Add(sums[v], weight);
    }
  return 1.0f / sum_of_lanes(sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
