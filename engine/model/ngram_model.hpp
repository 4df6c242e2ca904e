// A byte-level n-gram language model with interpolated modified Kneser-Ney smoothing (Kneser and Ney 1995; Chen and
// Goodman 1999, "An empirical study of smoothing techniques for language modeling", section 3). It is the real, small
// model from which `draftproof demo` measures acceptance: a higher order is the target, a lower order is the draft.
//
// With h a context of m bytes, h' the same context without its oldest byte, w the next byte and n the order:
//
//   p_m(w | h) = (c_m(h w) - D_m(c_m(h w))) / C_m(h)  +  lambda_m(h) p_{m-1}(w | h')      p_{-1}(w) = 1/256
//   C_m(h)     = sum_w c_m(h w)          lambda_m(h) = sum_w D_m(c_m(h w)) / C_m(h)
//   c_{n-1}(h w) = how often h w occurs                       D_m(0) = 0, D_m(1) = D1, D_m(2) = D2, D_m(3 or more) = D3
//   c_m(h w)     = how many different bytes v precede h w     (m < n-1; the start of a document counts as one such v)
//
// and p_m(w | h) = p_{m-1}(w | h') where h was never followed by anything. No h w crosses the border of a document.
// Every byte has positive probability, because every lambda is positive and the recursion ends in the uniform
// distribution.
//
// Guarantee: bit-exact. Counts are integers, and probabilities are made of them by + - * / on doubles in one fixed
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

// Discounts of a count of one, of two, and of three or more: 0 < once < 1, 0 < twice < 2, 0 < more < 3. On small texts
// the estimates may leave less of a count of two than of a count of one; this is so in the published formulas.
struct Discounts {
  double once = 0;
  double twice = 0;
  double more = 0;
};

// The discounts of one context length. counts_of_counts[k] is the number of different (context, byte) pairs whose count
// is k + 1, for k = 0..3: t1..t4 of Chen and Goodman, equation 26. Where a t is zero or an estimate breaks an
// inequality above, as happens on small texts and for the 256 unigrams, all three are the single absolute discount t1 /
// (t1 + 2 t2) of Ney, Essen and Kneser (1994), or 1/2 where t1 or t2 is zero.
Discounts estimate_discounts(std::span<const std::uint64_t, 4> counts_of_counts);

class NgramModel {
 public:
  static constexpr int kVocabularySize = 256;
  static constexpr int kOrderMax = 12;
  static constexpr std::size_t kCorpusBytesMax = std::size_t{1} << 30;

  // Trains on one text, or on several documents whose n-grams are kept apart; the order of the documents does not
  // matter. Time O(order * bytes). Errors: usage if order is outside [1, 12]; input if there is no byte to train on, or
  // too many.
  static NgramModel train(std::span<const std::uint8_t> text, int order);
  static NgramModel train(std::span<const std::vector<std::uint8_t>> documents, int order);

  int order() const { return static_cast<int>(levels_.size()); }

  // The distribution of the next byte after `context`, of which the last order - 1 tokens are used; out has 256 entries
  // that sum to one up to rounding. Errors: input if a used token is not a byte; usage if out does not have 256
  // entries.
  void probabilities(std::span<const Token> context, std::span<double> out) const;

  // The natural logarithm of the same probabilities, rounded to float: the logits row of this model. Errors as above.
  void logits(std::span<const Token> context, std::span<float> out) const;

  // The discounts of contexts of `context_length` bytes. Errors: usage if that is outside [0, order - 1].
  const Discounts& discounts(int context_length) const;

 private:
  // The contexts of one length, sorted by their bytes from the newest to the oldest, so that the contexts that extend
  // one context by an older byte stand together in the next level, in the order of that byte.
  struct Level {
    std::vector<std::uint8_t> oldest_byte;             // one per context
    std::vector<std::uint32_t> first_child = {0};      // contexts + 1 offsets into the next level
    std::vector<std::uint32_t> first_successor = {0};  // contexts + 1 offsets into the two arrays that follow
    std::vector<std::uint8_t> successor;               // the bytes w seen after a context, ascending
    std::vector<std::uint32_t> count;                  // c_m(h w)
    Discounts discounts;
  };
  class Builder;

  NgramModel() = default;
  static NgramModel train_documents(std::span<const std::span<const std::uint8_t>> documents, int order);
  static void interpolate(const Level& level, std::size_t context_index, std::span<double> distribution);

  std::vector<Level> levels_;  // levels_[m] holds the contexts of m bytes; levels_[0] holds the empty context
};

}  // namespace draftproof
