#include "sim/serving/simulated_backend.hpp"

#include <algorithm>
#include <cmath>

#include "sim/acceptance/survival_table.hpp"
#include "sim/serving/workload.hpp"

namespace draftproof {

void SimulatedBackend::add(RequestHandle handle, std::uint64_t number, std::int32_t prompt_len) {
  const auto at = static_cast<std::size_t>(handle);
  if (at >= requests_.size()) requests_.resize(at + 1);
  requests_[at] = {acceptance_.begin(number), number, prompt_len, 0, false};
}

std::int32_t SimulatedBackend::depth_of(const PlannedRequest& planned) const {
  return drafting_.tree_depth > 0 ? std::min(planned.draft_depth_max, drafting_.tree_depth) : planned.draft_depth_max;
}

void SimulatedBackend::draft(std::size_t index, const PlannedRequest& planned, SequenceOutcome& outcome) {
  Request& request = requests_[static_cast<std::size_t>(planned.request)];
  const std::int32_t nodes = planned.num_drafts_max;
  const std::int32_t depth = depth_of(planned);
  const AcceptancePlace place{request.output_len, request.prompt_len + request.output_len};
  const bool ready = request.ready;
  if (drafting_.ahead.is_on()) {
    ++asked_drafts_;
    ready_drafts_ += ready ? 1 : 0;
    if (!ready && !drafting_.ahead.backup) return;
  }
  outcome.num_drafted = nodes;
  if (confident_policy_ == nullptr) {
    outcome.num_accepted = acceptance_.accepted(request.acceptance, place, nodes, depth);
  } else {
    if (confidences_.size() <= index) confidences_.resize(index + 1);
    outcome.num_accepted = acceptance_.accepted_with_confidences(request.acceptance, place, depth, confidences_[index]);
    confident_.push_back({confidences_[index], planned.num_streams});
    confident_of_.push_back(&outcome);
  }
  if (ready) return;
  ++draft_.requests;
  // One pass has a row for every depth, whatever its tree (step_ratio.cpp).
  draft_.rows += (drafting_.one_pass ? depth : nodes) + planned.streams[0].num_tokens - 1;
  if (drafting_.discards_kv) draft_.rows += planned.streams[0].context.length;
  draft_.kv_tokens += planned.streams[0].end();
  draft_.depth = std::max(draft_.depth, depth);
  draft_.tree |= depth < nodes && !drafting_.one_pass;
}

void SimulatedBackend::verify(const PlannedRequest& planned, SequenceOutcome& outcome) {
  Request& request = requests_[static_cast<std::size_t>(planned.request)];
  const std::int32_t nodes = outcome.num_drafted;
  const std::int32_t depth = std::min(nodes, depth_of(planned));
  outcome.num_accepted = std::min(outcome.num_accepted, depth);
  outcome.rejected = outcome.num_accepted < depth;
  outcome.num_emitted = outcome.num_accepted + 1;
  request.output_len += outcome.num_emitted;
  if (drafting_.ahead.is_on() && planned.num_drafts_max > 0) {
    request.ready = is_ready(request, nodes, outcome.num_accepted);
    any_ready_ |= request.ready;
    add_drafts_ahead(ahead_, drafting_.ahead, planned.num_drafts_max, planned.streams[0].end() + nodes,
                     drafting_.one_pass);
  } else {
    request.ready = false;
  }
  for (std::int32_t s = 0; s < planned.num_streams; ++s) {
    // A draft sees all committed tokens and its own path, half of the tree's depth on average.
    pass_.attended +=
        nodes * planned.streams[static_cast<std::size_t>(s)].end() + std::int64_t{nodes} * (depth + 1) / 2;
    pass_.rows += nodes;
    pass_.logit_rows += nodes + 1;
  }
}

bool SimulatedBackend::is_ready(const Request& request, std::int32_t drafts, std::int32_t accepted) {
  const auto k = static_cast<std::size_t>(drafts);
  if (ready_.size() <= k) ready_.resize(k + 1);
  if (ready_[k].empty())
    for (const double p : ready_probabilities(drafting_.ahead, drafts)) ready_[k].push_back(word_threshold(p));
  const RandomBlock words = acceptance_block(request.acceptance.seed, AcceptanceWords::ahead, request.output_len);
  return words.word[0] < ready_[k][static_cast<std::size_t>(accepted)];
}

void SimulatedBackend::run(const StepPlan& plan, StepOutcome& outcome) {
  pass_ = PassLoad{};
  draft_ = ahead_ = DraftLoad{};
  any_ready_ = false;
  held_slots_ = 0;
  committed_kv_tokens_ = 0;
  outcome.sequences.resize(plan.requests.size());
  outcome.paths.clear();
  confident_.clear();
  confident_of_.clear();
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const PlannedRequest& planned = plan.requests[i];
    for (std::int32_t s = 0; s < planned.num_streams; ++s) {
      const PlannedStream& stream = planned.streams[static_cast<std::size_t>(s)];
      const std::int64_t tokens = stream.num_tokens;
      pass_.rows += tokens;
      ++pass_.streams;
      pass_.kv_tokens += stream.context.length;
      pass_.attended += tokens * stream.context.length + tokens * (tokens + 1) / 2;
      held_slots_ += static_cast<std::int64_t>(stream.context.blocks.size()) * kKvBlockSlots;
      committed_kv_tokens_ += stream.end();
    }
    outcome.sequences[i] = SequenceOutcome{};
    if (planned.sample && planned.num_drafts_max > 0) draft(i, planned, outcome.sequences[i]);
  }
  if (confident_policy_ != nullptr) {
    confident_policy_->keep_confident(confident_);
    for (std::size_t i = 0; i < confident_.size(); ++i) confident_of_[i]->num_drafted = confident_[i].kept;
  }
  for (std::size_t i = 0; i < plan.requests.size(); ++i)
    if (plan.requests[i].sample) verify(plan.requests[i], outcome.sequences[i]);
  draft_.passes = drafting_.one_pass ? std::min(draft_.depth, 1) : draft_.depth;

  const double draft_ns = draft_.passes == 0 ? 0.0 : cost_.draft_ns(draft_);
  double verify_ns = cost_.target_ns(pass_);
  // Nobody waits for drafts that nobody can use.
  if (any_ready_) verify_ns = std::max(verify_ns, cost_.draft_ns(ahead_));
  const double sample_ns =
      cost_.overhead_ns(static_cast<std::int64_t>(plan.requests.size()), draft_.passes > 0 ? draft_ : ahead_);
  const std::size_t swapped = plan.swap_out.size() + plan.swap_in.size();
  const double swapping_ns = swapped == 0 ? 0.0 : drafting_.swap_block_ns * static_cast<double>(swapped);
  require_simulated_ns(static_cast<double>(now_ns_) + draft_ns + verify_ns + sample_ns + swapping_ns, "simulation");
  outcome.begin_ns = now_ns_;
  outcome.draft_ns = std::llround(draft_ns);
  outcome.verify_ns = std::llround(verify_ns);
  outcome.sample_ns = std::llround(sample_ns);
  const std::int64_t swap_ns = std::llround(swapping_ns);
  // No step takes no time, or a workload could stand still.
  now_ns_ += std::max<std::int64_t>(outcome.draft_ns + outcome.verify_ns + outcome.sample_ns + swap_ns, 1);
  outcome.end_ns = now_ns_;
}

}  // namespace draftproof
