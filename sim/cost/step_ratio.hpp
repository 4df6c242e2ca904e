// Plain and speculative steps of one batch on a cost model, and their ratio: what published speedups are compared with.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/scheduler/step_cost.hpp"
#include "sim/cost/drafter.hpp"
#include "sim/cost/drafting_ahead.hpp"

namespace draftproof {

// The form of a draft: a chain of K is {K, K}.
struct DraftSize {
  std::int32_t nodes = 0;  // drafted tokens of a request
  std::int32_t depth = 0;
  bool branches = false;  // also said of a tree that has as many nodes as levels
  bool is_tree() const { return branches || nodes > depth; }
  bool operator==(const DraftSize&) const = default;
};

struct BatchLoad {
  std::int64_t batch = 1;
  std::int64_t context = 1024;  // tokens in the cache of a request
  bool guidance = false;        // a companion stream for each request, of the target only
};

PassLoad plain_pass(const BatchLoad& batch);
// Where the drafter has a draft in a share of the steps only (n-grams), so many of a batch's requests have one.
PassLoad verify_pass(const BatchLoad& batch, const DraftSize& form, double draft_share = 1.0);
DraftLoad drafting(const BatchLoad& batch, const DraftSize& form, DraftingKind kind);

double plain_step_ns(const StepCost& model, const BatchLoad& batch);
double speculative_step_ns(const StepCost& model, const BatchLoad& batch, const DraftSize& form, DraftingKind kind,
                           double draft_share = 1.0);
// The same of a drafter that drafts ahead, each request's drafts ready with this probability: all wait for a backup
// where any misses, and for the drafts ahead where any is ready.
double ahead_step_ns(const StepCost& model, const BatchLoad& batch, const DraftSize& form, DraftingKind kind,
                     const DraftingAhead& ahead, double ready);
// speculative / plain; acceptance length / step ratio is the speedup.
double step_ratio(const StepCost& model, const BatchLoad& batch, const DraftSize& form, DraftingKind kind,
                  double draft_share = 1.0);

// Requests of a closed loop, tokens: as soon as one ends the next is prefilled, alone. Its throughput, and a ratio of
// throughputs, contain the prefills, which speculation does not make faster.
struct LoopLengths {
  std::int64_t prompt = 0;  // 0: decoding alone
  std::int64_t output = 0;
};
// The time of a prompt alone.
double prefill_ns(const StepCost& model, std::int64_t prompt_tokens);
// Share of the time of plain decoding in such a loop that is prefill.
double prefill_share(const StepCost& model, const BatchLoad& batch, const LoopLengths& lengths);
// The ratio of throughputs where decoding alone is so many times as fast (Amdahl's law).
inline double with_prefill(double speedup, double share) {
  return 1.0 / ((1.0 - share) / speedup + share);
}

// A predicted speedup whose logarithm is normal, with half the width of its 80 % band there.
//
// A draft is better than plain decoding where it takes less GPU time for a token in the mean over the band: one whose
// middle is just above 1 loses more, where it loses, than it gains where it gains. A loss is called possible where the
// band holds one, which is where its probability is above 0.1.
struct SpeedupBand {
  double middle = 1.0;
  double half_width = 0.0;

  double low() const { return middle * std::exp(-half_width); }
  double high() const { return middle * std::exp(half_width); }
  double spread() const;            // standard deviation of the logarithm
  double loss_probability() const;  // of a speedup below 1
  double expected_time() const;     // of a token, over plain decoding's: E[1 / speedup]
  bool pays() const { return expected_time() < 1.0; }
  bool may_lose() const { return low() < 1.0; }
};

}  // namespace draftproof
