// Drift of a chain head's state. Slot i >= 2 of a draft is made from the state that the head itself put out for the
// token before it, where training and the first slot have the target's features. Compared, where the slots before it
// were accepted, so that the tokens are the same:
//
//   target   with the state that the target's features of that token make
//   own      with what the head puts out there when all states before it are the target's: at slot 2 the same state,
//            bit for bit, unless a runner's state, position or KV is wrong; from slot 3 on the drift of drafting
//
// EAGLE-1 and MTP are trained to come near the target's state. EAGLE-3 is not (2503.01840, section 3): there the
// distance to it is that of two spaces, and `own` is the one that says how far drafting has gone astray.
#pragma once

#include <span>
#include <vector>

#include "engine/heads/lab/slow_head.hpp"
#include "studies/heads/head_recorder.hpp"

namespace draftproof {

struct StateDistance {
  double cosine = 0.0;       // of a . b; 0 where one is zero
  double relative_l2 = 0.0;  // |a - b| / |b|; of b = 0: |a|
};
// a, b [n]. In doubles.
StateDistance state_distance(std::span<const float> a, std::span<const float> b);

struct DriftSample {
  std::int32_t slot = 2;
  bool accepted = false;  // the draft made from it
  StateDistance target, own;
};

// The samples of a text's steps. stream: the tokens as the target reads them, up to the last step's. Nothing for heads
// that draft in parallel.
std::vector<DriftSample> drift_of(SlowHead& head, std::span<const HeadStep> steps, std::span<const Token> stream);

struct DriftSummary {
  double mean = 0.0, p10 = 0.0, p90 = 0.0;  // quantiles: the sample at or below which 10 and 90 % lie
};
struct SlotDrift {
  std::int32_t slot = 2;
  std::int64_t count = 0;
  DriftSummary target_cosine, target_relative_l2, own_cosine, own_relative_l2;
  // Means of the target's cosine where the draft was accepted, and where not; nothing without such drafts.
  std::optional<double> target_cosine_accepted, target_cosine_rejected;
};
// Drift by slot, ascending.
std::vector<SlotDrift> summarise_drift(std::span<const DriftSample> samples);

}  // namespace draftproof
