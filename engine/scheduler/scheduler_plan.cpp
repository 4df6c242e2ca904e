// Who computes what in the next step.
#include <algorithm>

#include "base/error.hpp"
#include "engine/scheduler/scheduler.hpp"

namespace draftproof {

const StepPlan& Scheduler::plan() {
  if (outstanding_) throw Error(ErrorKind::internal, "plan", "the step before has not been committed");
  for (const RequestHandle handle : finished_) {
    requests_[handle].state = RequestState::vacant;
    vacant_.push_back(handle);
  }
  finished_.clear();
  plan_.step = metrics_.steps;
  plan_.phase = StepPhase::mixed;
  plan_.requests.clear();
  plan_.swap_out.clear();
  plan_.swap_in.clear();
  plan_.copies.clear();
  plan_.num_tokens = 0;
  plan_.num_draft_rows_max = 0;
  tokens_left_ = options_.token_budget;
  preempted_ = false;
  prepare_policy();
  if (options_.policy == StepPolicy::one_rule) {
    plan_running();
    plan_waiting();
  } else {
    plan_two_phases();
  }
  outstanding_ = !plan_.empty();
  metrics_.num_running = static_cast<std::int64_t>(running_.size());
  metrics_.blocks_held = blocks_.num_held();
  metrics_.blocks_held_max = std::max(metrics_.blocks_held_max, metrics_.blocks_held);
  return plan_;
}

void Scheduler::prepare_policy() {
  if (!policy_.looks_at_batch()) return;
  policy_.begin_step();
  std::int64_t prefill = 0;
  for (const RequestHandle handle : running_) {
    RequestProgress& request = requests_[handle];
    if (request.decodes()) {
      request.speculation.tokens = request.tokens(0);
      request.speculation.room = request.output_len_max - request.output_len;
      policy_.count(request.speculation, request.num_streams);
    } else {
      for (std::int32_t s = 0; s < request.num_streams; ++s) prefill += request.missing(s);
    }
  }
  policy_.decide(std::min<std::int64_t>(prefill, options_.token_budget));
}

void Scheduler::plan_running() {
  for (std::size_t i = 0; i < running_.size() && tokens_left_ > 0; ++i) {
    if (!belongs_to_phase(requests_[running_[i]])) continue;
    while (i < running_.size() && plan_request(running_[i], 0) == Fit::no_blocks) preempt_youngest();
  }
}

void Scheduler::plan_waiting() {
  // Blocks that a preemption has freed are for those who run.
  while (first_waiting_ >= 0 && !preempted_ && tokens_left_ > 0 &&
         running_.size() < static_cast<std::size_t>(options_.running_max)) {
    const RequestHandle handle = first_waiting_;
    const std::int32_t reserve = running_.empty() ? 0 : options_.admission_reserve_blocks;
    const bool swapped = requests_[handle].state == RequestState::swapped;
    if (!(swapped ? admit_swapped(handle, reserve) : admit_waiting(handle, reserve))) return;
    unlink_waiting(handle);
    requests_[handle].state = RequestState::running;
    running_.push_back(handle);
  }
}

void Scheduler::plan_two_phases() {
  std::array<bool, 2> has{};  // requests that decode without drafts, with drafts
  for (const RequestHandle handle : running_)
    if (requests_[handle].decodes()) has[wanted_drafts(requests_[handle]) > 0 ? 1 : 0] = true;
  const bool drafts = has[1] && (!has[0] || last_decode_phase_ == StepPhase::normal);
  const StepPhase first = drafts ? StepPhase::speculative : StepPhase::normal;
  const StepPhase second = drafts ? StepPhase::normal : StepPhase::speculative;
  const bool prompts_first = prefill_steps_ < options_.prefill_steps_max || (!has[0] && !has[1]);
  // Where a kind has no blocks its requests are preempted, and it is the next one's turn.
  for (const StepPhase phase :
       prompts_first ? std::array{StepPhase::prefill, first, second} : std::array{first, second, StepPhase::prefill}) {
    plan_.phase = phase;
    plan_running();
    if (phase == StepPhase::prefill) plan_waiting();
    if (!plan_.empty()) break;
  }
  if (plan_.phase == StepPhase::prefill) {
    ++prefill_steps_;
  } else {
    prefill_steps_ = 0;
    last_decode_phase_ = plan_.phase;
  }
}

bool Scheduler::belongs_to_phase(const RequestProgress& request) const {
  switch (plan_.phase) {
    case StepPhase::mixed:
      return true;
    case StepPhase::prefill:
      return !request.decodes();
    case StepPhase::normal:
    case StepPhase::speculative:
      break;
  }
  return request.decodes() && (wanted_drafts(request) > 0) == (plan_.phase == StepPhase::speculative);
}

// Before the budget and the blocks are looked at.
std::int32_t Scheduler::wanted_drafts(const RequestProgress& request) const {
  const std::int32_t room = request.output_len_max - request.output_len - 1;  // the step's own token needs the other
  if (room == 0) return 0;
  const std::int32_t wanted = std::min(policy_.num_drafts(request.speculation), request.num_drafts_max);
  return request.draft_trees ? wanted : std::min(wanted, room);
}

Scheduler::Fit Scheduler::plan_request(RequestHandle handle, std::int32_t reserve) {
  RequestProgress& request = requests_[handle];
  const std::int32_t num_streams = request.num_streams;
  std::array<std::int32_t, kStreamsMax> count{};
  std::int32_t total = 0;
  for (std::int32_t s = 0; s < num_streams; ++s) total += count[s] = request.missing(s);
  std::int32_t limit = tokens_left_;
  if (options_.chunked_prefill) limit = std::min(limit, std::max(options_.prefill_chunk_max, num_streams));
  const bool sample = total <= limit;
  std::int32_t drafts = 0;
  if (sample) {
    const bool may_draft = plan_.phase == StepPhase::speculative ||
                           (plan_.phase == StepPhase::mixed && (options_.drafts_with_prefill || total == num_streams));
    const std::int32_t left = tokens_left_ - total;
    if (may_draft) drafts = std::min(wanted_drafts(request), num_streams == 1 ? left : left / 2);
  } else {
    if (!options_.chunked_prefill) return Fit::no_tokens;
    // The last token of every stream waits for the step in which the others' come too.
    total = 0;
    for (std::int32_t s = 0; s < num_streams; ++s) total += count[s] = std::min(count[s] - 1, limit - total);
    if (total == 0) return Fit::no_tokens;
  }

  const auto missing_blocks = [&] {
    std::int32_t missing = 0;
    for (std::int32_t s = 0; s < num_streams; ++s)
      missing += request.streams[s].table.missing_for(request.streams[s].computed + count[s] + drafts);
    return missing;
  };
  const std::int32_t free = blocks_.num_free() - reserve;
  while (missing_blocks() > free) {
    if (drafts == 0) return Fit::no_blocks;
    --drafts;
  }

  PlannedRequest& planned = plan_.requests.emplace_back();
  planned.request = handle;
  planned.num_streams = num_streams;
  planned.sample = sample;
  planned.num_drafts_max = drafts;
  planned.draft_depth_max = drafts == 0 ? 0 : std::min(drafts, request.output_len_max - request.output_len - 1);
  for (std::int32_t s = 0; s < num_streams; ++s) {
    StreamProgress& stream = request.streams[s];
    stream.table.grow_to(blocks_, stream.computed + count[s] + drafts);
    planned.streams[s] = {{stream.table.blocks, stream.computed}, count[s]};
    stream.computed += count[s] + drafts;
  }
  request.planned = true;
  request.planned_drafts = drafts;
  request.last_step = plan_.step;
  plan_.num_tokens += total;
  plan_.num_draft_rows_max += std::int64_t{drafts} * num_streams;
  tokens_left_ -= total + drafts * num_streams;
  return Fit::planned;
}

bool Scheduler::admit_waiting(RequestHandle handle, std::int32_t reserve) {
  RequestProgress& request = requests_[handle];
  for (std::int32_t s = 0; s < request.num_streams; ++s) {
    StreamProgress& stream = request.streams[s];
    // At least one token is computed, since its row is wanted.
    const auto most = static_cast<std::size_t>((request.tokens(s) - 1) / kKvBlockSlots);
    for (std::size_t i = 0; i < std::min(stream.keys.size(), most); ++i) {
      const std::int32_t block = blocks_.find(stream.keys[i]);
      if (block == kNoBlock) break;
      blocks_.retain(block);
      stream.table.blocks.push_back(block);
    }
    stream.published = static_cast<std::int32_t>(stream.table.blocks.size());
    stream.computed = stream.published * static_cast<std::int32_t>(kKvBlockSlots);
  }
  StreamProgress& first = request.streams[0];
  const bool at_tail = request.tail_key != 0 && request.output_len == 0 &&
                       first.published == (first.prompt_len - 1) / static_cast<std::int32_t>(kKvBlockSlots);
  std::int32_t tail = at_tail ? blocks_.find(request.tail_key) : kNoBlock;
  bool copies = false;
  if (tail != kNoBlock) {
    blocks_.retain(tail);
    copies = blocks_.wanted_by_others(tail);
    if (copies && blocks_.num_free() <= reserve) {
      blocks_.release(tail);
      tail = kNoBlock;
    } else {
      first.table.blocks.push_back(tail);
      first.computed = first.prompt_len - 1;
    }
  }
  std::array<std::int32_t, kStreamsMax> found{request.streams[0].computed, request.streams[1].computed};
  if (plan_request(handle, tail != kNoBlock && copies ? reserve + 1 : reserve) == Fit::planned) {
    if (tail != kNoBlock) {
      blocks_.take_over(tail);
      if (copies) {
        std::int32_t& own = first.table.blocks[static_cast<std::size_t>(first.published)];
        own = blocks_.allocate();
        plan_.copies.push_back({tail, own});
        blocks_.release(tail);
      }
    }
    for (std::int32_t s = 0; s < request.num_streams; ++s) {
      if (request.streams[s].keys.empty()) continue;
      metrics_.prefix_queries += request.tokens(s);
      metrics_.prefix_hits += found[s];
    }
    return true;
  }
  for (std::int32_t s = 0; s < request.num_streams; ++s) {
    StreamProgress& stream = request.streams[s];
    stream.table.trim_to(blocks_, 0);
    stream.computed = stream.published = 0;
  }
  return false;
}

bool Scheduler::admit_swapped(RequestHandle handle, std::int32_t reserve) {
  RequestProgress& request = requests_[handle];
  std::int32_t needed = 0;
  for (std::int32_t s = 0; s < request.num_streams; ++s)
    needed += static_cast<std::int32_t>(request.streams[s].swapped.size());
  if (needed + reserve > blocks_.num_free()) return false;
  const std::size_t copies = plan_.swap_in.size();
  for (std::int32_t s = 0; s < request.num_streams; ++s) {
    StreamProgress& stream = request.streams[s];
    for (const std::int32_t from : stream.swapped) {
      stream.table.blocks.push_back(blocks_.allocate());
      plan_.swap_in.push_back({from, stream.table.blocks.back()});
    }
  }
  const bool planned = plan_request(handle, reserve) == Fit::planned;
  if (!planned) plan_.swap_in.resize(copies);
  for (std::int32_t s = 0; s < request.num_streams; ++s) {
    StreamProgress& stream = request.streams[s];
    if (!planned) {
      stream.table.trim_to(blocks_, 0);
    } else {
      for (; !stream.swapped.empty(); stream.swapped.pop_back()) swap_blocks_.release(stream.swapped.back());
    }
  }
  return planned;
}

void Scheduler::preempt_youngest() {
  const RequestHandle handle = running_.back();
  running_.pop_back();
  RequestProgress& request = requests_[handle];
  std::int32_t held = 0;
  for (std::int32_t s = 0; s < request.num_streams; ++s)
    held += static_cast<std::int32_t>(request.streams[s].table.blocks.size());
  const bool swap = options_.preemption == Preemption::swap && held <= swap_blocks_.num_free();
  request.state = swap ? RequestState::swapped : RequestState::waiting;
  for (std::int32_t s = 0; s < request.num_streams; ++s) {
    StreamProgress& stream = request.streams[s];
    if (swap) {
      for (const std::int32_t block : stream.table.blocks) {
        stream.swapped.push_back(swap_blocks_.allocate());
        plan_.swap_out.push_back({block, stream.swapped.back()});
      }
    } else {
      stream.seen = std::max(stream.seen, stream.computed);
      stream.computed = stream.published = 0;
    }
    stream.table.trim_to(blocks_, 0);
  }
  link_waiting(handle, true);
  ++request.preemptions;
  ++metrics_.preemptions;
  if (swap) metrics_.swapped_blocks += held;
  preempted_ = true;
}

}  // namespace draftproof
