// Panel "Heads" and `draftproof acceptance head:PATH`: a drafting head on its target, over prompts of several kinds of
// work, one request at a time with chains of K drafts.
//
//   works        conditional acceptance by slot and kind of work, with intervals
//   drift        of a chain head's state from the true one, by slot (state_drift.hpp)
//   reliability  the head's confidence against acceptance (reliability.hpp), of all slots and by slot
//   prompts      every step's draft: candidates of each slot with their probabilities, accepted or not
//
// Guarantee: a snapshot is a function of the settings and the files. Drafts are those of `draftproof speculate --policy
// fixed` with the same prompts and seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/metrics/acceptance.hpp"
#include "studies/figures/table.hpp"
#include "studies/heads/head_recorder.hpp"
#include "studies/heads/reliability.hpp"
#include "studies/heads/state_drift.hpp"
#include "studies/job.hpp"

namespace draftproof {

inline constexpr double kHeadsLevel = 0.95;  // of the intervals of acceptance

// The head that the repository has for the shipped model; relative to the working directory where it lies below that.
std::string shipped_head_path();

struct HeadsSettings {
  std::string model = "smollm2";   // the head's target
  std::string head;                // PATH, head:PATH or head@BITS:PATH; empty: none is chosen
  std::string prompts;             // a JSONL file; empty: the project's forty
  std::int64_t per_work = 0;       // prompts of each kind of work; 0: all
  std::int64_t max_tokens = 64;    // of an output
  int num_speculative_tokens = 0;  // K; 0: as many as the head drafts at once or was trained for, 4 where that is open
  double temperature = 0.0;
  std::uint64_t seed = 0;  // of the first prompt of a kind of work; the i-th has seed + i
  int threads = 1;
  // The draft that is looked at, both from 1: a prompt, and a step of it that has a draft.
  std::int64_t shown_prompt = 1, shown_step = 1;

  bool operator==(const HeadsSettings&) const = default;
};

// Acceptance at a slot, given that it was reached.
struct SlotRate {
  std::int64_t reached = 0, accepted = 0;
  double rate = 0.0;  // 0 where it was not reached
  Interval interval;  // as wide as the spread between prompts asks for (acceptance/counted_rate.hpp)
};

struct HeadsWork {
  std::string name;  // of the kind of work; "all"
  std::int64_t prompts = 0;
  AcceptanceMetrics metrics;
  std::vector<SlotRate> slots;
};

struct HeadsPrompt {
  std::string work, where;
  std::string text;             // its beginning, fit for one line
  AcceptanceCounts acceptance;  // of all steps
  std::vector<HeadStep> steps;  // that had a draft
};

struct HeadsSnapshot {
  HeadsSettings settings;
  std::string note;  // why nothing was measured; empty where something was
  std::string model, arithmetic;
  std::string family;                // of the head
  bool drafts_in_parallel = false;   // then there is no drift
  bool has_confidence_head = false;  // else confidences are the largest probability of a row
  int num_speculative_tokens = 0;    // K, resolved
  std::int64_t prompts_asked = 0;    // more than prompts.size() while the measurement goes on
  std::vector<HeadsWork> works;      // all first
  std::vector<SlotDrift> drift;
  std::vector<Reliability> reliability;  // of all slots, then of slot 1, 2, ... that were reached
  std::vector<std::shared_ptr<const HeadsPrompt>> prompts;

  // The ones that the settings name; null where they are not (yet) there.
  const HeadsPrompt* shown_prompt() const;
  const HeadStep* shown_step() const;
};

// Publishes after every prompt. Errors (usage): a setting out of range, K beyond what the head drafts at once, a prompt
// or step to show that there is not; (input) what is wrong with model, head or prompts; a head for another target.
void compute(const HeadsSettings& settings, Job& job, const std::function<void(HeadsSnapshot)>& publish);
nlohmann::ordered_json to_json(const HeadsSnapshot& snapshot);
// A row a number: acceptance by work and slot, drift by slot, bins of the reliability diagram.
Table to_table(const HeadsSnapshot& snapshot);
std::string to_figure(const HeadsSnapshot& snapshot);
std::vector<std::string> command_arguments(const HeadsSettings& settings);

}  // namespace draftproof
