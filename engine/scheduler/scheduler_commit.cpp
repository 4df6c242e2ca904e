// The second half of the scheduler: takes the outcome of a step.
#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "engine/scheduler/scheduler.hpp"

namespace draftproof {

void Scheduler::check(const StepOutcome& outcome) const {
  const auto fail = [](const std::string& what) { throw Error(ErrorKind::internal, "outcome of a step", what); };
  if (!outstanding_) fail("there is no plan that it could be of");
  if (outcome.sequences.size() != plan_.requests.size())
    fail("it has " + std::to_string(outcome.sequences.size()) + " sequences; expected " +
         std::to_string(plan_.requests.size()));
  if (outcome.end_ns < outcome.begin_ns || outcome.begin_ns < metrics_.last_end_ns)
    fail("it goes from " + std::to_string(outcome.begin_ns) + " to " + std::to_string(outcome.end_ns) +
         " ns; expected no time before the end of the last step, " + std::to_string(metrics_.last_end_ns) + " ns");
  for (std::size_t i = 0; i < plan_.requests.size(); ++i) {
    const PlannedRequest& p = plan_.requests[i];
    const SequenceOutcome& o = outcome.sequences[i];
    const bool failed = o.end == SequenceEnd::failed;
    const std::int32_t emitted_max = p.sample && !failed ? o.num_accepted + 1 : 0;
    const std::int32_t emitted_min = o.end == SequenceEnd::stop ? std::min(emitted_max, 1) : emitted_max;
    const bool counts_fit = o.num_drafted >= 0 && o.num_drafted <= p.num_drafts_max && o.num_accepted >= 0 &&
                            o.num_accepted <= std::min(o.num_drafted, p.draft_depth_max) &&
                            o.num_emitted >= emitted_min && o.num_emitted <= emitted_max &&
                            (p.sample || o.end != SequenceEnd::stop);
    if (!counts_fit)
      fail("request " + std::to_string(p.request) + ": " + std::to_string(o.num_drafted) + " drafted, " +
           std::to_string(o.num_accepted) + " accepted, " + std::to_string(o.num_emitted) + " emitted; expected " +
           (p.sample ? "at most " + std::to_string(p.num_drafts_max) + " drafts of depth " +
                           std::to_string(p.draft_depth_max) + ", and one token more than are accepted"
                     : "none of a step that does not sample"));
    if (o.path < 0 || o.num_accepted == 0) continue;
    if (static_cast<std::size_t>(o.path) + static_cast<std::size_t>(o.num_accepted) > outcome.paths.size())
      fail("request " + std::to_string(p.request) + ": its path ends behind the paths");
    for (std::int32_t k = 0, least = 0; k < o.num_accepted; ++k) {
      const std::int32_t node = outcome.paths[o.path + k];
      if (node < least || node >= o.num_drafted)
        fail("request " + std::to_string(p.request) + ": its path has node " + std::to_string(node) +
             "; expected ascending nodes below " + std::to_string(o.num_drafted));
      least = node + 1;
    }
  }
}

std::span<const SlotMove> Scheduler::commit(const StepOutcome& outcome) {
  check(outcome);
  outstanding_ = false;
  moves_.clear();
  const std::size_t finished_before = finished_.size();
  const std::int64_t blocks_held = metrics_.blocks_held;
  for (std::size_t i = 0; i < plan_.requests.size(); ++i)
    commit_request(plan_.requests[i], outcome.sequences[i], outcome);
  if (finished_.size() > finished_before)
    std::erase_if(running_, [&](RequestHandle h) { return requests_[h].state == RequestState::finished; });

  if (metrics_.steps == 0) metrics_.first_begin_ns = outcome.begin_ns;
  const std::int64_t duration_ns = outcome.end_ns - outcome.begin_ns;
  policy_.observe_step(plan_, outcome);
  ++metrics_.steps;
  metrics_.sequence_steps += static_cast<std::int64_t>(plan_.requests.size());
  metrics_.draft_ns += outcome.draft_ns;
  metrics_.verify_ns += outcome.verify_ns;
  metrics_.sample_ns += outcome.sample_ns;
  metrics_.mask_ns += outcome.mask_ns;
  metrics_.busy_ns += duration_ns;
  metrics_.last_end_ns = outcome.end_ns;
  metrics_.num_running = static_cast<std::int64_t>(running_.size());
  metrics_.held_block_ns += static_cast<double>(blocks_held) * static_cast<double>(duration_ns);
  metrics_.blocks_held = blocks_.num_held();
  return moves_;
}

void Scheduler::commit_request(const PlannedRequest& planned, const SequenceOutcome& outcome, const StepOutcome& step) {
  RequestProgress& request = requests_[planned.request];
  request.planned = false;
  count_computed(request, planned);
  if (request.begin_ns < 0) {
    request.begin_ns = step.begin_ns;
    metrics_.queue.observe(step.begin_ns - request.arrival_ns);
  }
  const bool emits = planned.sample && outcome.end != SequenceEnd::failed && !request.cancelled;
  const std::int32_t kept = emits ? outcome.num_accepted : 0;
  std::span<const std::int32_t> path;
  if (outcome.path >= 0) path = std::span(step.paths).subspan(outcome.path, kept);
  for (std::int32_t s = 0; s < request.num_streams; ++s) commit_stream(request, s, outcome, path, kept);
  request.planned_drafts = 0;
  if (emits) {
    request.output_len += outcome.num_emitted;
    policy_.observe(request.speculation, outcome.num_drafted, outcome.num_accepted, outcome.rejected);
    metrics_.count_draft(outcome.num_drafted, outcome.num_accepted);
    metrics_.acceptance.add_step({static_cast<std::size_t>(outcome.num_drafted),
                                  static_cast<std::size_t>(outcome.num_accepted), outcome.rejected,
                                  static_cast<std::size_t>(outcome.num_emitted)});
    ++request.steps;
    request.drafts += outcome.num_drafted > 0 ? 1 : 0;
    request.draft_tokens += outcome.num_drafted;
    request.accepted_tokens += outcome.num_accepted;
    count_times(request, outcome, step);
  }
  RequestEnd end = RequestEnd::none;
  if (request.cancelled)
    end = RequestEnd::cancelled;
  else if (outcome.end == SequenceEnd::failed)
    end = RequestEnd::failed;
  else if (outcome.end == SequenceEnd::stop)
    end = RequestEnd::stop;
  else if (request.output_len >= request.output_len_max)
    end = RequestEnd::length;
  if (end == RequestEnd::none) return;
  if (end == RequestEnd::stop || end == RequestEnd::length) count_end(request);
  finish(planned.request, end);
}

void Scheduler::commit_stream(RequestProgress& request, std::int32_t stream, const SequenceOutcome& outcome,
                              std::span<const std::int32_t> path, std::int32_t kept) {
  StreamProgress& s = request.streams[stream];
  // The slots of the drafts follow that of the last committed token, row 0 of kv_slots.hpp.
  const std::int32_t end = s.computed - request.planned_drafts;
  if (!path.empty()) {
    const StreamContext context{s.table.blocks, end};
    append_path_moves(
        path, [&](std::size_t row) { return context.slot(end - 1 + static_cast<std::int64_t>(row)); }, moves_);
  }
  s.computed = end + kept;
  s.table.trim_to(blocks_, s.computed);
  // A failed request's KV may be wrong.
  if (outcome.end == SequenceEnd::failed) return;
  for (; static_cast<std::size_t>(s.published) < s.keys.size() &&
         (s.published + 1) * static_cast<std::int32_t>(kKvBlockSlots) <= s.computed;
       ++s.published)
    blocks_.publish(s.table.blocks[s.published], s.keys[s.published]);
}

void Scheduler::count_computed(const RequestProgress& request, const PlannedRequest& planned) {
  for (std::int32_t s = 0; s < planned.num_streams; ++s) {
    const StreamProgress& stream = request.streams[s];
    const std::int64_t begin = planned.streams[s].context.length;
    if (begin >= stream.prompt_len && begin >= stream.seen) continue;
    const std::int64_t end = planned.streams[s].end();
    const std::int64_t fresh = std::max<std::int64_t>(begin, stream.seen);
    metrics_.recomputed_tokens += std::min(end, fresh) - begin;
    metrics_.prompt_tokens += std::max<std::int64_t>(std::min<std::int64_t>(end, stream.prompt_len) - fresh, 0);
  }
}

void Scheduler::count_times(RequestProgress& request, const SequenceOutcome& outcome, const StepOutcome& step) {
  if (outcome.num_emitted == 0) return;
  if (request.first_token_ns < 0) {
    request.first_token_ns = step.end_ns;
    metrics_.ttft.observe(step.end_ns - request.arrival_ns);
  } else {
    metrics_.inter_token.observe(step.end_ns - request.last_token_ns);
  }
  request.last_token_ns = step.end_ns;
}

void Scheduler::count_end(const RequestProgress& request) {
  const std::int64_t ttft_ns = request.first_token_ns - request.arrival_ns;
  const std::int64_t tpot_ns =
      request.output_len < 2 ? 0 : (request.last_token_ns - request.first_token_ns) / (request.output_len - 1);
  if (request.output_len > 1) metrics_.tpot.observe(tpot_ns);
  metrics_.e2e.observe(request.last_token_ns - request.arrival_ns);
  const auto within = [](std::int64_t ns, std::int64_t most_ns) { return most_ns == 0 || ns <= most_ns; };
  if (within(ttft_ns, options_.service_level.ttft_ns) && within(tpot_ns, options_.service_level.tpot_ns))
    ++metrics_.ended_within_service_level;
}

}  // namespace draftproof
