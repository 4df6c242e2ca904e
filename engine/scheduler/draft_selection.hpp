// Which nodes of the drafts of a step are worth their rows. Drafts that were looked up come with evidence, how long the
// match was and how often the token followed; from it, and from what became of earlier drafts, a node's likelihood to
// be accepted is known before it is verified. The nodes of all requests of the step compete:
//
//   likelihood of a node   product over its path of share(match length) x frequency
//   share(length)          of tokens with such a match that came, to what their frequencies promised; a prior at first
//   kept                   the n likeliest nodes, with n that makes largest
//                          (requests + sum of the likelihoods) / target_ns(rows + rows of the nodes)
//
// Rows of prompts in the same step are other work: of its time what a step of the requests alone would take counts, and
// what the nodes add. Else a long step would seem to make drafts cheap.
//
// A parent is at least as likely as its children, so what is kept is a tree. Where nothing is likely nothing is
// drafted, and the step is one of plain decoding. Drafts are chosen by the context alone and before any row is
// computed, so verifiers stay exact.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/draft/drafter.hpp"
#include "engine/scheduler/step_cost.hpp"

namespace draftproof {

struct LookedUpDraft {
  DraftTree tree;
  std::vector<NodeEvidence> evidence;  // of each node; empty: it was not looked up
};

class DraftSelection {
 public:
  explicit DraftSelection(std::shared_ptr<const StepCost> cost);

  struct Offer {
    Draft* draft;              // may be empty: the request emits a token all the same
    std::int32_t num_streams;  // rows that a node costs
  };
  // Leaves of each draft the nodes that are worth their rows; of drafts without evidence all. rows: of the step without
  // drafts, prompts included.
  void choose(std::span<const Offer> offers, std::int64_t rows) const;

  // The tokens that came where `offered` had been proposed. Nodes that were not kept are judged too, as far as the
  // tokens reach.
  void observe(const LookedUpDraft& offered, std::span<const Token> emitted);

  // That the token with this evidence is accepted where its parent is; in (0, 1).
  double likelihood(const NodeEvidence& evidence) const;

 private:
  struct Counts {
    double came;
    double promised;
  };
  std::shared_ptr<const StepCost> cost_;
  std::array<Counts, 8> counts_;  // by class of match length
};

}  // namespace draftproof
