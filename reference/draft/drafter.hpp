// A drafter: context and budget -> draft tokens with their proposal distribution.
//
// It sees no source of randomness. Where it samples, it asks the engine to draw from a row's distribution, and the
// engine addresses the draw (Purpose::draft_sample, row = draft position, step = verification step), so that no drafter
// can share a random word with the verifier.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/logits/parameters.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/step/request.hpp"
#include "reference/token.hpp"
#include "reference/verify/draft_tree.hpp"

namespace draftproof {

// Draws the token of draft position `row` from its distribution.
using DraftDraw = std::function<Token(const Distribution& distribution, std::uint32_t row)>;

struct Draft {
  DraftTree tree;  // K' nodes, K' <= the budget; empty: no proposal
  ProposalKind proposal_kind = ProposalKind::one_hot;
  std::vector<float> logits;       // [K', V] for ProposalKind::logits
  RowParameters draft_parameters;  // what the logits go through
};

// Holds the buffers of one thread.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Fills `out` with at most draft_len_max tokens that may follow `context`.
  virtual void propose(std::span<const Token> context, int draft_len_max, const DraftDraw& draw, Draft& out) = 0;
};

}  // namespace draftproof
