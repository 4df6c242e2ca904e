// How many tokens each request may draft in the next step. One object for the engine and the simulator; it knows of a
// request what it was told by observe(), and of time what the cost model says.
//
// Goodput-optimal (the idea of SmartSpec, Liu et al. 2024, "Optimizing Speculative Decoding for Serving Large Language
// Models Using Goodput"): with rate a of a request's drafts, K drafts yield 1 + a + ... + a^K tokens. Requests are
// sorted into classes of equal rate; the K of the classes are those that make
//
//   sum of expected tokens / (target_ns of all rows + overhead_ns of the batch + draft_ns of the longest K)
//
// largest. For each longest K the best set of n drafts is that of the n largest a^j, so trying all n is exact, but that
// a class has one K.
//
// Automatic: drafts that were looked up are kept as rule likely keeps them, of others as many as goodput finds best,
// both by what steps take here (own_step_cost.hpp). What it loses is bounded by an account, by measured times:
//
//   gain of a step  what plain decoding takes for the tokens that came, less what the step took
//   account         begins, once plain steps were timed, with the time of two and a half tokens; rises with every step
//                   by 0.25 % of its time and by its gain; is at most 16 plain steps
//   drafts          only where the account is not below 0
//   looks           only where the account pays for what they are expected to lose
//
// So the loss is at most 0.25 % of the time, what the account begins with, and what one step takes beyond a plain one;
// from any later point on the same with 16 plain steps. A look shows what could be better than it seems, by what is
// known of acceptance and times and how surely: a draft of one request (acceptance), one more for every request (time),
// and a plain step where requests draft, for 0.25 % of the time as well. A head first reads the tokens that came since
// its last draft of a request: a request begins to draft where the gain expected until its end and half the account pay
// for that each. A batch that has a request whose tokens depend on its drafts is drafted whole, by the costs expected.
//
// Confidence-scheduled (DSpark, arXiv:2607.05147, section 3.2): a drafter says of draft j of a request the probability
// c_j that it is accepted where those before it are, from what is known before it is drawn. Of the drafts those are
// verified whose survival c_1 ... c_j is at least the threshold, or, with a budget of rows, is among the largest of the
// batch. A survival never rises along a draft, so what is kept is its beginning, and whether draft j is kept depends on
// c_1 .. c_j and other requests alone: nothing that token j or a later one says. So verifiers stay exact, as they do
// not where the budget itself is chosen by all confidences of the same step (the paper's appendix A has a
// counterexample).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/scheduler/own_step_cost.hpp"
#include "engine/scheduler/speculation_choice.hpp"
#include "engine/scheduler/step_cost.hpp"
#include "engine/scheduler/step_plan.hpp"
#include "reference/step/draft_plan.hpp"

namespace draftproof {

// State that a policy keeps for a request.
struct SpeculationState {
  float accepted = 0.0f;        // goodput: of drafts that were judged, fading; cumulative, target_efficiency: of all
  float judged = 0.0f;          // cumulative: drafted
  float average = -1.0f;        // threshold: of accepted / drafted; negative before the first draft
  std::int32_t num_drafts = 0;  // threshold, cumulative, target_efficiency: the current K
  std::int32_t idle_steps = 0;  // goodput: since the last draft
  std::int32_t rate_class = 0;  // goodput
  // automatic
  bool shapes_tokens = false;  // its tokens depend on its drafts, which must not depend on times then
  bool looks_up = false;       // its drafts come with evidence
  std::int32_t longest = 0;    // nodes that it may draft
  std::int32_t tokens = 0;     // prompt and output so far
  std::int32_t room = 0;       // tokens that may come
  std::int32_t read = 0;       // of `tokens`, when it drafted last
  bool probes = false;         // it drafts one in the next step, to be judged
  bool waits = false;          // it would have too much to read
};

// A request's draft before verification, as the confidence rule sees it.
struct ConfidentDraft {
  std::span<const float> confidences;  // [drafted] in [0, 1]
  std::int32_t num_streams = 1;        // rows that one token costs
  std::int32_t kept = 0;               // the first ones, to be verified; set by keep_confident()
};

// Errors (internal): not one for each of `drafted` tokens, or one outside [0, 1].
void require_confidences(std::span<const float> confidences, std::size_t drafted);

class SpeculationPolicy {
 public:
  SpeculationPolicy() : SpeculationPolicy(SpeculationChoice{}) {}
  // Errors (usage): goodput or likely without a cost model, an empty schedule.
  explicit SpeculationPolicy(SpeculationChoice choice, std::shared_ptr<const StepCost> cost = nullptr);

  const SpeculationChoice& choice() const { return choice_; }
  const std::shared_ptr<const StepCost>& cost() const { return cost_; }

  SpeculationState first_state() const;

  // Once before every step: begin_step(), count() of every request that decodes, decide(). Rules that do not look at
  // the batch need none of it.
  bool looks_at_batch() const {
    return choice_.rule == SpeculationRule::schedule || choice_.rule == SpeculationRule::goodput ||
           choice_.rule == SpeculationRule::tree || choice_.rule == SpeculationRule::automatic;
  }
  void begin_step();
  // num_streams: rows that one token of the request costs.
  void count(SpeculationState& state, std::int32_t num_streams);
  // other_tokens: rows of the step that are not of the counted requests.
  void decide(std::int64_t other_tokens);

  // At most this many nodes in the next step.
  std::int32_t num_drafts(const SpeculationState& state) const {
    switch (choice_.rule) {
      case SpeculationRule::off:
        return 0;
      case SpeculationRule::fixed:
        return choice_.num_drafts;
      case SpeculationRule::threshold:
      case SpeculationRule::cumulative:
      case SpeculationRule::target_efficiency:
        return state.num_drafts;
      case SpeculationRule::schedule:
      case SpeculationRule::tree:
        return for_all_;
      case SpeculationRule::confidence:
        return choice_.most;  // the backend keeps some
      case SpeculationRule::automatic:
        if (!by_times_) return kDraftNodesMax;
        if (state.probes) return 1;
        if (stops_ || state.waits) return 0;
        if (state.looks_up) return kDraftNodesMax;
        break;
      case SpeculationRule::likely:
        return kDraftNodesMax;  // the drafter's all, of which the backend keeps some
      case SpeculationRule::goodput:
        break;
    }
    const std::int32_t limit = limits_[static_cast<std::size_t>(state.rate_class)];
    const bool tries = choice_.rule == SpeculationRule::goodput && state.idle_steps >= choice_.probe;
    return limit == 0 && tries ? 1 : limit;
  }

  // Rule confidence: which of the drafts of a step are verified.
  void keep_confident(std::span<ConfidentDraft> drafts) const;

  // Are drafts that were looked up cut to those that are worth their rows?
  bool keeps_likely() const {
    return choice_.rule == SpeculationRule::likely || choice_.rule == SpeculationRule::automatic;
  }

  // Takes note of a step as a whole, and its time.
  void observe_step(const StepPlan& plan, const StepOutcome& outcome) {
    if (own_ && by_times_)
      time(plan, outcome);
    else
      read_tokens_ = 0.0;
  }
  // Takes note of a step: nodes drafted, accepted along the path, and whether one below it was rejected.
  void observe(SpeculationState& state, std::int32_t drafted, std::int32_t accepted, bool rejected) {
    if (choice_.rule == SpeculationRule::threshold || choice_.rule == SpeculationRule::cumulative) {
      observe_share(state, drafted, accepted);
    } else if (choice_.rule == SpeculationRule::target_efficiency) {
      observe_efficiency(state, accepted, rejected);
    } else if (choice_.rule == SpeculationRule::goodput || (own_ && !state.looks_up)) {
      observe_rate(state, drafted, accepted, rejected);
    }
  }

  // The rate of a request's drafts as the goodput rule takes it, in (0, 1).
  double rate(const SpeculationState& state) const;

 private:
  static constexpr std::int32_t kClasses = 32;
  // The middle of a class.
  static double rate_of_class(std::int32_t c) { return (c + 0.5) / kClasses; }
  // The best goodput with at most `longest` drafts a request, and how many of present_ it takes.
  struct Best {
    double tokens, ns;
    std::size_t taken;
    // Compares goodput; a product is faster than two quotients.
    bool is_above(const Best& other) const { return tokens * other.ns > other.tokens * ns; }
  };
  void observe_share(SpeculationState& state, std::int32_t drafted, std::int32_t accepted) const;
  void observe_efficiency(SpeculationState& state, std::int32_t accepted, bool rejected) const;
  void observe_rate(SpeculationState& state, std::int32_t drafted, std::int32_t accepted, bool rejected);
  Best best_of(std::int32_t longest);
  double target_ns(std::int64_t more_rows);
  // Sets limits_, with at most `most` drafts a request.
  Best choose_limits(std::int64_t other_tokens, std::int32_t most);
  void choose_by_times(std::int64_t other_tokens);
  Best choose_timed_limits(std::int64_t other_tokens);
  void look(std::int64_t other_tokens, std::int32_t longest);
  double reading_ns(const SpeculationState& state) const;
  double likely_rate_most() const;
  void time(const StepPlan& plan, const StepOutcome& outcome);

  // One more draft for every request of a class.
  struct Candidate {
    double probability;  // a^depth, that it is accepted
    std::int32_t rate_class;
    std::int32_t depth;
  };
  // The same for the requests of this step.
  struct Present {
    double tokens;      // expected
    std::int64_t rows;  // that they cost
    std::int32_t rate_class;
    std::int32_t depth;
  };

  SpeculationChoice choice_;
  std::shared_ptr<const StepCost> cost_;
  std::vector<Candidate> candidates_;              // goodput: by falling probability
  std::vector<Present> present_;                   // of classes that have requests in this step
  std::int64_t rows_ = 0;                          // goodput: of this step without drafts
  std::vector<double> target_ns_;                  // by rows more than that; negative: not asked for yet
  std::int64_t batch_of_ns_ = -1;                  // of what target_ns_ holds
  std::array<std::int64_t, kClasses> requests_{};  // of a class, in this step
  std::array<std::int64_t, kClasses> streams_{};
  std::array<std::int32_t, kClasses> limits_{};
  double accepted_ = 0.0;  // goodput: over the batch, fading
  double judged_ = 0.0;
  std::int64_t batch_ = 0;
  std::int32_t for_all_ = 0;  // schedule, tree: every request's number
  // automatic; copies of a policy share what was timed
  std::shared_ptr<OwnStepCost> own_;
  bool by_times_ = true;                  // no request of this step has shapes_tokens
  std::int32_t longest_ = 0;              // of the requests of this step
  std::int64_t plain_streams_ = 0;        // of requests that draft nothing, or what was looked up
  std::vector<SpeculationState*> heads_;  // the other requests
  bool looks_up_ = false;                 // some request does
  bool stops_ = true;                     // no request drafts
  bool opened_ = false;                   // the account
  double account_ns_ = 0.0;
  double plain_looks_ns_ = 0.0;       // that plain steps between steps that draft may lose now
  double gain_ns_ = 0.0;              // of a step that drafts; fading
  std::int64_t drafted_steps_ = 0;    // since one that did not
  std::int64_t undrafted_steps_ = 0;  // since one that drafted
  double read_tokens_ = 0.0;          // by drafts of this step, that came since the drafts before
  double read_token_ns_ = -1.0;       // negative: none was timed
};

}  // namespace draftproof
