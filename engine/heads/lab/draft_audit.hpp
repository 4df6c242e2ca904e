// Are the drafts that an engine recorded those of the head that it says it ran? Each is compared with the row of a slow
// head (slow_head.hpp) after the recorded tokens and the recorded drafts before it: by margins, since another engine's
// arithmetic rounds otherwise.
//
//   m children of a node   are the row's m most probable tokens; the margin is how far a logit is below the m-th
//                          largest
//   recorded probability   differs from softmax(logits / T) by a factor; its logarithm is compared
//   margin 0: exact; up to the tolerance (logarithms: twice that): a near tie; else different
//
// Where drafts are different the comparison is made once more with each fault planted that runners of heads had
// (head_faults.hpp): which of them would draft what was recorded?
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/heads/lab/recorded_run.hpp"
#include "engine/transformer/transformer_model.hpp"

namespace draftproof {

struct DraftAuditOptions {
  double tolerance = 0.5;                 // of margins; twice as much of logarithms of probabilities
  std::int64_t drafts_min = 50;           // fewer without a difference say nothing
  std::int64_t replay_tokens_max = 4096;  // of the requests that faults are planted in, the first of them in any case
  std::function<void(std::size_t)> on_request;  // that many requests are compared
};

enum class DraftVerdict : std::uint8_t { consistent, different, inconclusive };

std::string_view name_of(DraftVerdict verdict);

struct DraftAgreement {
  std::int64_t exact = 0, near_ties = 0, different = 0;
  std::int64_t drafts() const { return exact + near_ties + different; }
};

struct DraftDifference {
  std::string where;  // file and line
  std::size_t step = 0;
  std::int64_t position = 0;  // of the draft in the text
  std::int32_t depth = 0;     // from 1
  Token drafted = 0;
  std::optional<Token> expected;              // nothing: the head drafts no further, or the token is right
  std::optional<double> margin;               // nothing: no logit; the head does not draft the token
  std::optional<double> log_prob_difference;  // recorded - the head's; nothing: not recorded

  std::string text() const;
};

// Something about a request that cannot be.
struct AccountingFault {
  std::string where;
  std::size_t step = 0;
  std::string text;  // with both
};

// Do positions advance by accepted + 1, are accepted drafts the output's tokens and rejected ones not, does nothing lie
// beyond the end? The first failure of a request.
std::optional<AccountingFault> accounting_fault(const DraftedRequest& request);

// A fault as an explanation of a run.
struct FaultLook {
  int number = 0;
  std::string name;
  std::string not_tried;        // why; empty where it was tried
  std::int64_t explained = 0;   // drafts that are not the head's, and are those of the faulty runner
  std::int64_t introduced = 0;  // drafts that are the head's, and not those of the faulty runner
  std::int64_t different = 0;   // drafts that are not the faulty runner's
  double distance = 0.0;        // sum over drafts of margins and differences of logarithms, each at most 10
};

struct DraftAudit {
  DraftVerdict verdict = DraftVerdict::inconclusive;
  std::string sentence;
  double tolerance = 0.0;
  std::int64_t requests = 0, steps = 0;  // steps with drafts
  DraftAgreement all;
  std::vector<DraftAgreement> by_depth;     // depth 1 first
  std::int64_t bin_len = 0;                 // tokens
  std::vector<DraftAgreement> by_position;  // of the text, in bins
  std::optional<DraftDifference> first;
  std::vector<AccountingFault> accounting;  // the first of each request
  double largest_margin = 0.0;              // finite ones
  std::int64_t probabilities = 0;           // recorded
  double largest_prob_difference = 0.0;     // of probabilities
  double largest_log_prob_difference = 0.0;
  // Acceptance length (accepted + 1, over steps with drafts) of the run, and of what the head would have drafted in the
  // same shapes; nothing for drawn drafts.
  std::optional<double> recorded_length, head_length;
  // Where drafts are different: the faults by what they leave different, then those that were not tried.
  std::int64_t replayed_requests = 0, replayed_drafts = 0, replayed_different = 0;
  std::vector<FaultLook> faults;

  // Faults that leave at most a tenth of the different drafts different; the best first.
  std::vector<const FaultLook*> explanations() const;
};

// Errors (input) name the line: more tokens than the target reads; a row of the head that is not finite.
DraftAudit audit_drafts(std::span<const DraftedRequest> requests, const std::shared_ptr<const HeadWeights>& head,
                        TransformerModel& target, const DraftAuditOptions& options = {});

}  // namespace draftproof
