// Row laws and random words written down by hand. Laws look into the vectors that they were made of.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/random/philox.hpp"
#include "reference/sampling/row_law.hpp"

namespace draftproof {

// `number` is the row's in messages.
inline RowLaw probabilities_of(const std::vector<float>& row, std::int64_t number = 0) {
  RowLaw law;
  law.make_probabilities({DType::f32, row.data(), static_cast<std::int64_t>(row.size())}, number);
  return law;
}
inline RowLaw one_hot_of(Token token, std::size_t vocab_size) {
  RowLaw law;
  law.make_one_hot(token, static_cast<std::int64_t>(vocab_size));
  return law;
}
inline RowLaw logits_of(const std::vector<float>& logits) {
  RowLaw law;
  law.make_distribution().assign(logits, 0);
  return law;
}

// The block whose two 64-bit words are these.
inline RandomBlock block_of(std::uint64_t high, std::uint64_t low) {
  return {{static_cast<std::uint32_t>(high >> 32), static_cast<std::uint32_t>(high),
           static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(low)}};
}

}  // namespace draftproof
