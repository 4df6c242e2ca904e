// The verification of a draft tree, decision by decision: what the verifier asked its source of randomness
// (verify/recording_chance.hpp), with the nodes that it was about. Nothing is decided here a second time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/step/request.hpp"
#include "reference/verify/recording_chance.hpp"

namespace draftproof {

enum class NodeState : std::uint8_t { waiting, accepted, rejected };
std::string_view name_of(NodeState state);

struct WalkStep {
  enum class Kind : std::uint8_t {
    select,  // greedy multi-path: the path that is verified
    coin,    // one node: stands iff p >= q or u q < p
    shares,  // one coin for all siblings, by their shares of u
    draw,    // a token
    race,    // a token by the noise that draft and target share
  };
  Kind kind = Kind::coin;
  std::int32_t at = kRootNode;    // where the walk stands: the parent of what is judged, or where a token is drawn
  std::int32_t node = kRootNode;  // the node that was judged, or that what was drawn accepts; kRootNode: none
  double p = 0.0, q = 0.0;        // of a coin, as the verifier compared them
  double u = 0.0;                 // of coins, shares and draws
  bool accepted = false;          // a node was
  std::vector<double> shares;     // of the siblings in their order, then of all other tokens
  Token token = kPaddingToken;    // drawn; of shares none
  double probability = 0.0;       // of the token among those it was drawn from
  std::string text;               // the decision as a sentence
  std::vector<NodeState> states;  // [n] of the nodes, after it
};
std::string_view name_of(WalkStep::Kind kind);

struct WalkInputs {
  const DraftTree& tree;
  const VerifierChoice& verifier;
  std::span<const RecordedDecision> decisions;
  // Nodes of the selected chain of greedy multi-path verification, whose rows are that chain's. Empty for others.
  std::span<const std::int32_t> selected;
  std::span<const std::int32_t> path;  // that was emitted: its nodes from the root on
  std::uint32_t position = 0;          // of the context's next token, from which races count
  std::function<std::string(Token)> text_of;
};

std::vector<WalkStep> walk_of(const WalkInputs& inputs);

}  // namespace draftproof
