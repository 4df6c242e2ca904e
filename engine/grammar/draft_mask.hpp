// Masks of a grammar along drafts: behind every node that of its own path, however trees branch and in whatever
// order nodes are asked for. The state is moved along the path and taken back, so that drafts leave no trace in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/grammar/grammar.hpp"
#include "reference/verify/draft_tree.hpp"

namespace draftproof {

class DraftMask {
 public:
  // `state` stands behind the committed tokens, and does so again when the object is gone.
  DraftMask(GrammarState& state, std::int64_t vocab_size);
  DraftMask(const DraftMask&) = delete;
  DraftMask& operator=(const DraftMask&) = delete;
  ~DraftMask();

  // [ceil(V/32)] words, until the next call. Empty: the grammar does not allow the path, or nothing behind it (the path
  // holds the end token). No token of an output comes from such a row.
  std::span<const std::uint32_t> allowed_after(std::span<const Token> path);
  bool allows(std::span<const Token> path) { return move_to(path); }
  // The token behind the path where the grammar allows one alone; kPaddingToken where it allows none or several.
  Token forced_after(std::span<const Token> path);
  // The bytes that every sentence goes on with behind the path.
  std::string forced_text_after(std::span<const Token> path);
  // Leaves out of a row behind the path what is not allowed, where something stays possible.
  void apply(std::span<const Token> path, std::span<float> logits);

 private:
  bool move_to(std::span<const Token> path);

  GrammarState& state_;
  std::vector<Token> at_;  // behind the committed tokens
  std::vector<std::uint32_t> mask_;
  std::int64_t vocab_size_;
};

// The masks of all rows of a step, [n + 1, ceil(V/32)] as VerifyRequest::allowed_masks: row 0 that behind the committed
// tokens, row i + 1 that behind node i. Rows that no output can come to allow every token. Each is a subset of
// `allowed` [ceil(V/32)], unless that is empty.
void fill_masks(DraftMask& mask, const DraftTree& tree, std::span<const std::uint32_t> allowed, std::int64_t vocab_size,
                std::vector<std::uint32_t>& masks);

// The nodes of a tree, ascending, whose paths the grammar allows.
std::vector<std::int32_t> allowed_nodes(DraftMask& mask, const DraftTree& tree);

}  // namespace draftproof
