#include "engine/scheduler/speculation_policy.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace draftproof {

SpeculationPolicy::SpeculationPolicy(SpeculationChoice choice, std::shared_ptr<const StepCost> cost)
    : choice_(std::move(choice)), cost_(std::move(cost)) {
  if (choice_.rule == SpeculationRule::schedule && choice_.schedule.empty())
    throw usage_error("speculation policy schedule", "it is empty; expected batch sizes with their drafts");
  const bool by_cost = choice_.rule == SpeculationRule::goodput || keeps_likely();
  if (by_cost && !cost_)
    throw usage_error("speculation policy " + text_of(choice_), "there is no cost model; expected one");
  if (choice_.rule == SpeculationRule::automatic) switch_ = std::make_shared<SpeculationSwitch>();
  if (choice_.rule != SpeculationRule::goodput) return;
  for (std::int32_t c = 0; c < kClasses; ++c) {
    double probability = 1.0;
    for (std::int32_t depth = 1; depth <= choice_.most; ++depth)
      candidates_.push_back({probability *= rate_of_class(c), c, depth});
  }
  std::ranges::stable_sort(candidates_, std::ranges::greater(), &Candidate::probability);
}

SpeculationState SpeculationPolicy::first_state() const {
  SpeculationState state;
  state.num_drafts = choice_.start;
  if (choice_.rule == SpeculationRule::goodput) state.rate_class = static_cast<std::int32_t>(rate(state) * kClasses);
  return state;
}

void SpeculationPolicy::begin_step() {
  batch_ = 0;
  by_times_ = true;
  requests_.fill(0);
  streams_.fill(0);
}

void SpeculationPolicy::count(SpeculationState& state, std::int32_t num_streams) {
  ++batch_;
  by_times_ = by_times_ && !state.shapes_tokens;
  if (choice_.rule != SpeculationRule::goodput) return;
  state.rate_class = std::min(static_cast<std::int32_t>(rate(state) * kClasses), kClasses - 1);
  ++requests_[state.rate_class];
  streams_[state.rate_class] += num_streams;
}

void SpeculationPolicy::decide(std::int64_t other_tokens) {
  if (choice_.rule == SpeculationRule::automatic) {
    drafts_now_ = !by_times_ || switch_->drafts(batch_);
    measured_ = by_times_ && other_tokens == 0;
  } else if (choice_.rule == SpeculationRule::schedule) {
    for_all_ = choice_.schedule.front().second;
    for (const auto& [batch, drafts] : choice_.schedule)
      if (batch <= batch_) for_all_ = drafts;
  } else if (choice_.rule == SpeculationRule::tree) {
    const std::int64_t share = choice_.budget / std::max<std::int64_t>(batch_, 1);
    for_all_ = static_cast<std::int32_t>(std::min<std::int64_t>(share, choice_.nodes));
  } else if (choice_.rule == SpeculationRule::goodput) {
    present_.clear();
    for (const Candidate& candidate : candidates_)
      if (requests_[candidate.rate_class] > 0) present_.push_back(candidate);
    rows_ = other_tokens;
    for (const std::int64_t streams : streams_) rows_ += streams;
    target_ns_.assign(static_cast<std::size_t>((rows_ - other_tokens) * choice_.most + 1), -1.0);
    Best best{0.0, 1.0, 0};
    std::int32_t longest = 0;
    for (std::int32_t most = 0; most <= choice_.most; ++most) {
      const Best found = best_of(most);
      if (!found.is_above(best)) continue;
      best = found;
      longest = most;
    }
    limits_.fill(0);
    for (std::size_t i = 0; i < best.taken; ++i)
      if (present_[i].depth <= longest) ++limits_[present_[i].rate_class];
  }
}

double SpeculationPolicy::target_ns(std::int64_t more_rows) {
  double& ns = target_ns_[static_cast<std::size_t>(more_rows)];
  if (ns < 0.0) ns = cost_->target_ns(planned_pass(rows_ + more_rows, batch_));
  return ns;
}

SpeculationPolicy::Best SpeculationPolicy::best_of(std::int32_t longest) {
  double tokens = static_cast<double>(batch_);
  std::int64_t more_rows = 0;
  const DraftLoad drafting = planned_drafting(longest, batch_);
  const double draft_ns = cost_->overhead_ns(batch_, drafting) + (longest == 0 ? 0.0 : cost_->draft_ns(drafting));
  Best best{tokens, target_ns(0) + draft_ns, 0};
  for (std::size_t i = 0; i < present_.size(); ++i) {
    const Candidate& candidate = present_[i];
    if (candidate.depth > longest) continue;
    tokens += candidate.probability * static_cast<double>(requests_[static_cast<std::size_t>(candidate.rate_class)]);
    more_rows += streams_[static_cast<std::size_t>(candidate.rate_class)];
    const Best found{tokens, target_ns(more_rows) + draft_ns, i + 1};
    if (found.is_above(best)) best = found;
  }
  return best;
}

void require_confidences(std::span<const float> confidences, std::size_t drafted) {
  if (confidences.size() != drafted)
    throw Error(ErrorKind::internal, "drafter",
                "it gives " + std::to_string(confidences.size()) + " confidences for " + std::to_string(drafted) +
                    " drafts; expected one for each");
  for (const float confidence : confidences)
    if (!(confidence >= 0.0f && confidence <= 1.0f))
      throw Error(ErrorKind::internal, "drafter",
                  "a confidence is " + std::to_string(confidence) + "; expected a number in [0, 1]");
}

void SpeculationPolicy::keep_confident(std::span<ConfidentDraft> drafts) const {
  struct Offered {
    double per_row;  // survival of a draft, over the rows that it costs
    std::size_t request;
  };
  std::vector<Offered> candidates;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    ConfidentDraft& draft = drafts[i];
    draft.kept = 0;
    double survival = 1.0;
    for (const float confidence : draft.confidences) {
      survival *= static_cast<double>(confidence);
      if (survival < choice_.threshold) break;
      if (choice_.row_budget > 0) {
        candidates.push_back({survival / draft.num_streams, i});
      } else {
        ++draft.kept;
      }
    }
  }
  // Equal ones stay in their order: of one request an earlier draft before a later one.
  std::ranges::stable_sort(candidates, std::ranges::greater(), &Offered::per_row);
  std::int64_t rows = 0;
  for (const Offered& candidate : candidates) {
    ConfidentDraft& draft = drafts[candidate.request];
    rows += draft.num_streams;
    if (rows > choice_.row_budget) return;
    ++draft.kept;
  }
}

void SpeculationPolicy::observe_share(SpeculationState& state, std::int32_t drafted, std::int32_t accepted) const {
  if (drafted == 0) return;
  const float share = static_cast<float>(accepted) / static_cast<float>(drafted);
  const auto weight = static_cast<float>(choice_.weight);
  state.average = state.average < 0.0f ? share : state.average + weight * (share - state.average);
  // Without branches, which processors would mispredict.
  const int raised = state.average > static_cast<float>(choice_.raise) ? 1 : 0;
  const int lowered = (state.average < static_cast<float>(choice_.lower) ? 1 : 0) & (1 - raised);
  state.num_drafts = std::clamp(state.num_drafts + raised - lowered, choice_.least, choice_.most);
}

void SpeculationPolicy::observe_rate(SpeculationState& state, std::int32_t drafted, std::int32_t accepted,
                                     bool rejected) {
  state.idle_steps = drafted == 0 ? state.idle_steps + 1 : 0;
  if (drafted == 0) return;
  const std::int32_t judged = accepted + (rejected ? 1 : 0);
  const auto memory = static_cast<float>(choice_.memory);
  state.accepted = memory * state.accepted + static_cast<float>(accepted);
  state.judged = memory * state.judged + static_cast<float>(judged);
  // The batch sees many requests a step; a memory of its own keeps a few hundred observations.
  constexpr double kBatchMemory = 0.999;
  accepted_ = kBatchMemory * accepted_ + accepted;
  judged_ = kBatchMemory * judged_ + judged;
}

double SpeculationPolicy::rate(const SpeculationState& state) const {
  const double of_batch = (accepted_ + 1.0) / (judged_ + 2.0);
  // The prior never vanishes, so that the rate is inside (0, 1).
  const double prior = choice_.prior + 1e-3;
  return (static_cast<double>(state.accepted) + prior * of_batch) / (static_cast<double>(state.judged) + prior);
}

}  // namespace draftproof
