// A draft vocabulary V_d that is a part of the target's V, as EAGLE-3 heads have it: draft token i is the target's
// token ids[i]. Checkpoints hold offsets d2t [V_d] with ids[i] = i + d2t[i] (EAGLE-3, speculators) or the ids (GGUF).
//
// Verifiers know the target's vocabulary alone. Their proposal is the head's row scattered to V, 0 outside V_d, and
// their residual max(p - q, 0) is taken over all of V: a token that the head cannot draft is emitted as recovered or
// bonus token. With that every guarantee holds as it stands, for it is a proposal with zeros (docs/verifiers.md,
// "Drafts of learned heads").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

class DraftVocabulary {
 public:
  // ids [V_d]: the target's id of every draft token. Errors (input) naming `where`: no ids; ids that do not rise, or
  // that lie outside [0, vocab_size).
  DraftVocabulary(std::vector<Token> ids, std::int64_t vocab_size, const std::string& where)
      : ids_(std::move(ids)), vocab_size_(vocab_size) {
    if (ids_.empty()) throw input_error(where, "the draft vocabulary is empty; expected one token or more");
    for (std::size_t i = 0; i < ids_.size(); ++i) check(i, ids_[i], where);
  }
  // offsets [V_d]: draft token i is the target's i + offsets[i]. Errors as above.
  static DraftVocabulary of_offsets(std::span<const std::int64_t> offsets, std::int64_t vocab_size,
                                    const std::string& where) {
    std::vector<Token> ids;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      // Compared before it is added and narrowed: an offset of a damaged file may be any 64-bit number.
      const bool inside =
          offsets[i] >= -static_cast<std::int64_t>(i) && offsets[i] < vocab_size - static_cast<std::int64_t>(i);
      if (!inside)
        throw input_error(where, "the offset of draft token " + std::to_string(i) + " is " +
                                     std::to_string(offsets[i]) + "; expected an id " + std::to_string(i) +
                                     " + offset in [0, " + std::to_string(vocab_size) + ")");
      ids.push_back(static_cast<Token>(static_cast<std::int64_t>(i) + offsets[i]));
    }
    return {std::move(ids), vocab_size, where};
  }

  std::int32_t size() const { return static_cast<std::int32_t>(ids_.size()); }  // V_d
  std::int64_t vocab_size() const { return vocab_size_; }                       // V
  Token target_id(Token draft_token) const { return ids_[static_cast<std::size_t>(draft_token)]; }

  // masses [V_d] -> [V], 0 outside the draft vocabulary.
  template <class Number>
  DenseMasses<Number> scattered(const DenseMasses<Number>& masses) const {
    DenseMasses<Number> all(static_cast<std::size_t>(vocab_size_), Number(0));
    for (std::size_t i = 0; i < ids_.size(); ++i) all[static_cast<std::size_t>(ids_[i])] = masses[i];
    return all;
  }
  // masses [V] -> [V_d], as they are: not divided by their sum.
  template <class Number>
  DenseMasses<Number> gathered(const DenseMasses<Number>& masses) const {
    DenseMasses<Number> part;
    for (const Token id : ids_) part.push_back(masses[static_cast<std::size_t>(id)]);
    return part;
  }

 private:
  void check(std::size_t i, Token id, const std::string& where) const {
    const Token before = i == 0 ? -1 : ids_[i - 1];
    if (id > before && id < vocab_size_) return;
    throw input_error(where, "draft token " + std::to_string(i) + " is the target's " + std::to_string(id) +
                                 "; expected ids that rise, here one above " + std::to_string(before) + " and below " +
                                 std::to_string(vocab_size_));
  }

  std::vector<Token> ids_;
  std::int64_t vocab_size_;
};

}  // namespace draftproof
