// A drafter: context and plan -> a draft tree with its proposal, for many requests in turn.
//
// It sees no source of randomness. Where it samples, it asks the engine to draw from a row's distribution, and the
// engine addresses the draw (Purpose::draft_sample, step = verification step), so that no drafter can share a random
// word with the verifier, except in the races that coupled verification is made of.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/token.hpp"
#include "engine/grammar/draft_mask.hpp"
#include "engine/model/language_model.hpp"
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
  std::uint64_t request = 0;           // the same in every step of a request
  RowParameters parameters = {};       // the request's
  std::span<const Token> stream = {};  // the tokens as the target reads them: behind its start token where it has one
  StreamContext kv = {};               // where the KV of the stream lies; the blocks hold its newest token, and more
  std::span<const Token> companion_stream = {};  // under guidance: the companion's
  StreamContext companion_kv = {};
  DraftMask* grammar = nullptr;  // what the request's grammar allows; null: it has none
  bool follows_grammar = false;  // the draft is to hold nothing else

  std::span<const Token> output() const { return tokens.subspan(prompt_len); }
};

// One request's draft in a step.
struct DraftJob {
  DraftContext context;
  DraftPlan plan;
  DraftChance* chance = nullptr;
  Draft* out = nullptr;
  bool wants_confidences = false;        // of chains
  std::exception_ptr failure = nullptr;  // an Error of this request alone
};

// The features that a pass of the target computed for a stream, whether its request speculates or not, at consecutive
// positions, accepted drafts included. Whatever a preemption makes the target compute again comes again; tokens that
// the prefix cache spared do not come.
struct ComputedTokens {
  std::uint64_t request = 0;
  std::int32_t stream_index = 0;   // 1: the companion's
  std::span<const Token> stream;   // at least up to the last of them
  std::int64_t first = 0;          // position
  std::vector<std::int32_t> rows;  // [count] of `features`
  StreamContext kv;
  bool samples = false;  // the newest token follows the last of them
};

// A drafter's own storage beside the engine's KV, block by block: copied, shared and released with the blocks.
class DraftCache {
 public:
  virtual ~DraftCache() = default;
  virtual void copy_block(std::int32_t from, std::int32_t to) = 0;
  // The request has ended.
  virtual void forget(std::uint64_t request) = 0;
  // Since the last call: the time in which drafts made up for steps that did not draft.
  virtual std::int64_t take_late_ns() { return 0; }
};

// Tokens that a draft model of another vocabulary and the target have both, and how many each has.
struct SharedTokens {
  std::int64_t shared = 0;
  std::int64_t of_draft = 0;
  std::int64_t of_target = 0;
};

// Holds the buffers of one thread, and what it remembers of the requests that are under way.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Fills `out` with tokens that may follow the context.
  virtual void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) = 0;
  // Does every draft come with evidence (Draft::evidence)?
  virtual bool looks_up() const { return false; }
  // Does it say of every node of a chain how likely it is accepted (Draft::confidences)?
  virtual bool has_confidences() const { return false; }
  // The request has ended with this context.
  virtual void finish(const DraftContext&) {}
  // Of a draft model with another vocabulary; else nothing.
  virtual std::optional<SharedTokens> shared_tokens() const { return {}; }

  // The following are for heads, which read the target's features.

  // The layers of the target whose features the drafter reads (ForwardBatch::hidden_layers).
  virtual std::span<const std::int32_t> hidden_layers() const { return {}; }
  // For an engine whose KV has this many blocks; null: it keeps nothing there.
  virtual std::unique_ptr<DraftCache> make_cache(std::int32_t /*num_blocks*/) const { return nullptr; }
  // features [n, hidden_layers, width] of a pass.
  virtual void observe(std::span<const ComputedTokens>, std::span<const float> /*features*/, DraftCache*) {}
  // The drafts of a step's requests together.
  virtual void propose_all(std::span<DraftJob> jobs, DraftCache*) {
    for (DraftJob& job : jobs) {
      try {
        propose(job.context, job.plan, *job.chance, *job.out);
      } catch (const Error&) {
        job.failure = std::current_exception();
      }
    }
  }
};

}  // namespace draftproof
