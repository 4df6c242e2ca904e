#include "engine/scheduler/speculation_policy.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr double kShareOfLosses = 0.0025;    // of the time
constexpr double kFirstTokens = 2.5;         // whose time the account begins with
constexpr double kAccountMax = 16.0;         // plain steps
constexpr std::int64_t kStale = 64;          // steps
constexpr std::int64_t kPlainEvery = 4;      // steps that draft, at least
constexpr double kSurprise = 0.1;            // by which a time may turn out shorter than it was
constexpr double kGuess = 0.3;               // the same of one that was never taken
constexpr std::int32_t kReadWithDraft = 17;  // tokens: what a request that drafts in every step reads all the same
constexpr double kReadingShare = 0.125;      // of a row of the target, a token that is read, before one was timed

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
  looks_up_ = false;
  heads_.clear();
  requests_.fill(0);
  streams_.fill(0);
}

void SpeculationPolicy::count(SpeculationState& state, std::int32_t num_streams) {
  ++batch_;
  by_times_ = by_times_ && !state.shapes_tokens;
  if (choice_.rule != SpeculationRule::goodput && !own_) return;
  state.probes = state.waits = false;
  if (own_ && (state.looks_up || state.longest == 0)) {
    plain_streams_ += num_streams;
    looks_up_ = looks_up_ || state.longest > 0;
    return;
  }
  longest_ = std::max(longest_, std::min(state.longest, choice_.most));
  if (own_) heads_.push_back(&state);
  state.rate_class = std::min(static_cast<std::int32_t>(rate(state) * kClasses), kClasses - 1);
  ++requests_[state.rate_class];
  streams_[state.rate_class] += num_streams;
}

void SpeculationPolicy::decide(std::int64_t other_tokens) {
  if (own_) {
    own_->trust(by_times_);
    if (by_times_) choose_by_times(other_tokens);
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

SpeculationPolicy::Best SpeculationPolicy::choose_limits(std::int64_t other_tokens, std::int32_t most) {
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
  return best;
}

// The same, with drafts of lengths that were timed.
SpeculationPolicy::Best SpeculationPolicy::choose_timed_limits(std::int64_t other_tokens) {
  const std::int64_t drafting = std::reduce(streams_.begin(), streams_.end());
  const std::int64_t rows = other_tokens + plain_streams_ + drafting;
  std::int32_t most = 0;
  while (most < longest_ && own_->knows(rows + most * drafting)) ++most;
  return choose_limits(other_tokens, most);
}

// What a draft of the request reads first.
double SpeculationPolicy::reading_ns(const SpeculationState& state) const {
  const auto tokens = static_cast<double>(std::max(state.tokens - state.read - kReadWithDraft, 0));
  if (read_token_ns_ >= 0.0) return tokens * read_token_ns_;
  const double eight_rows_ns = own_->target_ns(planned_pass(16, 1)) - own_->target_ns(planned_pass(8, 1));
  return tokens * kReadingShare * std::max(eight_rows_ns, 0.0) / 8.0;
}

void SpeculationPolicy::choose_by_times(std::int64_t other_tokens) {
  limits_.fill(0);
  const bool renews = drafted_steps_ >= kPlainEvery && (plain_looks_ns_ >= gain_ns_ || drafted_steps_ >= kStale);
  stops_ = !opened_ || account_ns_ < 0.0 || renews;
  if (stops_) {
    if (opened_ && renews) plain_looks_ns_ -= std::max(gain_ns_, 0.0);
    return;
  }
  if (heads_.empty()) return;
  const double plain_ns =
      own_->plain_ns(other_tokens + plain_streams_ + std::reduce(streams_.begin(), streams_.end()), batch_);
  Best best = choose_timed_limits(other_tokens);
  if (judged_ == 0.0) limits_.fill(0);
  const auto longest_of = [&] { return *std::ranges::max_element(limits_); };
  std::int32_t longest = longest_of();
  if (longest > 0) {
    double reading = 0.0, room = 0.0;
    std::int64_t readers = 0;
    for (const SpeculationState* const head : heads_)
      if (const double ns = limits_[head->rate_class] > 0 ? reading_ns(*head) : 0.0; ns > 0.0) {
        reading += ns;
        room += head->room;
        ++readers;
      }
    const double gain_of_token = plain_ns / static_cast<double>(batch_) - best.ns / best.tokens;
    // Half the account is left for the drafts themselves.
    if (readers > 0 && reading > std::min(account_ns_ / 2.0, gain_of_token * room)) {
      for (SpeculationState* const head : heads_)
        if (reading_ns(*head) > 0.0) {
          head->waits = true;
          // Streams of a class are shared alike: guided requests have two.
          const std::int64_t streams = streams_[head->rate_class] / requests_[head->rate_class];
          --requests_[head->rate_class];
          streams_[head->rate_class] -= streams;
          plain_streams_ += streams;
        }
      if (std::reduce(requests_.begin(), requests_.end()) == 0) {
        limits_.fill(0);
        return;
      }
      best = choose_timed_limits(other_tokens);
      longest = longest_of();
    }
  }
  look(other_tokens, longest);
}

// Takes a look where one could show something better, and the account pays for what it loses by what is known.
void SpeculationPolicy::look(std::int64_t other_tokens, std::int32_t longest) {
  const std::int64_t requests = std::reduce(requests_.begin(), requests_.end());
  const std::int64_t drafting = std::reduce(streams_.begin(), streams_.end());
  const std::int64_t rows = other_tokens + plain_streams_ + drafting;
  const auto ns_of = [&](std::int32_t length, std::int64_t drafters, std::int64_t more_rows) {
    return own_->target_ns(planned_pass(rows + more_rows, batch_)) +
           own_->draft_ns(planned_drafting(length, length == 0 ? 0 : drafters));
  };
  // Of a step in which every request drafts so many.
  const auto all_ns = [&](std::int32_t length) { return ns_of(length, requests, length * drafting); };
  const auto tokens_of = [&](std::int32_t length, auto likelihood) {
    auto tokens = static_cast<double>(batch_);
    for (std::int32_t c = 0; c < kClasses; ++c) {
      double survival = 1.0;
      for (std::int32_t j = 0; j < length; ++j)
        tokens += static_cast<double>(requests_[c]) * (survival *= likelihood(c));
    }
    return tokens;
  };
  const double now_ns = all_ns(longest);
  const double now_tokens = tokens_of(longest, rate_of_class);
  const double rate_most = likely_rate_most();
  if (!own_->knows(rows)) return;
  const auto could_be_better = [&](std::int32_t length) {
    const double share = own_->knows(rows + length * drafting) ? kSurprise : kGuess;
    // More rows do not take less.
    const double least_ns = std::max((1.0 - share) * all_ns(length), now_ns);
    return tokens_of(length, [&](std::int32_t) { return rate_most; }) * now_ns > now_tokens * least_ns;
  };
  const std::int32_t next = longest + 1;
  const std::int64_t wanted = rows + next * drafting;
  if (longest < longest_ && (longest > 0 || judged_ > 0.0) && could_be_better(next) &&
      !(own_->knows(wanted) && own_->age(wanted) <= kStale)) {
    double lost_ns = all_ns(next) - now_ns * tokens_of(next, rate_of_class) / now_tokens;
    for (const SpeculationState* const head : heads_) lost_ns += head->waits ? 0.0 : reading_ns(*head);
    if (account_ns_ >= lost_ns) {
      limits_.fill(next);
      return;
    }
  }
  if (longest > 0) return;
  std::int32_t better = 1;
  while (better <= longest_ && own_->knows(rows + (better - 1) * drafting) && !could_be_better(better)) ++better;
  if (better > longest_ || !own_->knows(rows + (better - 1) * drafting)) return;
  SpeculationState* const freshest =
      *std::ranges::min_element(heads_, {}, [&](const SpeculationState* head) { return head->tokens - head->read; });
  if (account_ns_ >= ns_of(1, 1, 1) - now_ns + reading_ns(*freshest)) freshest->probes = true;
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
  const double read_tokens = std::exchange(read_tokens_, 0.0);
  const auto late_ns = static_cast<double>(outcome.late_ns);
  const std::int64_t ns = outcome.end_ns - outcome.begin_ns - outcome.late_ns;
  account_ns_ += kShareOfLosses * (static_cast<double>(ns) + late_ns);
  plain_looks_ns_ += kShareOfLosses * static_cast<double>(ns);
  std::int64_t rows = plan.num_tokens;
  std::int32_t passes = 0;
  std::int64_t drafting = 0;
  std::int64_t streams = 0;
  double tokens = 0.0;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    if (!plan.requests[i].sample) return;
    const std::int32_t drafted = outcome.sequences[i].num_drafted;
    streams += plan.requests[i].num_streams;
    rows += std::int64_t{drafted} * plan.requests[i].num_streams;
    passes = std::max(passes, std::min(drafted, plan.requests[i].draft_depth_max));
    drafting += drafted > 0 ? 1 : 0;
    tokens += outcome.sequences[i].num_emitted;
  }
  undrafted_steps_ = drafting > 0 ? 0 : undrafted_steps_ + 1;
  drafted_steps_ = drafting > 0 ? drafted_steps_ + 1 : 0;
  if (read_tokens > 0.0) {
    const double ns_of_token = late_ns / read_tokens;
    read_token_ns_ = read_token_ns_ < 0.0 ? ns_of_token : read_token_ns_ + (ns_of_token - read_token_ns_) / 8.0;
  }
  // Rows of prompts have no logits, so they say little of rows that have.
  if (plan.num_tokens != streams) return;
  const std::int64_t drafting_ns = outcome.draft_ns - outcome.late_ns;
  const double counted_ns =
      own_->observe(rows, std::ssize(plan.requests), planned_drafting(passes, drafting), ns, drafting_ns);
  if (!opened_ && !(own_->knows(streams) && drafting == 0)) return;
  const double plain_ns = own_->plain_ns(streams, std::ssize(plan.requests));
  if (!opened_) {
    opened_ = true;
    account_ns_ += plain_ns * kFirstTokens / static_cast<double>(plan.requests.size());
  }
  if (drafting > 0) {
    const double gain_ns = plain_ns * tokens / static_cast<double>(plan.requests.size()) - counted_ns;
    gain_ns_ += (gain_ns - gain_ns_) / 16.0;
    account_ns_ += gain_ns - late_ns;
  } else if (looks_up_) {
    account_ns_ -= static_cast<double>(drafting_ns);  // of drafts that were not worth their rows
  }
  account_ns_ = std::min(account_ns_, kAccountMax * plain_ns);
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
  read_tokens_ += std::max(state.tokens - state.read - kReadWithDraft, 0);
  state.read = state.tokens;
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
