// A head's draft as it grows: what its rows (head_rows.cpp) and its levels (head_drafter.cpp) share.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "engine/draft/tree_builders/dynamic_trees.hpp"
#include "engine/heads/head_drafter.hpp"
#include "reference/logits/guidance.hpp"

namespace draftproof {

// A stream that is drafted behind: the request's tokens, or, of a guided draft, the companion's.
struct HeadDrafter::Side : HeadStream {
  std::vector<std::vector<float>> marginals = {};  // of heads that draft in parallel, by depth
};

// A draft as it grows, level by level. Its nodes are those of the draft, or of paths that are not merged yet, or
// candidates that are not chosen yet.
struct HeadDrafter::Growth {
  static constexpr std::int32_t kTreeTopK = 10;  // EAGLE-2's, of a node and of a level
  static constexpr std::size_t kSides = 2;       // at most: the request's tokens and the companion's
  enum class Kind : std::uint8_t {
    most_probable,  // a chain of argmaxes
    chain,          // drawn
    tree,           // drawn
    paths,          // drawn by themselves, merged at the end
    dynamic,        // EAGLE-2's tree
  };
  struct Node {
    Token token;
    std::int32_t parent;                                 // kRootNode: the context
    std::int32_t depth;                                  // from 1
    std::array<std::int64_t, kSides> slots = {};         // of its entry, by side
    std::array<std::vector<float>, kSides> states = {};  // by side
    std::vector<float> row = {};                         // of logits after it, guided where the draft is
    float confidence = 0.0f;
  };

  DraftJob* job;
  Kind kind;
  std::vector<Side> sides = {};  // one, or two where it is guided
  RowParameters parameters = {};
  Node root = {};
  std::vector<Node> nodes = {};
  std::vector<std::int32_t> frontier = {};            // whose rows come next
  std::int32_t length_max = 0;                        // levels
  std::vector<std::vector<float>> block_states = {};  // of a block's places, behind the request's tokens
  CandidatePool pool = CandidatePool("a head's tree");
  std::int32_t level_first = 0;                       // of the pool's last level
  std::vector<std::vector<std::int32_t>> below = {};  // of the shape: children of node i at i + 1
  std::vector<std::int32_t> in_shape = {};            // node of the shape of each node

  const Node& at(std::int32_t node) const { return node == kRootNode ? root : nodes[static_cast<std::size_t>(node)]; }
  Node& at(std::int32_t node) { return node == kRootNode ? root : nodes[static_cast<std::size_t>(node)]; }
  // Takes the row of a side behind those before: the first is the row, the second guides it.
  void take_row(std::size_t side, std::span<const float> of_side, std::vector<float>& row) {
    if (side == 0) {
      row.assign(of_side.begin(), of_side.end());
      return;
    }
    try {
      const RowParameters& of_target = job->context.parameters;
      combine_guidance(row, of_side, of_target.guidance_scale, {}, row, of_target.guidance_form);
    } catch (const Error&) {
      job->failure = std::current_exception();
    }
  }
  std::int32_t add(Token token, std::int32_t parent) {
    nodes.push_back({token, parent, at(parent).depth + 1});
    return static_cast<std::int32_t>(nodes.size()) - 1;
  }
  std::vector<std::int32_t> ancestors(std::int32_t node) const {  // the node itself last
    std::vector<std::int32_t> reversed;
    for (; node != kRootNode; node = at(node).parent) reversed.push_back(node);
    return {reversed.rbegin(), reversed.rend()};
  }
  std::vector<Token> path(std::int32_t node) const {
    std::vector<Token> tokens;
    for (const std::int32_t i : ancestors(node)) tokens.push_back(at(i).token);
    return tokens;
  }
  std::int32_t nodes_max() const {  // with entries of their own
    if (kind == Kind::dynamic) return kTreeTopK * length_max;
    return job->plan.num_paths * job->plan.shape.size();
  }
};

}  // namespace draftproof
