// A language model and one that drafts for it, after a prompt.
#pragma once

#include <memory>
#include <string>

#include "studies/lab/draft_pair.hpp"

namespace draftproof {

inline constexpr std::int32_t kTextPairNodesMax = 64;  // rows of a real vocabulary are large

struct TextPairSettings {
  std::string model;    // what --model takes
  std::string drafter;  // one with probabilities (drafter_choice.hpp)
  std::string prompt;
  float temperature = 1.0f;  // of both; at 0 the draft has 1, since a greedy row has no second child
  bool operator==(const TextPairSettings&) const = default;
};

// The pair stays open with the rows that it has computed until another one is asked for, and is lent to one computation
// at a time. Errors (usage, input): an unknown model or drafter, a drafter without probabilities, an empty prompt, a
// prompt longer than the models take.
std::shared_ptr<DraftPair> borrow_text_pair(const TextPairSettings& settings);

}  // namespace draftproof
