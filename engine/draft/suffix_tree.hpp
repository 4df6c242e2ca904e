// How often which token followed which string of tokens: the suffixes of all documents in a tree of bounded depth, with
// counts. What suffix decoding drafts from (Oliaro et al. 2024, "SuffixDecoding", section 3).
//
// A node stands for a string that occurs, and counts its occurrences. Below a string that occurred once nothing is
// stored: its continuation stands in the text. A second occurrence makes the first one's next token a node. So there
// are about as many nodes as tokens in repeated strings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

class SuffixTree {
 public:
  // Strings of up to depth_max tokens are counted. Errors: usage unless depth_max is in [2, 1024].
  explicit SuffixTree(int depth_max);

  // Appends to the open document. Strings do not cross the border of documents. Time O(length of the longest end of the
  // document that occurred before, at most depth_max).
  void append(Token token);
  void end_document();

  // A string that occurs: a node, or a place inside the only occurrence of one.
  struct Place {
    std::int32_t node = 0;   // the empty string
    std::int64_t text = -1;  // where the next token stands, inside an only occurrence
  };
  std::optional<Place> find(std::span<const Token> string) const;
  // Place m - 1 is that of the open document's last m tokens, as find() finds it; of as many as occurred before.
  std::vector<Place> ends() const;

  struct Continuation {
    Token token;
    std::int64_t count;  // how often it followed
    std::int64_t total;  // how often anything followed
    Place place;         // the string with it
  };
  // The most frequent token after a place, of several the smallest id; nothing where nothing followed, or below
  // depth_max.
  std::optional<Continuation> most_frequent(const Place& place) const;
  // All of them, in no order that means anything.
  std::vector<Continuation> continuations(const Place& place) const;

  std::int64_t num_tokens() const { return static_cast<std::int64_t>(text_.size()) - borders_; }

 private:
  struct Node {
    Token token;
    std::int32_t depth;
    std::int32_t count = 1;
    std::int32_t continued = 0;  // the sum of the children's counts; of a string that occurred once, see text
    std::int32_t first_child = -1;
    std::int32_t next_sibling = -1;
    std::int32_t best_child = -1;
    std::int64_t text;  // behind the first occurrence
  };

  // (node, token) -> child, by open addressing: one line of memory a look, which is cold in every step.
  struct Slot {
    std::uint64_t key;
    std::int32_t child = -1;  // negative: free
  };

  std::size_t slot_of(std::uint64_t key) const;  // that of the key, or the free one for it
  std::int32_t child(std::int32_t node, Token token) const;
  std::int32_t add_child(std::int32_t node, Token token, std::int64_t text);
  void counted(std::int32_t node, std::int32_t child);
  std::optional<Continuation> in_text(std::int32_t node, std::int64_t text) const;
  const Node& at(std::int32_t node) const { return nodes_[static_cast<std::size_t>(node)]; }
  Node& at(std::int32_t node) { return nodes_[static_cast<std::size_t>(node)]; }

  std::int32_t depth_max_;
  std::vector<Token> text_;  // all documents; kPaddingToken is the border behind one
  std::int64_t borders_ = 0;
  std::vector<Node> nodes_;
  std::vector<Slot> children_;      // a power of two, at most half of them taken
  std::vector<std::int32_t> open_;  // the nodes of the ends of the open document, the longest first
};

}  // namespace draftproof
