// One row of logits as a block goes through it again and again: processed logits with the exponents of their tiles.
#pragma once

#include <cstdint>

#include "gpu/kernels/distribution.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// W_i of a token with processed logit x in its tile, the bits of mass_of_weight(tile_weight(exp_parts(x), N_t)).
__device__ inline std::uint64_t mass_in_tile(float x, std::int32_t tile_exponent) {
  constexpr std::int32_t kFastExponent = 93000;  // exponents of logits within kFastTileLimit
  if (tile_exponent >= -kFastExponent && tile_exponent <= kFastExponent) {
    MassSum one(tile_exponent);
    const float lowest = one.lowest();
    one.add(x > lowest ? x : lowest);
    return one.sum();
  }
  return mass_of_weight(tile_weight(exp_parts(x), tile_exponent));
}

// Is the token left of the row? x: its processed logit.
__device__ inline bool is_kept(const DistributionRow& row, float x, std::int64_t token, std::int32_t tile_exponent) {
  if (!(x >= -kLogitLimit) || x < row.last_value || (x == row.last_value && token > row.last_token)) return false;
  return row.least_mass == 0 ||
         !is_too_small(row, x, token, row_scale(mass_in_tile(x, tile_exponent), row.exponent, tile_exponent));
}

template <class Element>
class RowReader {
 public:
  static constexpr int kCount = 8;  // consecutive tokens of a thread

  __device__ RowReader(const RowsView& logits, std::int64_t row, std::int64_t vocab_size, float temperature,
                       Global<const std::int32_t> tile_exponent)
      : data_(logits.elements<Element>()),
        begin_(row * logits.row_stride),
        vocab_size_(vocab_size),
        vectors_(logits.aligned != 0),
        temperature_(temperature),
        tile_exponent_(tile_exponent) {}

  __device__ std::int64_t vocab_size() const { return vocab_size_; }
  __device__ std::int32_t tile_exponent(std::int64_t token) const { return tile_exponent_[token / kTileTokens]; }

  // The processed logits of the tokens from `column` on, a multiple of kCount; -infinity where there are none.
  __device__ void load(std::int64_t column, float (&x)[kCount]) const {
    load_elements(data_, begin_ + column, vocab_size_ - column, vectors_, negative_infinity(), x);
    if (temperature_ == 1.0f) return;
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) x[i] = x[i] / temperature_;
  }

  // visit(x, token, N_t) for every token of [begin, end) that is not masked, by all threads of the block together.
  // begin: a multiple of kCount.
  template <class Visit>
  __device__ void for_each(std::int64_t begin, std::int64_t end, Visit visit) const {
    for (std::int64_t column = begin + threadIdx.x * kCount; column < end; column += blockDim.x * kCount) {
      float x[kCount];
      load(column, x);
      const std::int32_t exponent = tile_exponent(column);
      DRAFTPROOF_UNROLL
      for (int i = 0; i < kCount; ++i)
        if (x[i] >= -kLogitLimit) visit(x[i], column + i, exponent);
    }
  }
  template <class Visit>
  __device__ void for_each(Visit visit) const {
    for_each(0, vocab_size_, visit);
  }

  // The value of the first token of the total order, which stands in a tile with the exponent of the row.
  __device__ float first_value(std::int32_t row_exponent) const {
    float largest = negative_infinity();
    for (std::int64_t begin = 0; begin < vocab_size_; begin += kTileTokens) {
      if (tile_exponent(begin) != row_exponent) continue;
      const std::int64_t end = begin + kTileTokens < vocab_size_ ? begin + kTileTokens : vocab_size_;
      for_each(begin, end, [&](float x, std::int64_t, std::int32_t) { largest = x > largest ? x : largest; });
    }
    return block_reduce(largest, Max{});
  }

 private:
  Global<const Element> data_;
  std::int64_t begin_;
  std::int64_t vocab_size_;
  bool vectors_;
  float temperature_;
  Global<const std::int32_t> tile_exponent_;
};

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
