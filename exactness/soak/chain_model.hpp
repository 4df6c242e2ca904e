// A pair of models for soaks: small vocabulary, 32-bit probabilities as production reads them, distributions that
// depend on the position in the draft and on the token before it. Small enough that a trial costs next to nothing, rich
// enough that a fault that couples positions shows in the joint distribution.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exactness/model_pair.hpp"
#include "reference/sampling/distribution.hpp"

namespace draftproof {

inline constexpr std::int32_t kSoakVocabMax = 8;
inline constexpr std::int32_t kSoakDraftMax = 5;

class ChainModel {
 public:
  // 1 <= vocab_size <= kSoakVocabMax, 0 <= draft_len <= kSoakDraftMax. Errors (usage) otherwise.
  ChainModel(std::int32_t vocab_size, std::int32_t draft_len, ModelKind kind, std::uint64_t seed);
  ChainModel(const ChainModel&) = delete;  // distributions refer to the rows
  ChainModel& operator=(const ChainModel&) = delete;

  std::int32_t vocab_size() const { return vocab_size_; }
  std::int32_t draft_len() const { return draft_len_; }

  // Distributions after `position` drafts of which the last is `previous` (0 at position 0); of the draft: position <
  // draft_len.
  const Distribution& target(std::int32_t position, Token previous) const {
    return target_[index_of(position, previous)];
  }
  const Distribution& draft(std::int32_t position, Token previous) const {
    return draft_[index_of(position, previous)];
  }

  // Counts what a trial emits in cells: first those of one token, then of two, and so on.
  std::size_t cell_count() const { return first_cell(draft_len_ + 1); }
  std::size_t first_cell(std::int32_t num_accepted) const;
  std::size_t cell_of(std::span<const Token> emitted) const;
  std::vector<Token> tokens_of(std::size_t cell) const;

  // The distribution of the cells [cell_count()]: an accepted draft x has probability min(p, q), the recovered token (p
  // - q)_+, the bonus token p (Leviathan et al. 2211.17192, section 2.3), in double.
  std::vector<double> emitted_distribution() const;

 private:
  std::size_t index_of(std::int32_t position, Token previous) const {
    return static_cast<std::size_t>(position) * static_cast<std::size_t>(vocab_size_) +
           static_cast<std::size_t>(previous);
  }
  void add_cells(std::int32_t position, Token previous, std::size_t path, double probability,
                 std::vector<double>& distribution) const;

  std::int32_t vocab_size_;
  std::int32_t draft_len_;
  std::vector<std::vector<float>> rows_;
  std::vector<Distribution> target_, draft_;
};

}  // namespace draftproof
