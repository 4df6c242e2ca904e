#include "studies/serving/timeline_recorder.hpp"

#include <algorithm>
#include <cmath>

namespace draftproof {
namespace {

// Rows of the target's pass by what they are for.
struct PassRows {
  std::int64_t prefill = 0, verify = 0, normal = 0;
  std::int64_t drafts = 0, accepted = 0;  // slots of drafts, over all streams

  std::int64_t all() const { return prefill + verify + normal; }
};

PassRows rows_of(const StepPlan& plan, const StepOutcome& outcome) {
  PassRows rows;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const PlannedRequest& planned = plan.requests[i];
    const SequenceOutcome& sequence = outcome.sequences[i];
    for (std::int32_t s = 0; s < planned.num_streams; ++s) {
      const std::int64_t tokens = planned.streams[static_cast<std::size_t>(s)].num_tokens;
      // The last committed token has the row that is sampled from; those before it are a prompt's, or computed again.
      rows.prefill += planned.sample ? tokens - 1 : tokens;
      if (!planned.sample) continue;
      (sequence.num_drafted > 0 ? rows.verify : rows.normal) += 1 + sequence.num_drafted;
      rows.drafts += sequence.num_drafted;
      rows.accepted += sequence.num_accepted;
    }
  }
  return rows;
}

std::int64_t share_of(std::int64_t ns, std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0
                    : std::llround(static_cast<double>(ns) * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::vector<const RequestLane*> PolicyTimeline::requests_between(std::int64_t from_ns, std::int64_t to_ns,
                                                                 std::size_t most) const {
  constexpr std::ptrdiff_t kLookedAt = 20'000;  // in one frame
  const auto first = std::ranges::partition_point(
      requests, [&](const RequestLane& lane) { return lane.arrival_ns < from_ns - longest_ns; });
  const auto last =
      std::partition_point(first, requests.end(), [&](const RequestLane& lane) { return lane.arrival_ns <= to_ns; });
  const std::ptrdiff_t stride = 1 + (last - first) / kLookedAt;
  std::vector<const RequestLane*> found;
  for (std::ptrdiff_t i = 0; i < last - first; i += stride)
    if (first[i].last_token_ns >= from_ns) found.push_back(&first[i]);
  if (found.size() <= most) return found;
  std::vector<const RequestLane*> spread;
  for (std::size_t i = 0; i < most; ++i) spread.push_back(found[i * found.size() / most]);
  return spread;
}

void TimelineRecorder::on_step(const StepPlan& plan, const StepOutcome& outcome, const Scheduler& scheduler,
                               const SimulatedBackend& backend) {
  job_.check();
  if (static_cast<std::int64_t>(timeline_.steps.steps().size()) >= kTimelineStepsMax) return;
  const PassRows rows = rows_of(plan, outcome);
  StepBox box;
  box.begin_ns = outcome.begin_ns;
  box.end_ns = outcome.end_ns;
  const auto set = [&](StepPart part, std::int64_t ns) { box.part_ns[static_cast<std::size_t>(part)] = ns; };
  const std::int64_t prefill_ns = share_of(outcome.verify_ns, rows.prefill, rows.all());
  const std::int64_t verify_ns = share_of(outcome.verify_ns, rows.verify, rows.all());
  set(StepPart::draft, outcome.draft_ns);
  set(StepPart::prefill, prefill_ns);
  set(StepPart::verify, verify_ns);
  set(StepPart::normal, outcome.verify_ns - prefill_ns - verify_ns);
  set(StepPart::engine, outcome.end_ns - outcome.begin_ns - outcome.draft_ns - outcome.verify_ns);
  box.first_step = plan.step;
  box.running_max = static_cast<std::int32_t>(plan.requests.size());
  box.waiting_max = static_cast<std::int32_t>(scheduler.metrics().num_waiting);
  for (const SequenceOutcome& sequence : outcome.sequences) {
    box.drafted += sequence.num_drafted;
    box.accepted += sequence.num_accepted;
    box.emitted += sequence.num_emitted;
  }
  box.prompt_tokens = rows.prefill;
  const auto duration = static_cast<double>(outcome.end_ns - outcome.begin_ns);
  box.held_slot_ns = static_cast<double>(backend.held_slots()) * duration;
  box.committed_slot_ns = static_cast<double>(backend.committed_kv_tokens()) * duration;
  box.accepted_slot_ns = static_cast<double>(rows.accepted) * duration;
  box.rejected_slot_ns = static_cast<double>(rows.drafts - rows.accepted) * duration;
  timeline_.steps.add(box);
}

void TimelineRecorder::on_end(std::uint64_t request, const RequestProgress& progress) {
  if (++ended_ % 16 == 0)
    job_.report(static_cast<double>(ended_) / static_cast<double>(requests_), "serving, policy " + timeline_.policy);
  if (timeline_.requests.size() >= kTimelineRequestsMax) return;
  timeline_.requests.push_back({request, progress.arrival_ns, progress.begin_ns, progress.first_token_ns,
                                progress.last_token_ns, progress.streams[0].prompt_len, progress.output_len,
                                progress.draft_tokens, progress.accepted_tokens, progress.preemptions});
}

PolicyTimeline TimelineRecorder::take() {
  std::ranges::sort(timeline_.requests, {}, &RequestLane::number);
  for (const RequestLane& lane : timeline_.requests)
    timeline_.longest_ns = std::max(timeline_.longest_ns, lane.last_token_ns - lane.arrival_ns);
  return std::move(timeline_);
}

}  // namespace draftproof
