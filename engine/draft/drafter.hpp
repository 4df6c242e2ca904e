// A drafter: context and plan -> a draft tree with its proposal, for many requests in turn.
//
// It sees no source of randomness. Where it samples, it asks the engine to draw from a row's distribution, and the
// engine addresses the draw (Purpose::draft_sample, step = verification step), so that no drafter can share a random
// word with the verifier, except in the races that coupled verification is made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token.hpp"
#include "reference/logits/parameters.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/step/draft_plan.hpp"
#include "reference/step/request.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/draft_tree.hpp"

namespace draftproof {

// Draws for a drafter. Every `row` is used once in a step.
class DraftChance {
 public:
  virtual ~DraftChance() = default;
  virtual Token draw(const Distribution& distribution, std::uint32_t row) = 0;
  virtual Token draw(const DenseMasses<double>& masses, std::uint32_t row) = 0;
  // The race over the noise of the position `level` after the context's next token.
  virtual Token coupled_race(const Distribution& distribution, std::uint32_t level, std::uint32_t list) = 0;
};

// Evidence for a node of a draft that was looked up: the match_len tokens before it, nodes of the draft included, stood
// at an earlier place too, and this token followed them in the share `frequency` of their occurrences.
struct NodeEvidence {
  std::int32_t match_len = 0;
  float frequency = 1.0f;
};

struct Draft {
  DraftTree tree;  // n nodes of the plan's shape or fewer; empty: no proposal
  ProposalKind proposal_kind = ProposalKind::one_hot;
  std::vector<float> logits;  // for ProposalKind::logits: [n, V] of a chain, else [n + 1, V] (VerifyRequest::proposal)
  RowParameters draft_parameters;      // what the logits go through
  std::vector<NodeEvidence> evidence;  // of each node, where the draft was looked up; else empty
  // [n] of a drafter that has_confidences(): in [0, 1], the probability that the node is accepted where those before it
  // are, from nothing but what was known before its token was drawn (the tokens before it, no later one). Else empty.
  std::vector<float> confidences;
};

// Everything that a drafter knows of a request.
struct DraftContext {
  std::span<const Token> tokens;  // prompt, then output
  std::size_t prompt_len = 0;
  std::uint64_t request = 0;  // the same in every step of a request
  // [k, hidden_layers, width]: the target's hidden features of tokens[hidden_end - k, hidden_end). Those computed since
  // the drafter was last asked, each token's once, whatever a preemption makes the target compute again; tokens that
  // the prefix cache spared have none. Empty where the drafter asks for none.
  std::span<const float> hidden = {};
  RowParameters parameters = {};  // the request's
  // All tokens before the newest, but in a step that computes a chunk before it too: the drafter is asked before that.
  std::size_t hidden_end = 0;

  std::span<const Token> output() const { return tokens.subspan(prompt_len); }
};

// Holds the buffers of one thread, and what it remembers of the requests that are under way.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Fills `out` with tokens that may follow the context.
  virtual void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) = 0;
  // Does it say of every node of a chain how likely it is accepted (Draft::confidences)?
  virtual bool has_confidences() const { return false; }
  // The request has ended with this context.
  virtual void finish(const DraftContext&) {}
  // The layers of the target whose features the drafter wants to see (ForwardBatch::hidden_layers).
  virtual std::span<const std::int32_t> hidden_layers() const { return {}; }
};

}  // namespace draftproof
