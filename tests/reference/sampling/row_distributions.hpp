// Row distributions and random words written down by hand. Distributions look into the vectors that they were made of.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>

#include "reference/random/philox.hpp"
#include "reference/sampling/distribution.hpp"
#include "tests/support/test.hpp"

namespace draftproof {

// `number` is the row's in messages.
inline Distribution probabilities_of(const std::vector<float>& row, std::int64_t number = 0) {
  Distribution distribution;
  distribution.make_probabilities({DType::f32, row.data(), static_cast<std::int64_t>(row.size())}, number);
  return distribution;
}
inline Distribution one_hot_of(Token token, std::size_t vocab_size) {
  Distribution distribution;
  distribution.make_one_hot(token, static_cast<std::int64_t>(vocab_size));
  return distribution;
}
inline Distribution logits_of(const std::vector<float>& logits) {
  Distribution distribution;
  distribution.make_logits_distribution().assign(logits, 0);
  return distribution;
}

// The block whose two 64-bit words are these.
inline RandomBlock block_of(std::uint64_t high, std::uint64_t low) {
  return {{static_cast<std::uint32_t>(high >> 32), static_cast<std::uint32_t>(high),
           static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(low)}};
}

using boost::multiprecision::cpp_int;

// The first 64-bit word that lands at or beyond `position` of `total` equally long pieces: ceil(2^64 position / total).
inline std::uint64_t first_word_at(const cpp_int& position, const cpp_int& total) {
  return static_cast<std::uint64_t>(cpp_int(((position << 64) + total - 1) / total));
}

// Which of the consecutive intervals of these lengths holds floor(word * total / 2^64), by exact integers.
template <class Iterator>
std::ptrdiff_t interval_of(std::uint64_t word, Iterator begin, Iterator end) {
  cpp_int total = 0;
  for (Iterator it = begin; it != end; ++it) total += *it;
  const cpp_int position = (cpp_int(word) * total) >> 64;
  cpp_int reached = 0;
  Iterator it = begin;
  while ((reached += *it) <= position) ++it;
  return it - begin;
}

}  // namespace draftproof
