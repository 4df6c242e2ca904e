#include "sim/predict/published_replay.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/replay.hpp"

namespace draftproof {
namespace {

constexpr std::int32_t kOracleDrafts = kAcceptanceDepthMax;

PassLoad pass_over(std::int64_t rows, std::int64_t kv_tokens) {
  PassLoad load;
  load.rows = rows;
  load.kv_tokens = kv_tokens;
  return load;
}

// Seconds that a batch of copies of one request takes.
class BatchOfCopies {
 public:
  BatchOfCopies(const StepCost& cost, std::int64_t batch, std::int64_t prompt_len, std::int64_t output_len)
      : cost_(cost), batch_(batch), prompt_len_(prompt_len), output_len_(output_len) {}

  double plain_ns() const {
    double ns = prompt_ns();
    for (std::int64_t emitted = 1; emitted < output_len_; ++emitted)
      ns += cost_.target_ns(pass_over(batch_, cached(emitted))) + cost_.overhead_ns(batch_, {});
    return ns;
  }

  // drafts: nothing for the oracle.
  double speculative_ns(const Replay& replay, std::uint64_t request, std::optional<std::int32_t> drafts,
                        std::int64_t& steps) const {
    double ns = prompt_ns();
    AcceptanceState state = replay.begin(request);
    for (std::int64_t emitted = 1; emitted < output_len_; ++steps) {
      const auto place = static_cast<std::int32_t>(emitted);
      const std::int32_t most = drafts.value_or(kOracleDrafts);
      const std::int32_t accepted = replay.accepted(state, {place, place}, most, most);
      const std::int64_t rows = drafts.value_or(accepted) + 1;
      DraftLoad draft;
      draft.requests = batch_;
      draft.passes = 1;
      draft.rows = rows;  // of one request: their fit's tokens
      draft.kv_tokens = cached(emitted);
      ns += cost_.target_ns(pass_over(batch_ * rows, cached(emitted))) + cost_.draft_ns(draft) +
            cost_.overhead_ns(batch_, draft);
      emitted += accepted + 1;
    }
    return ns;
  }

 private:
  std::int64_t cached(std::int64_t emitted) const { return batch_ * (prompt_len_ + emitted); }
  double prompt_ns() const {
    return cost_.target_ns(pass_over(batch_ * prompt_len_, 0)) + cost_.overhead_ns(batch_, {});
  }

  const StepCost& cost_;
  std::int64_t batch_, prompt_len_, output_len_;
};

struct Speedup {
  double speedup;
  double acceptance_length;
};

Speedup speedup_of(const AcceptanceRecording& recording, const StepCost& cost, std::optional<std::int32_t> drafts,
                   std::int64_t batch, std::int32_t delay) {
  const Replay replay(recording, delay);
  double plain = 0.0;  // tokens a nanosecond, summed over requests
  double speculative = 0.0;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  for (std::size_t r = 0; r < recording.requests.size(); ++r) {
    const RecordedRequest& request = recording.requests[r];
    const std::int64_t output_len = std::ssize(request.accepted);
    if (output_len == 0) continue;
    const BatchOfCopies copies(cost, batch, std::ssize(request.prompt), output_len);
    plain += static_cast<double>(output_len) / copies.plain_ns();
    speculative += static_cast<double>(output_len) / copies.speculative_ns(replay, r, drafts, steps);
    tokens += output_len - 1;
  }
  return {speculative / plain, steps > 0 ? static_cast<double>(tokens) / static_cast<double>(steps) : 1.0};
}

// How many of the proposed tokens come.
std::uint8_t matched(std::span<const Token> proposal, std::span<const Token> what_comes) {
  const std::size_t most = std::min(proposal.size(), what_comes.size());
  std::size_t n = 0;
  while (n < most && proposal[n] == what_comes[n]) ++n;
  return static_cast<std::uint8_t>(n);
}

}  // namespace

LinearCost published_cost_8b_h100() {
  LinearCost cost;
  cost.fixed_ns = 5.886e6;
  cost.row_ns = 21.0e3;
  cost.kv_token_ns = 39.3;
  cost.draft_pass_ns = 2.135e6;
  cost.draft_row_ns = 0.84e3;
  cost.draft_kv_token_ns = 2.4;
  cost.engine_ns = 1.2e6;
  return cost;
}

std::vector<ReplayedSpeedup> replay_speedups(const AcceptanceRecording& recording,
                                             const std::vector<std::int64_t>& batches) {
  const LinearCost cost = published_cost_8b_h100();
  std::vector<ReplayedSpeedup> rows;
  for (const std::optional<std::int32_t> drafts : {std::optional<std::int32_t>(1), std::optional<std::int32_t>(3),
                                                   std::optional<std::int32_t>(5), std::optional<std::int32_t>()})
    for (const std::int64_t batch : batches) {
      const Speedup published = speedup_of(recording, cost, drafts, batch, 1);
      const Speedup aligned = speedup_of(recording, cost, drafts, batch, 0);
      rows.push_back({drafts ? "FIXED_" + std::to_string(*drafts) : "ORACLE", drafts, batch,
                      published.acceptance_length, published.speedup, aligned.speedup});
    }
  return rows;
}

LookupComparison compare_lookup(const AcceptanceRecording& recording, const std::string& where) {
  constexpr int kSuffixMin = 3;
  constexpr int kSuffixMax = 5;
  constexpr int kDraftsMax = 20;  // what is recorded goes no further
  const PromptLookup lookup(kSuffixMin, kSuffixMax);
  LookupComparison comparison;
  AcceptanceRecording recorded{recording.drafter, {}};
  AcceptanceRecording own{recording.drafter, {}};
  std::int64_t with_draft = 0;
  std::int64_t recorded_sum = 0;
  std::int64_t own_sum = 0;
  for (const RecordedRequest& request : recording.requests) {
    if (request.prompt.empty() || request.output.empty()) continue;
    std::vector<Token> text = request.prompt;
    text.insert(text.end(), request.output.begin(), request.output.end());
    RecordedRequest& found = own.requests.emplace_back();
    recorded.requests.push_back(request);
    const std::size_t places = std::min(request.accepted.size(), request.output.size());
    recorded.requests.back().accepted.resize(places);
    for (std::size_t p = 0; p < places; ++p) {
      const auto context = std::span<const Token>(text).first(request.prompt.size() + p);
      const std::vector<Token> proposal = lookup.propose(context, kDraftsMax);
      found.accepted.push_back(matched(proposal, std::span<const Token>(request.output).subspan(p)));
      with_draft += proposal.empty() ? 0 : 1;
      comparison.equal += found.accepted.back() == request.accepted[p] ? 1 : 0;
      recorded_sum += request.accepted[p];
      own_sum += found.accepted.back();
    }
    comparison.places += static_cast<std::int64_t>(places);
  }
  if (comparison.places == 0)
    throw input_error(where, "has no token ids; expected prompt_token_ids and generated_token_ids");
  const auto places = static_cast<double>(comparison.places);
  comparison.recorded_mean = static_cast<double>(recorded_sum) / places;
  comparison.own_mean = static_cast<double>(own_sum) / places;
  comparison.draft_share = static_cast<double>(with_draft) / places;
  for (const std::int32_t drafts : {3, 5})
    comparison.runs.push_back({drafts, acceptance_length_of(Replay(recorded).survival_in_run(drafts, drafts)),
                               acceptance_length_of(Replay(own).survival_in_run(drafts, drafts))});
  return comparison;
}

}  // namespace draftproof
