#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "engine/scheduler/step_plan.hpp"
#include "tests/engine/decode/random_schedule.hpp"
#include "tests/engine/scheduler/invariants.hpp"
#include "tests/support/test_random.hpp"

namespace draftproof::testing {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
  x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 29);
}

struct Failure {
  std::string text;
};

void require(bool holds, const std::string& text) {
  if (!holds) throw Failure{text};
}

// KV cache that plain decoding would have: entry p depends on all tokens up to p, as real KV does.
class Truth {
 public:
  explicit Truth(const ScheduledRequest& request) : request_(request) {}

  std::int32_t prompt_len(std::int32_t stream) const {
    return stream == 0 ? request_.prompt_len : request_.companion_len;
  }
  std::uint64_t token(std::int32_t stream, std::int64_t position) const {
    if (position >= prompt_len(stream)) return output(position - prompt_len(stream));
    if (request_.group >= 0 && position < request_.shared_len)
      return mix(mix(1, static_cast<std::uint64_t>(request_.group)), static_cast<std::uint64_t>(position));
    return mix(mix(2, static_cast<std::uint64_t>(2 * request_.id + stream)), static_cast<std::uint64_t>(position));
  }
  std::uint64_t output(std::int64_t index) const {
    return mix(mix(3, static_cast<std::uint64_t>(request_.id)), static_cast<std::uint64_t>(index));
  }
  // The entry of a position; of -1 what comes before.
  std::uint64_t entry(std::int32_t stream, std::int64_t position) {
    std::vector<std::uint64_t>& known = entries_[stream];
    if (known.empty()) known.push_back(0);
    while (static_cast<std::int64_t>(known.size()) <= position + 1)
      known.push_back(mix(known.back(), token(stream, static_cast<std::int64_t>(known.size()) - 1)));
    return known[position + 1];
  }
  std::vector<std::uint64_t> keys(std::int32_t stream, std::int64_t first_block, std::int64_t length) {
    std::vector<std::uint64_t> keys;
    for (std::int64_t end = (first_block + 1) * kKvBlockSlots; end <= length; end += kKvBlockSlots)
      keys.push_back(entry(stream, end - 1));
    return keys;
  }

 private:
  ScheduledRequest request_;
  std::array<std::vector<std::uint64_t>, kStreamsMax> entries_;
};

// A request as the recount knows it.
struct Known {
  ScheduledRequest scheduled;
  Truth truth;
  std::int64_t received = 0;
  std::int64_t arrival_ns = 0;
  std::int64_t first_token_ns = -1;
  bool ended = false;
};

class Run final : public Backend {
 public:
  Run(const RandomSchedule& schedule, const PlantedFault& fault)
      : schedule_(schedule),
        fault_(fault),
        random_(mix(schedule.seed, 77)),
        scheduler_(schedule.options, policy_of(schedule)),
        cache_(static_cast<std::size_t>(schedule.options.num_blocks * kKvBlockSlots)),
        swap_(static_cast<std::size_t>(schedule.options.num_swap_blocks * kKvBlockSlots)) {}

  ScheduleResult go() {
    try {
      while (!all_done()) step();
      check_totals();
    } catch (const Failure& failure) {
      result_.failure = "step " + std::to_string(result_.steps) + ": " + failure.text;
    } catch (const Error& error) {
      result_.failure = "step " + std::to_string(result_.steps) + ": " + error.what();
    }
    result_.preemptions = scheduler_.metrics().preemptions;
    result_.swaps = scheduler_.metrics().swapped_blocks;
    result_.prefix_hits = scheduler_.metrics().prefix_hits;
    return result_;
  }

  void run(const StepPlan& plan, StepOutcome& outcome) override {
    require(plan.swap_out.empty() || plan.swap_in.empty(), "blocks are swapped both ways in one step");
    copy_blocks(plan.swap_out, cache_, swap_);
    copy_blocks(plan.swap_in, swap_, cache_);
    outcome = StepOutcome{};
    outcome.begin_ns = now_ns_ += random_.below(1000);
    std::set<std::int64_t> written;
    const auto write = [&](std::int64_t slot, std::uint64_t entry) {
      require(written.insert(slot).second, "slot " + std::to_string(slot) + " is written twice in one step");
      cache_[slot] = entry;
    };
    std::set<std::int64_t> context_slots;
    std::int64_t rows = 0;
    for (const PlannedRequest& planned : plan.requests) {
      Known& known = of(planned.request);
      for (std::int32_t s = 0; s < planned.num_streams; ++s) {
        const StreamContext& context = planned.streams[s].context;
        for (std::int64_t p = 0; p < context.length; ++p) {
          context_slots.insert(context.slot(p));
          require(cache_[context.slot(p)] == known.truth.entry(s, p), "request " + std::to_string(known.scheduled.id) +
                                                                          ": its KV at position " + std::to_string(p) +
                                                                          " is not that of plain decoding");
        }
      }
    }
    for (const PlannedRequest& planned : plan.requests) {
      Known& known = of(planned.request);
      // A failing request may leave anything in its slots.
      const bool fails = planned.sample && is_to_fail(known);
      require(planned.num_streams == (known.scheduled.companion_len > 0 ? 2 : 1), "a companion was left out");
      for (std::int32_t s = 0; s < planned.num_streams; ++s) {
        const PlannedStream& stream = planned.streams[s];
        rows += stream.num_tokens + planned.num_drafts_max;
        for (std::int64_t p = stream.context.length; p < stream.end(); ++p)
          write(stream.context.slot(p), fails ? random_.word() : known.truth.entry(s, p));
        const std::int64_t tokens = known.truth.prompt_len(s) + known.received;
        require((stream.end() == tokens) == planned.sample || planned.num_streams == 2,
                "sample does not fit the chunk");
        require(!planned.sample || stream.end() == tokens, "a row is wanted that is not computed");
        require(stream.end() <= tokens, "tokens are planned that nobody knows");
      }
      outcome.sequences.push_back(planned.sample ? verify(planned, known, outcome, write) : SequenceOutcome{});
    }
    for (const std::int64_t slot : written)
      require(!context_slots.contains(slot), "slot " + std::to_string(slot) + " of a context is written");
    require(rows <= schedule_.options.token_budget, std::to_string(rows) + " rows are more than the budget");
    require(plan.requests.size() <= static_cast<std::size_t>(schedule_.options.running_max), "too many requests run");
    outcome.end_ns = now_ns_ += 1 + random_.below(100'000);
  }

  void move(std::span<const SlotMove> moves) override {
    if (fault_.moves_are_lost) return;
    for (const SlotMove& move : moves) cache_[move.to] = cache_[move.from];
    result_.moves += static_cast<std::int64_t>(moves.size());
  }

 private:
  static SpeculationPolicy policy_of(const RandomSchedule& schedule) {
    auto cost = std::make_shared<LinearCost>();
    cost->fixed_ns = 1000.0;
    cost->row_ns = 20.0;
    cost->draft_pass_ns = 50.0;
    return SpeculationPolicy(parse_speculation(schedule.speculation, "schedule"), cost);
  }

  static void copy_blocks(const std::vector<BlockCopy>& copies, const std::vector<std::uint64_t>& from,
                          std::vector<std::uint64_t>& to) {
    for (const BlockCopy& copy : copies)
      for (std::int64_t i = 0; i < kKvBlockSlots; ++i)
        to[copy.to * kKvBlockSlots + i] = from[copy.from * kKvBlockSlots + i];
  }

  static bool is_to_fail(const Known& known) {
    return known.scheduled.fail_after >= 0 && known.received >= known.scheduled.fail_after;
  }

  Known& of(RequestHandle handle) { return *by_handle_.at(handle); }

  // Drafts a random chain or tree and accepts a random path of it. Accepted nodes have the tokens of plain decoding.
  template <class Write>
  SequenceOutcome verify(const PlannedRequest& planned, Known& known, StepOutcome& outcome, Write write) {
    SequenceOutcome o;
    const ScheduledRequest& scheduled = known.scheduled;
    if (is_to_fail(known)) {
      o.end = SequenceEnd::failed;
      return o;
    }
    require(planned.num_drafts_max <= scheduled.num_drafts_max, "a request drafts more than it may");
    o.num_drafted = static_cast<std::int32_t>(random_.below(planned.num_drafts_max + 1));
    std::vector<std::int32_t> parents;
    std::vector<std::int32_t> depths;
    for (std::int32_t i = 0; i < o.num_drafted; ++i) {
      std::int32_t parent = i - 1;
      if (scheduled.trees) {
        parent = static_cast<std::int32_t>(random_.below(i + 1)) - 1;
        while (parent >= 0 && depths[parent] >= planned.draft_depth_max) parent = parents[parent];
      }
      parents.push_back(parent);
      depths.push_back(parent < 0 ? 1 : depths[parent] + 1);
    }
    require(scheduled.trees || o.num_drafted <= planned.draft_depth_max, "a chain is longer than its depth");
    std::vector<std::int32_t> path;
    for (;;) {
      std::vector<std::int32_t> children;
      for (std::int32_t i = 0; i < o.num_drafted; ++i)
        if (parents[i] == (path.empty() ? -1 : path.back())) children.push_back(i);
      o.rejected = !children.empty();
      if (children.empty() || random_.chance(0.3)) break;
      path.push_back(children[random_.below(static_cast<std::int64_t>(children.size()))]);
    }
    o.num_accepted = static_cast<std::int32_t>(path.size());
    if (scheduled.trees || random_.chance(0.1)) {
      o.path = static_cast<std::int32_t>(outcome.paths.size());
      outcome.paths.insert(outcome.paths.end(), path.begin(), path.end());
    }
    for (std::int32_t s = 0; s < planned.num_streams; ++s) {
      std::vector<std::uint64_t> entries;
      for (std::int32_t i = 0; i < o.num_drafted; ++i) {
        const bool accepted = std::ranges::find(path, i) != path.end();
        const std::uint64_t token =
            accepted ? known.truth.output(known.received + depths[i] - 1) : mix(4, random_.word());
        const std::uint64_t before =
            parents[i] < 0 ? known.truth.entry(s, planned.streams[s].end() - 1) : entries[parents[i]];
        entries.push_back(mix(before, token));
        write(planned.streams[s].draft_slot(i), entries.back());
      }
    }
    o.num_emitted = o.num_accepted + 1;
    if (scheduled.stop_after > 0 && known.received + o.num_emitted >= scheduled.stop_after) {
      o.num_emitted = static_cast<std::int32_t>(scheduled.stop_after - known.received);
      o.end = SequenceEnd::stop;
    }
    ++steps_;
    drafts_ += o.num_drafted > 0;
    drafted_ += o.num_drafted;
    for (std::int32_t j = 0; j < o.num_accepted; ++j) ++accepted_at_[j];
    result_.rejected += o.rejected;
    return o;
  }

  void arrive() {
    for (const ScheduledRequest& scheduled : schedule_.requests) {
      if (scheduled.arrival_step != result_.steps) continue;
      Known& known = known_.emplace(scheduled.id, Known{scheduled, Truth(scheduled)}).first->second;
      known.arrival_ns = now_ns_;
      RequestSpec spec;
      spec.prompt_len = scheduled.prompt_len;
      if (scheduled.companion_len > 0) spec.companion_prompt_len = scheduled.companion_len;
      spec.output_len_max = scheduled.output_len_max;
      spec.arrival_ns = now_ns_;
      spec.num_drafts_max = scheduled.num_drafts_max;
      spec.draft_trees = scheduled.trees;
      const auto keys = known.truth.keys(0, 0, scheduled.prompt_len);
      const auto companion_keys = known.truth.keys(1, 0, scheduled.companion_len);
      if (scheduled.group >= 0) spec.block_keys = keys;
      if (scheduled.group >= 0) spec.companion_block_keys = companion_keys;
      try {
        by_handle_[scheduler_.add(spec)] = &known;
      } catch (const Error&) {
        known.ended = true;
        ++result_.refused;
      }
    }
  }

  void cancel_some() {
    for (const auto& [handle, known] : std::map(by_handle_))
      if (known->scheduled.cancel_step == result_.steps && !known->ended) {
        require(scheduler_.cancel(handle), "a live request cannot be cancelled");
        ++result_.cancelled;
      }
  }

  void take_finished() {
    for (const RequestHandle handle : scheduler_.finished()) {
      const auto found = by_handle_.find(handle);
      if (found == by_handle_.end()) continue;
      Known& known = *found->second;
      const RequestProgress& progress = scheduler_.progress(handle);
      known.ended = true;
      ++ended_[progress.end];
      require(progress.output_len == known.received, "a request ended with another number of tokens than it received");
      const ScheduledRequest& r = known.scheduled;
      const std::int64_t room = schedule_.options.context_len_max - std::max(r.prompt_len, r.companion_len);
      const std::int64_t length = std::min<std::int64_t>(r.output_len_max, room);
      if (progress.end == RequestEnd::length) require(known.received == length, "it ended by length too early");
      if (progress.end == RequestEnd::stop) require(known.received == r.stop_after, "it stopped elsewhere");
      by_handle_.erase(found);
    }
  }

  void check(const char* when) {
    if (const auto violation = violated_invariant(scheduler_)) throw Failure{std::string(when) + ", " + *violation};
    // Block by block, from what every caller can see.
    std::map<std::int32_t, std::int32_t> held;
    for (const auto& [handle, known] : by_handle_)
      for (const StreamProgress& stream : scheduler_.progress(handle).streams)
        for (const std::int32_t block : stream.table.blocks) ++held[block];
    for (std::int32_t block = 0; block < schedule_.options.num_blocks; ++block)
      require(scheduler_.blocks().references(block) == (held.contains(block) ? held[block] : 0),
              std::string(when) + ", block " + std::to_string(block) + " has another number of holders than tables");
    require(scheduler_.blocks().num_held() == static_cast<std::int32_t>(held.size()),
            std::string(when) + ", the number of held blocks is another");
  }

  // Under the two-phase policy: prompts, a step of the other kind, prompts again, and its own.
  void check_patience(const StepPlan& plan) {
    if (plan.empty()) return;
    const auto arrival = [&](const auto& entry) { return scheduler_.progress(entry.first).arrival; };
    const RequestHandle oldest = std::ranges::min_element(by_handle_, {}, arrival)->first;
    const bool planned = std::ranges::any_of(plan.requests, [&](const auto& p) { return p.request == oldest; });
    waited_ = planned || oldest != oldest_ ? 0 : waited_ + 1;
    oldest_ = oldest;
    require(waited_ <= 2 * (schedule_.options.prefill_steps_max + 1), "the oldest request starves");
  }

  bool all_done() const {
    const bool arrived = std::ranges::all_of(schedule_.requests,
                                             [&](const ScheduledRequest& r) { return r.arrival_step < result_.steps; });
    return arrived && scheduler_.idle();
  }

  void step() {
    // The oldest request advances in every step, or in one of a few.
    std::int64_t most = 0;
    for (const ScheduledRequest& r : schedule_.requests) most += r.prompt_len + r.companion_len + 2 * r.output_len_max;
    if (schedule_.options.policy == StepPolicy::two_phase) most *= 2 * (schedule_.options.prefill_steps_max + 1);
    for (const ScheduledRequest& r : schedule_.requests) most += r.arrival_step + 1;
    require(result_.steps < most, "the requests do not end within " + std::to_string(most) + " steps");
    arrive();
    const bool cancel_before = random_.chance(0.5);
    if (cancel_before) cancel_some();
    take_finished();
    std::set<RequestHandle> ran;
    for (const auto& [handle, known] : by_handle_)
      if (scheduler_.progress(handle).state == RequestState::running) ran.insert(handle);
    const std::int64_t preemptions = scheduler_.metrics().preemptions;
    const StepPlan& plan = scheduler_.plan();
    check("after plan()");
    for (const PlannedRequest& planned : plan.requests)
      require(scheduler_.metrics().preemptions == preemptions || ran.contains(planned.request),
              "a request is admitted in a step that preempts another");
    require(!plan.empty() || scheduler_.idle(), "the plan is empty, and requests wait");
    check_patience(plan);
    if (!cancel_before) cancel_some();
    if (!plan.empty()) {
      StepOutcome outcome;
      run(plan, outcome);
      const std::vector<PlannedRequest> planned = plan.requests;
      move(scheduler_.commit(outcome));
      for (std::size_t i = 0; i < planned.size(); ++i) take(planned[i], outcome.sequences[i], outcome.end_ns);
    }
    take_finished();
    if (fault_.after_commit) fault_.after_commit(scheduler_);
    check("after commit()");
    publish_output();
    ++result_.steps;
  }

  void take(const PlannedRequest& planned, const SequenceOutcome& o, std::int64_t end_ns) {
    Known& known = of(planned.request);
    const bool cancelled = scheduler_.progress(planned.request).end == RequestEnd::cancelled;
    if (cancelled || o.num_emitted == 0) {
      if (planned.sample && o.end != SequenceEnd::failed) {  // what verify() counted is lost
        --steps_;
        drafts_ -= o.num_drafted > 0;
        drafted_ -= o.num_drafted;
        for (std::int32_t j = 0; j < o.num_accepted; ++j) --accepted_at_[j];
      }
      return;
    }
    if (known.received == 0) {
      known.first_token_ns = end_ns;
      ttft_ns_ += end_ns - known.arrival_ns;
    }
    known.received += o.num_emitted;
    received_ += o.num_emitted;
  }

  // Sometimes the blocks of the output are shared too.
  void publish_output() {
    for (const auto& [handle, known] : by_handle_) {
      const RequestProgress& progress = scheduler_.progress(handle);
      if (known->scheduled.group < 0 || !random_.chance(0.2)) continue;
      for (std::int32_t s = 0; s < progress.num_streams; ++s)
        scheduler_.append_block_keys(
            handle, s,
            known->truth.keys(s, static_cast<std::int64_t>(progress.streams[s].keys.size()), progress.tokens(s)));
    }
  }

  void check_totals() {
    const EngineMetrics& metrics = scheduler_.metrics();
    for (const auto& [id, known] : known_) require(known.ended, "request " + std::to_string(id) + " never ended");
    require(metrics.blocks_held == 0 && scheduler_.blocks().num_held() == 0, "blocks are held by nobody");
    require(metrics.acceptance.steps == steps_, "metrics: steps");
    require(metrics.acceptance.drafts == drafts_, "metrics: drafts");
    require(metrics.acceptance.draft_tokens == drafted_, "metrics: draft tokens");
    require(metrics.generation_tokens() == received_, "metrics: generation tokens");
    std::int64_t accepted = 0;
    for (const auto& [depth, count] : accepted_at_) {
      accepted += count;
      require(count == 0 || metrics.acceptance.accepted.at(depth) == count, "metrics: accepted by position");
    }
    require(metrics.acceptance.accepted_tokens == accepted, "metrics: accepted tokens");
    require(metrics.ttft.sum_ns() == ttft_ns_, "metrics: time to first token");
    for (const auto& [end, count] : ended_)
      require(metrics.ended[static_cast<std::size_t>(end)] == count, "metrics: ended requests");
  }

  RandomSchedule schedule_;
  PlantedFault fault_;
  TestRandom random_;
  Scheduler scheduler_;
  std::vector<std::uint64_t> cache_;
  std::vector<std::uint64_t> swap_;
  std::map<std::int32_t, Known> known_;  // by id
  std::map<RequestHandle, Known*> by_handle_;
  RequestHandle oldest_ = -1;
  std::int64_t waited_ = 0;  // steps since it is the oldest
  std::int64_t now_ns_ = 0;
  std::int64_t steps_ = 0, drafts_ = 0, drafted_ = 0, received_ = 0, ttft_ns_ = 0;
  std::map<std::int32_t, std::int64_t> accepted_at_;
  std::map<RequestEnd, std::int64_t> ended_;
  ScheduleResult result_;
};

}  // namespace

ScheduleResult run_schedule(const RandomSchedule& schedule, const PlantedFault& fault) {
  return Run(schedule, fault).go();
}

}  // namespace draftproof::testing
