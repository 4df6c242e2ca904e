// Suffix decoding as the drafter (Oliaro et al. 2024, "SuffixDecoding"): the draft is what most often followed the
// context's last tokens, in this request and in the outputs of earlier ones, as far as it is likely enough. It has no
// probabilities that a verifier may use: its proposal is one-hot.
//
//   for every length m of an end of the context that occurred before, in either tree: the path of the most frequent
//   tokens; a node's probability is the product of the relative frequencies above it; the path ends where that falls
//   below least_probability, or after factor * m tokens; its score is the sum of its probabilities
//   the draft is the path of the largest score, of equal ones the longest match, this request before the others
//
// In the tree form, nodes are added in the order of their probabilities, until the plan's shape has no more.
//
// Drafts depend on other requests' output. That changes no text at temperature 0 or under a coupled verifier;
// otherwise the output's distribution stays and its tokens may differ.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "engine/draft/drafter.hpp"
#include "engine/draft/suffix_tree.hpp"

namespace draftproof {

struct SuffixParameters {
  int depth_max = 64;   // match and draft together
  int match_min = 1;    // tokens of the context that must have occurred
  double factor = 2.0;  // drafts per token of the match
  double least_probability = 0.1;
  bool across_requests = true;
  std::int64_t remembered_tokens = std::int64_t{1} << 20;  // of earlier requests; the oldest half goes when it is full
};

class SuffixDrafter final : public Drafter {
 public:
  // Errors: usage, for a parameter outside its range.
  explicit SuffixDrafter(const SuffixParameters& parameters = {});

  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override;
  void finish(const DraftContext& context) override;
  bool looks_up() const override { return true; }

 private:
  struct Request {
    explicit Request(int depth_max) : tree(depth_max) {}
    SuffixTree tree;
    std::vector<Token> tokens;
  };
  struct Match {
    const SuffixTree* tree = nullptr;
    SuffixTree::Place place;
    std::size_t length = 0;
    std::vector<Token> path;
    std::vector<NodeEvidence> evidence;  // of its tokens
    double score = 0.0;
  };

  SuffixTree& tree_of(const DraftContext& context);
  std::vector<SuffixTree::Place> found_ends(const SuffixTree& tree, std::span<const Token> context) const;
  void consider(const SuffixTree& tree, std::span<const SuffixTree::Place> ends, int draft_len_max, Match& best) const;
  void draft_tree_below(const Match& match, const DraftPlan& plan, Draft& out) const;
  void remember(std::span<const Token> output);

  SuffixParameters parameters_;
  std::map<std::uint64_t, Request> requests_;
  SuffixTree earlier_;
  std::vector<std::vector<Token>> outputs_;  // of earlier requests, as in earlier_
};

}  // namespace draftproof
