#include "tests/engine/scheduler/invariants.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace draftproof {
namespace {

using Inside = SchedulerInspection;
using Pool = KvBlockInspection;

// Thrown by require() and caught in violated_invariant(): the first violation ends the check.
struct Violation {
  std::string text;
};

template <class... Parts>
void require(bool holds, const char* invariant, Parts... parts) {
  if (holds) return;
  std::string text = std::string(invariant) + ":";
  const auto add = [&](const auto& part) {
    text += ' ';
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>)
      text += std::to_string(part);
    else
      text += part;
  };
  (add(parts), ...);
  throw Violation{text};
}

void check_pool(const KvBlockPool& pool, const std::vector<std::int32_t>& held, const char* name) {
  const auto& blocks = Pool::blocks(pool);
  std::vector<int> places(blocks.size());
  for (const std::int32_t block : Pool::blank(pool)) {
    require(block >= 0 && block < pool.num_blocks(), "blocks", "blank block", block, "is outside the", name);
    require(!blocks[block].findable, "blocks", "block", block, "is blank and findable, in the", name);
    ++places[block];
  }
  std::int32_t cached = 0;
  std::int32_t before = kNoBlock;
  for (std::int32_t block = Pool::oldest(pool); block != kNoBlock; block = blocks[block].after) {
    require(cached++ < pool.num_blocks(), "blocks", "the list of findable blocks is a ring, in the", name);
    require(blocks[block].before == before && blocks[block].findable, "blocks", "block", block,
            "is in the list of findable ones by mistake, in the", name);
    before = block;
    ++places[block];
  }
  require(before == Pool::newest(pool) && cached == Pool::num_cached(pool), "blocks", cached,
          "findable blocks are free, and the count says", Pool::num_cached(pool), "in the", name);
  std::size_t findable = 0;
  for (std::int32_t block = 0; block < pool.num_blocks(); ++block) {
    const int expected = blocks[block].references == 0 ? 1 : 0;
    require(places[block] == expected, "blocks", "block", block, "has", blocks[block].references, "holders and is",
            places[block], "times among the free ones of the", name);
    require(blocks[block].references == held[block], "blocks", "block", block, "is in", held[block],
            "tables, and its count says", blocks[block].references, "in the", name);
    if (!blocks[block].findable) continue;
    ++findable;
    require(pool.find(blocks[block].key) == block, "blocks", "block", block, "is not found by its key, in the", name);
  }
  require(findable == Pool::table_entries(pool), "blocks", findable, "blocks are findable, and the table has",
          Pool::table_entries(pool), "in the", name);
}

void check_blocks(const Scheduler& scheduler) {
  std::vector<std::int32_t> held(static_cast<std::size_t>(scheduler.blocks().num_blocks()));
  std::vector<std::int32_t> swapped(static_cast<std::size_t>(Inside::swap_blocks(scheduler).num_blocks()));
  for (const RequestProgress& request : Inside::requests(scheduler)) {
    for (const StreamProgress& stream : request.streams) {
      for (const std::int32_t block : stream.table.blocks) ++held[block];
      for (const std::int32_t block : stream.swapped) ++swapped[block];
    }
  }
  check_pool(scheduler.blocks(), held, "cache");
  check_pool(Inside::swap_blocks(scheduler), swapped, "swap space");
}

void check_slots(const Scheduler& scheduler) {
  const KvBlockPool& pool = scheduler.blocks();
  for (const RequestHandle handle : Inside::running(scheduler)) {
    const RequestProgress& request = scheduler.progress(handle);
    for (std::int32_t s = 0; s < request.num_streams; ++s) {
      const StreamProgress& stream = request.streams[s];
      for (std::size_t i = 0; i < stream.table.blocks.size(); ++i) {
        const std::int32_t block = stream.table.blocks[i];
        const bool shared = pool.references(block) > 1;
        if (!shared && !pool.findable(block)) continue;
        const std::int64_t end = (static_cast<std::int64_t>(i) + 1) * kKvBlockSlots;
        std::int64_t written_from = stream.computed;
        if (request.planned) {
          for (const PlannedRequest& planned : Inside::plan(scheduler).requests)
            if (planned.request == handle) written_from = planned.streams[s].context.length;
        }
        require(end <= written_from, "slots", "request", handle, "writes into block", block, "which others may read;",
                pool.references(block), "hold it");
        require(!shared || (i < stream.keys.size() && pool.findable(block) && pool.key(block) == stream.keys[i]),
                "slots", "request", handle, "shares block", block, "without its key");
      }
    }
  }
}

void check_traces(const Scheduler& scheduler) {
  const bool outstanding = Inside::outstanding(scheduler);
  const auto& requests = Inside::requests(scheduler);
  for (std::size_t handle = 0; handle < requests.size(); ++handle) {
    const RequestProgress& request = requests[handle];
    const bool live = request.state != RequestState::vacant && request.state != RequestState::finished;
    require(outstanding || !request.planned || !live, "traces", "request", handle, "is planned without a plan");
    require(request.planned || request.planned_drafts == 0, "traces", "request", handle, "has drafts without a plan");
    for (std::int32_t s = 0; s < request.num_streams; ++s) {
      const StreamProgress& stream = request.streams[s];
      const std::int32_t running = request.state == RequestState::running ? blocks_for(stream.computed) : 0;
      const std::int32_t swapped = request.state == RequestState::swapped ? blocks_for(stream.computed) : 0;
      require(static_cast<std::int32_t>(stream.table.blocks.size()) == running, "traces", "request", handle, "holds",
              stream.table.blocks.size(), "blocks for", stream.computed, "computed tokens");
      require(static_cast<std::int32_t>(stream.swapped.size()) == swapped, "traces", "request", handle, "holds",
              stream.swapped.size(), "swapped blocks for", stream.computed, "computed tokens");
      if (!live) continue;
      require(request.state != RequestState::waiting || (stream.computed == 0 && stream.published == 0), "traces",
              "request", handle, "waits with computed tokens");
      // Committed tokens are all computed but the newest.
      const std::int32_t most = request.tokens(s) - (request.planned ? 0 : 1);
      require(stream.computed - request.planned_drafts <= most, "traces", "request", handle, "has",
              stream.computed - request.planned_drafts, "computed tokens; at most", most, "are committed");
      require(stream.published <= static_cast<std::int32_t>(stream.keys.size()), "traces", "request", handle,
              "has published more blocks than it has keys");
    }
  }
}

void check_order(const Scheduler& scheduler) {
  std::int64_t last = -1;
  for (const RequestHandle handle : Inside::running(scheduler)) {
    const RequestProgress& request = scheduler.progress(handle);
    require(request.state == RequestState::running, "order", "request", handle, "is among the running ones by mistake");
    require(request.arrival > last, "order", "request", handle, "runs before an older one");
    last = request.arrival;
  }
  std::int64_t waiting = 0;
  RequestHandle before = -1;
  for (RequestHandle handle = Inside::first_waiting(scheduler); handle >= 0;
       handle = scheduler.progress(handle).after) {
    const RequestProgress& request = scheduler.progress(handle);
    const bool waits = request.state == RequestState::waiting || request.state == RequestState::swapped;
    require(waits && request.before == before, "order", "request", handle, "waits by mistake");
    require(request.arrival > last, "order", "request", handle, "waits behind a younger one");
    last = request.arrival;
    before = handle;
    ++waiting;
  }
  require(waiting == scheduler.metrics().num_waiting, "counters", waiting, "requests wait, and the count says",
          scheduler.metrics().num_waiting);
}

void check_counters(const Scheduler& scheduler) {
  const EngineMetrics& metrics = scheduler.metrics();
  const AcceptanceCounts& counts = metrics.acceptance;
  std::int64_t live = 0;
  std::int64_t tokens = metrics.ended_tokens;
  for (const RequestProgress& request : Inside::requests(scheduler)) {
    if (request.state == RequestState::vacant || request.state == RequestState::finished) continue;
    ++live;
    tokens += request.output_len;
  }
  const std::int64_t ended = std::accumulate(metrics.ended.begin(), metrics.ended.end(), std::int64_t{0});
  require(metrics.added == live + ended, "counters", metrics.added, "requests were added;", live, "live and", ended,
          "have ended");
  require(tokens == metrics.generation_tokens(), "counters", "requests received", tokens, "tokens, and the count says",
          metrics.generation_tokens());
  require(metrics.num_running == static_cast<std::int64_t>(Inside::running(scheduler).size()), "counters",
          Inside::running(scheduler).size(), "requests run, and the count says", metrics.num_running);
  require(metrics.blocks_held == scheduler.blocks().num_held(), "counters", scheduler.blocks().num_held(),
          "blocks are held, and the count says", metrics.blocks_held);
  const auto sum = [](const std::vector<std::int64_t>& v) {
    return std::accumulate(v.begin(), v.end(), std::int64_t{0});
  };
  require(sum(counts.accepted) == counts.accepted_tokens, "counters", "by position", sum(counts.accepted),
          "drafts were accepted, and the count says", counts.accepted_tokens);
  require(counts.received_tokens + counts.discarded_tokens == counts.accepted_tokens + counts.steps, "counters",
          counts.received_tokens, "tokens were received and", counts.discarded_tokens, "discarded, of",
          counts.accepted_tokens + counts.steps);
  for (std::size_t j = 0; j < counts.accepted.size(); ++j) {
    const std::int64_t most = j == 0 ? counts.drafts : counts.accepted[j - 1];
    require(counts.accepted[j] <= counts.reached[j] && counts.reached[j] <= most, "counters", "position", j + 1,
            "was reached", counts.reached[j], "times and accepted", counts.accepted[j], "times");
  }
}

void check_starvation(const Scheduler& scheduler) {
  if (!Inside::outstanding(scheduler)) return;
  const auto& running = Inside::running(scheduler);
  require(!running.empty(), "starvation", "request", Inside::first_waiting(scheduler), "waits, and nothing runs");
  const RequestHandle oldest = running.front();
  require(scheduler.options().policy != StepPolicy::one_rule || scheduler.progress(oldest).planned, "starvation",
          "the oldest request", oldest, "is not in the plan");
}

}  // namespace

std::optional<std::string> violated_invariant(const Scheduler& scheduler) {
  try {
    check_blocks(scheduler);
    check_slots(scheduler);
    check_traces(scheduler);
    check_order(scheduler);
    check_counters(scheduler);
    check_starvation(scheduler);
  } catch (const Violation& violation) {
    return violation.text;
  }
  return std::nullopt;
}

}  // namespace draftproof
