// Requests come and go; scheduler_plan.cpp plans steps, scheduler_commit.cpp takes their outcome.
#include "engine/scheduler/scheduler.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/words.hpp"

namespace draftproof {
namespace {

void require_at_least(std::int64_t least, std::int64_t value, const char* name) {
  if (value < least)
    throw usage_error(name, "it is " + std::to_string(value) + "; expected " + std::to_string(least) + " or more");
}

const SchedulerOptions& checked(const SchedulerOptions& options) {
  require_at_least(1, options.num_blocks, "num_blocks");
  require_at_least(2, options.context_len_max, "context_len_max");
  require_at_least(1, options.token_budget, "token_budget");
  require_at_least(1, options.running_max, "running_max");
  require_at_least(1, options.waiting_max, "waiting_max");
  require_at_least(1, options.prefill_chunk_max, "prefill_chunk_max");
  require_at_least(1, options.prefill_steps_max, "prefill_steps_max");
  require_at_least(0, options.num_swap_blocks, "num_swap_blocks");
  require_at_least(0, options.admission_reserve_blocks, "admission_reserve_blocks");
  return options;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, SpeculationPolicy policy)
    : options_(checked(options)),
      policy_(std::move(policy)),
      blocks_(options.num_blocks),
      swap_blocks_(options.num_swap_blocks) {
  metrics_.num_blocks = options_.num_blocks;
}

void Scheduler::check(const RequestSpec& spec, std::string_view where) const {
  const auto fail = [&](const std::string& what) { throw input_error(std::string(where), what); };
  if (metrics_.num_waiting >= options_.waiting_max)
    fail(counted_noun(metrics_.num_waiting, "request") + " wait; expected fewer than " +
         std::to_string(options_.waiting_max));
  if (spec.output_len_max < 1)
    fail("output_len_max is " + std::to_string(spec.output_len_max) + "; expected 1 token or more");
  std::int64_t blocks = 0;
  std::int64_t rows = 0;
  const auto check_stream = [&](const char* name, std::int32_t prompt_len, std::size_t num_keys) {
    if (prompt_len < 1) fail(std::string(name) + " is empty; expected at least 1 token");
    if (prompt_len >= options_.context_len_max)
      fail(std::string(name) + " has " + counted_noun(prompt_len, "token") + "; expected at most " +
           std::to_string(options_.context_len_max - 1) + ", so that one more fits into the context of " +
           std::to_string(options_.context_len_max));
    if (num_keys > static_cast<std::size_t>(prompt_len / kKvBlockSlots))
      fail(std::string(name) + " has " + counted_noun(num_keys, "block key") + "; expected at most " +
           std::to_string(prompt_len / kKvBlockSlots) + ", one for each full block");
    // The last token of the output is never computed.
    const std::int64_t most =
        std::min<std::int64_t>(std::int64_t{prompt_len} + spec.output_len_max, options_.context_len_max) - 1;
    blocks += blocks_for(most);
    rows += most;
  };
  check_stream("the prompt", spec.prompt_len, spec.block_keys.size());
  if (spec.companion_prompt_len)
    check_stream("the unconditional prompt", *spec.companion_prompt_len, spec.companion_block_keys.size());
  if (blocks > options_.num_blocks)
    fail("it may need " + counted_noun(blocks, "KV block") + "; expected at most the " +
         std::to_string(options_.num_blocks) + " of the cache");
  const std::int64_t least_rows = options_.chunked_prefill ? (spec.companion_prompt_len ? 2 : 1) : rows;
  if (least_rows > options_.token_budget)
    fail("it needs " + counted_noun(least_rows, "token") + " in one step; expected at most the token budget of " +
         std::to_string(options_.token_budget));
}

RequestHandle Scheduler::add(const RequestSpec& spec, std::string_view where) {
  check(spec, where);
  if (vacant_.empty()) {
    vacant_.push_back(static_cast<RequestHandle>(requests_.size()));
    requests_.emplace_back();
  }
  const RequestHandle handle = vacant_.back();
  vacant_.pop_back();
  RequestProgress& request = requests_[handle];
  // Buffers of the request that had this handle before are used again.
  std::array<StreamProgress, kStreamsMax> streams = std::move(request.streams);
  request = RequestProgress{};
  request.num_streams = spec.companion_prompt_len ? 2 : 1;
  std::int32_t longest = spec.prompt_len;
  for (std::int32_t s = 0; s < request.num_streams; ++s) {
    StreamProgress& stream = streams[s];
    stream.prompt_len = s == 0 ? spec.prompt_len : *spec.companion_prompt_len;
    stream.computed = stream.published = stream.seen = 0;
    const auto keys = s == 0 ? spec.block_keys : spec.companion_block_keys;
    stream.keys.assign(keys.begin(), keys.end());
    longest = std::max(longest, stream.prompt_len);
  }
  request.streams = std::move(streams);
  request.state = RequestState::waiting;
  request.draft_trees = spec.draft_trees;
  request.output_len_max = std::min(spec.output_len_max, options_.context_len_max - longest);
  request.num_drafts_max = std::max(spec.num_drafts_max, 0);
  request.arrival = arrivals_++;
  request.arrival_ns = spec.arrival_ns;
  request.speculation = policy_.first_state();
  request.speculation.shapes_tokens = spec.drafts_shape_tokens;
  request.speculation.looks_up = spec.drafts_looked_up;
  request.speculation.longest = request.num_drafts_max;
  request.tail_key = spec.tail_key;
  request.left_tail_key = spec.left_tail_key;
  if (const std::int32_t tail = spec.tail_key == 0 ? kNoBlock : blocks_.find(spec.tail_key); tail != kNoBlock)
    blocks_.claim(tail);
  ++metrics_.added;
  link_waiting(handle, false);
  return handle;
}

bool Scheduler::cancel(RequestHandle handle) {
  RequestProgress& request = requests_[handle];
  if (request.state == RequestState::finished || request.state == RequestState::vacant) return false;
  if (request.planned) {
    if (request.cancelled) return false;
    request.cancelled = true;
    return true;
  }
  if (request.state == RequestState::running) {
    std::erase(running_, handle);
    metrics_.num_running = static_cast<std::int64_t>(running_.size());
  } else {
    unlink_waiting(handle);
  }
  finish(handle, RequestEnd::cancelled);
  return true;
}

void Scheduler::append_block_keys(RequestHandle handle, std::int32_t stream, std::span<const std::uint64_t> keys) {
  const RequestProgress& request = requests_[handle];
  std::vector<std::uint64_t>& known = requests_[handle].streams[stream].keys;
  const std::size_t full = static_cast<std::size_t>(request.tokens(stream) / kKvBlockSlots);
  if (known.size() + keys.size() > full)
    throw input_error("block keys", "there are " + std::to_string(known.size() + keys.size()) + "; expected at most " +
                                        std::to_string(full) + ", one for each full block");
  known.insert(known.end(), keys.begin(), keys.end());
}

void Scheduler::release_blocks(RequestProgress& request) {
  for (std::int32_t s = 0; s < request.num_streams; ++s) {
    StreamProgress& stream = request.streams[s];
    stream.table.trim_to(blocks_, 0);
    for (; !stream.swapped.empty(); stream.swapped.pop_back()) swap_blocks_.release(stream.swapped.back());
  }
  metrics_.blocks_held = blocks_.num_held();
}

void Scheduler::finish(RequestHandle handle, RequestEnd end) {
  RequestProgress& request = requests_[handle];
  const StreamProgress& stream = request.streams[0];
  const bool whole = end == RequestEnd::stop || end == RequestEnd::length;
  if (whole && request.left_tail_key != 0 && stream.computed == stream.prompt_len)
    blocks_.publish(stream.table.blocks.back(), request.left_tail_key);
  release_blocks(request);
  request.state = RequestState::finished;
  request.end = end;
  ++metrics_.ended[static_cast<std::size_t>(end)];
  metrics_.ended_tokens += request.output_len;
  finished_.push_back(handle);
}

void Scheduler::link_waiting(RequestHandle handle, bool first) {
  RequestProgress& request = requests_[handle];
  request.before = first ? -1 : last_waiting_;
  request.after = first ? first_waiting_ : -1;
  (request.before < 0 ? first_waiting_ : requests_[request.before].after) = handle;
  (request.after < 0 ? last_waiting_ : requests_[request.after].before) = handle;
  ++metrics_.num_waiting;
}

void Scheduler::unlink_waiting(RequestHandle handle) {
  const RequestProgress& request = requests_[handle];
  (request.before < 0 ? first_waiting_ : requests_[request.before].after) = request.after;
  (request.after < 0 ? last_waiting_ : requests_[request.after].before) = request.before;
  --metrics_.num_waiting;
}

}  // namespace draftproof
