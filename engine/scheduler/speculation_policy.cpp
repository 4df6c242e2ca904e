#include "engine/scheduler/speculation_policy.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr double kShareOfLooks = 0.006;  // of the time, for each kind
constexpr std::int64_t kStale = 64;      // steps
constexpr double kSurprise = 0.1;        // by which a time may turn out shorter than it was
constexpr double kGuess = 0.3;           // the same of one that was never taken

}  // namespace

SpeculationPolicy::SpeculationPolicy(SpeculationChoice choice, std::shared_ptr<const StepCost> cost)
    : choice_(std::move(choice)), cost_(std::move(cost)) {
  if (choice_.rule == SpeculationRule::schedule && choice_.schedule.empty())
    throw usage_error("speculation policy schedule", "it is empty; expected batch sizes with their drafts");
  const bool by_cost = choice_.rule == SpeculationRule::goodput || keeps_likely();
  if (by_cost && !cost_)
    throw usage_error("speculation policy " + text_of(choice_), "there is no cost model; expected one");
  if (choice_.rule == SpeculationRule::automatic) {
    own_ = std::make_shared<OwnStepCost>(std::move(cost_));
    cost_ = own_;
    choice_.most = kDraftLenMax;
  }
  if (choice_.rule != SpeculationRule::goodput && !own_) return;
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
  if (choice_.rule == SpeculationRule::goodput || own_)
    state.rate_class = static_cast<std::int32_t>(rate(state) * kClasses);
  return state;
}

void SpeculationPolicy::begin_step() {
  batch_ = 0;
  by_times_ = true;
  longest_ = 0;
  plain_streams_ = 0;
  freshest_ = nullptr;
  requests_.fill(0);
  streams_.fill(0);
}

void SpeculationPolicy::count(SpeculationState& state, std::int32_t num_streams) {
  ++batch_;
  by_times_ = by_times_ && !state.shapes_tokens;
  if (choice_.rule != SpeculationRule::goodput && !own_) return;
  state.probes = false;
  if (own_ && (state.looks_up || state.longest == 0)) {
    plain_streams_ += num_streams;
    return;
  }
  longest_ = std::max(longest_, std::min(state.longest, choice_.most));
  if (freshest_ == nullptr || state.idle_steps < freshest_->idle_steps) freshest_ = &state;
  state.rate_class = std::min(static_cast<std::int32_t>(rate(state) * kClasses), kClasses - 1);
  ++requests_[state.rate_class];
  streams_[state.rate_class] += num_streams;
}

void SpeculationPolicy::decide(std::int64_t other_tokens) {
  if (own_) {
    own_->trust(by_times_);
    if (by_times_ && longest_ > 0) choose_by_times(other_tokens);
  } else if (choice_.rule == SpeculationRule::schedule) {
    for_all_ = choice_.schedule.front().second;
    for (const auto& [batch, drafts] : choice_.schedule)
      if (batch <= batch_) for_all_ = drafts;
  } else if (choice_.rule == SpeculationRule::tree) {
    const std::int64_t share = choice_.budget / std::max<std::int64_t>(batch_, 1);
    for_all_ = static_cast<std::int32_t>(std::min<std::int64_t>(share, choice_.nodes));
  } else if (choice_.rule == SpeculationRule::goodput) {
    choose_limits(other_tokens, choice_.most);
  }
}

void SpeculationPolicy::choose_limits(std::int64_t other_tokens, std::int32_t most) {
  present_.clear();
  for (const Candidate& candidate : candidates_)
    if (const std::int64_t requests = requests_[candidate.rate_class]; requests > 0 && candidate.depth <= most)
      present_.push_back({candidate.probability * static_cast<double>(requests), streams_[candidate.rate_class],
                          candidate.rate_class, candidate.depth});
  std::int64_t drafting = 0;
  for (const std::int64_t streams : streams_) drafting += streams;
  const std::int64_t rows = other_tokens + plain_streams_ + drafting;
  // Costs that nothing corrects are those of the step before where it was like this one.
  if (own_ || rows != rows_ || batch_ != batch_of_ns_) target_ns_.clear();
  rows_ = rows;
  batch_of_ns_ = batch_;
  target_ns_.resize(std::max(target_ns_.size(), static_cast<std::size_t>(drafting * most + 1)), -1.0);
  Best best{0.0, 1.0, 0};
  std::int32_t longest = 0;
  for (std::int32_t length = 0; length <= most; ++length) {
    const Best found = best_of(length);
    if (!found.is_above(best)) continue;
    best = found;
    longest = length;
  }
  limits_.fill(0);
  for (std::size_t i = 0; i < best.taken; ++i)
    if (present_[i].depth <= longest) ++limits_[present_[i].rate_class];
}

void SpeculationPolicy::choose_by_times(std::int64_t other_tokens) {
  std::int64_t drafting = 0;
  for (const std::int64_t streams : streams_) drafting += streams;
  const std::int64_t rows = other_tokens + plain_streams_ + drafting;
  std::int32_t most = 0;
  while (most < longest_ && own_->knows(rows + most * drafting)) ++most;
  choose_limits(other_tokens, most);
  if (most == 0) return;
  const std::int32_t longest = *std::ranges::max_element(limits_);
  // A step in which every request drafts so many.
  const auto drafting_requests = std::reduce(requests_.begin(), requests_.end());
  const auto ns_of = [&](std::int32_t length, std::int64_t requests, std::int64_t more_rows) {
    const DraftLoad load = planned_drafting(length, length == 0 ? 0 : requests);
    return own_->target_ns(planned_pass(rows + more_rows, batch_)) + own_->draft_ns(load);
  };
  const auto tokens_of = [&](std::int32_t length) {
    auto tokens = static_cast<double>(batch_);
    for (std::int32_t c = 0; c < kClasses; ++c) {
      double survival = 1.0;
      for (std::int32_t j = 0; j < length; ++j)
        tokens += static_cast<double>(requests_[c]) * (survival *= rate_of_class(c));
    }
    return tokens;
  };
  // Looks: each where it could show something better, and when its kind's share of the time pays for what it loses by
  // what is known.
  const double now_ns = ns_of(longest, drafting_requests, longest * drafting);
  const double rate_most = likely_rate_most();
  const auto could_be_better = [&](std::int32_t length) {
    auto tokens = static_cast<double>(batch_);
    double survival = 1.0;
    for (std::int32_t j = 0; j < length; ++j)
      tokens += static_cast<double>(drafting_requests) * (survival *= rate_most);
    const double share = own_->knows(rows + length * drafting) ? kSurprise : kGuess;
    double least_ns = (1.0 - share) * ns_of(length, drafting_requests, length * drafting);
    if (length > longest) least_ns = std::max(least_ns, now_ns);  // more rows do not take less
    return tokens * now_ns > tokens_of(longest) * least_ns;
  };
  const auto looks_at = [&](std::int32_t length) {
    const std::int64_t wanted = rows + length * drafting;
    if (own_->knows(wanted) && own_->age(wanted) <= kStale) return false;
    if (!could_be_better(length)) return false;
    const double as_now_ns = now_ns * tokens_of(length) / tokens_of(longest);
    const double lost_ns = std::max(ns_of(length, drafting_requests, length * drafting) - as_now_ns, 0.0);
    const double late_ns = longest == 0 ? late_ns_ * static_cast<double>(drafting_requests) : 0.0;
    if (times_ns_ < lost_ns + late_ns) return false;
    times_ns_ -= lost_ns;
    limits_.fill(length);
    look_ = Look::times;
    return true;
  };
  if (longest > 0 && looks_at(0)) return;
  if (longest < longest_ && (longest > 0 || late_ns_ >= 0.0) && looks_at(longest + 1)) return;
  if (longest > 0) return;
  std::int32_t better = 1;
  while (better <= most + 1 && !could_be_better(better)) ++better;
  if (better > most + 1) return;
  const double lost_ns = ns_of(1, 1, 1) - now_ns;
  if (acceptance_ns_ < lost_ns + std::max(late_ns_, 0.0)) return;
  acceptance_ns_ -= lost_ns;
  freshest_->probes = true;
  look_ = Look::acceptance;
}

// What the batch's rate could be: two standard deviations above its mean, of what was judged, which counts half as much
// with every kStale steps without drafts.
double SpeculationPolicy::likely_rate_most() const {
  const double weight = std::exp2(-static_cast<double>(undrafted_steps_) / static_cast<double>(kStale));
  const double judged = weight * judged_ + 2.0;
  const double mean = (weight * accepted_ + 1.0) / judged;
  return std::min(mean + 2.0 * std::sqrt(mean * (1.0 - mean) / (judged + 1.0)), 1.0);
}

void SpeculationPolicy::time(const StepPlan& plan, const StepOutcome& outcome) {
  const std::int64_t ns = outcome.end_ns - outcome.begin_ns - outcome.late_ns;
  if (look_ != Look::none) (look_ == Look::times ? times_ns_ : acceptance_ns_) -= static_cast<double>(outcome.late_ns);
  if (look_ == Look::acceptance) {
    const auto late_ns = static_cast<double>(outcome.late_ns);
    late_ns_ = late_ns_ < 0.0 ? late_ns : late_ns_ + (late_ns - late_ns_) / 8.0;
  }
  look_ = Look::none;
  acceptance_ns_ += kShareOfLooks * static_cast<double>(ns);
  times_ns_ += kShareOfLooks * static_cast<double>(ns);
  std::int64_t rows = plan.num_tokens;
  std::int32_t passes = 0;
  std::int64_t drafting = 0;
  std::int64_t streams = 0;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    if (!plan.requests[i].sample) return;
    const std::int32_t drafted = outcome.sequences[i].num_drafted;
    streams += plan.requests[i].num_streams;
    rows += std::int64_t{drafted} * plan.requests[i].num_streams;
    passes = std::max(passes, std::min(drafted, plan.requests[i].draft_depth_max));
    drafting += drafted > 0 ? 1 : 0;
  }
  undrafted_steps_ = drafting > 0 ? 0 : undrafted_steps_ + 1;
  // Rows of prompts have no logits, so they say little of rows that have.
  if (plan.num_tokens == streams)
    own_->observe(rows, std::ssize(plan.requests), planned_drafting(passes, drafting), ns,
                  outcome.draft_ns - outcome.late_ns);
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
    const Present& candidate = present_[i];
    if (candidate.depth > longest) continue;
    tokens += candidate.tokens;
    more_rows += candidate.rows;
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
  if (choice_.rule == SpeculationRule::cumulative) {
    state.accepted += static_cast<float>(accepted);
    state.judged += static_cast<float>(drafted);
    state.average = state.accepted / state.judged;
  } else {
    const float share = static_cast<float>(accepted) / static_cast<float>(drafted);
    const auto weight = static_cast<float>(choice_.weight);
    state.average = state.average < 0.0f ? share : state.average + weight * (share - state.average);
  }
  // Without branches, which processors would mispredict.
  const int raised = state.average > static_cast<float>(choice_.raise) ? 1 : 0;
  const int lowered = (state.average < static_cast<float>(choice_.lower) ? 1 : 0) & (1 - raised);
  state.num_drafts = std::clamp(state.num_drafts + raised - lowered, choice_.least, choice_.most);
}

void SpeculationPolicy::observe_efficiency(SpeculationState& state, std::int32_t accepted, bool rejected) const {
  state.accepted += static_cast<float>(accepted);
  state.judged += static_cast<float>(accepted + (rejected ? 1 : 0));
  if (!(state.judged > 0.0f)) return;
  const double rate = static_cast<double>(state.accepted) / static_cast<double>(state.judged);
  double expected = rate;  // accepted of K drafts
  double reached = rate;
  // The share falls with K, for its terms do.
  for (state.num_drafts = 1; state.num_drafts < choice_.most; ++state.num_drafts) {
    reached *= rate;
    expected += reached;
    if (expected < choice_.share * (state.num_drafts + 1)) break;
  }
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
