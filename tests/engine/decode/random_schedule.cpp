#include "tests/engine/decode/random_schedule.hpp"

#include <sstream>
#include <utility>

#include "tests/support/test_random.hpp"

namespace draftproof::testing {
namespace {

template <class T>
T one_of(TestRandom& random, std::initializer_list<T> values) {
  return values.begin()[random.below(static_cast<std::int64_t>(values.size()))];
}

}  // namespace

RandomSchedule random_schedule(std::uint64_t seed) {
  TestRandom random(seed);
  const auto from_to = [&](std::int64_t least, std::int64_t most) {
    return static_cast<std::int32_t>(least + random.below(most - least + 1));
  };
  RandomSchedule schedule;
  schedule.seed = seed;
  SchedulerOptions& options = schedule.options;
  options.context_len_max = from_to(20, 160);
  // Most caches hold one or two requests whole, and more than that begin.
  options.num_blocks = random.chance(0.8) ? blocks_for(options.context_len_max) + from_to(0, 6) : from_to(2, 40);
  options.token_budget = one_of<std::int32_t>(random, {1, 2, 3, 5, 17, 64, 400});
  options.running_max = one_of<std::int32_t>(random, {1, 2, 3, 8, 100});
  if (random.chance(0.1)) options.waiting_max = from_to(1, 4);
  options.chunked_prefill = random.chance(0.9);
  if (random.chance(0.3)) options.prefill_chunk_max = from_to(1, 40);
  options.drafts_with_prefill = random.chance(0.5);
  if (random.chance(0.25)) options.policy = StepPolicy::two_phase;
  options.prefill_steps_max = one_of<std::int32_t>(random, {1, 3, 16});
  if (random.chance(0.4)) {
    options.preemption = Preemption::swap;
    options.num_swap_blocks = from_to(0, 30);
  }
  if (random.chance(0.2)) options.admission_reserve_blocks = from_to(1, 4);
  schedule.speculation = one_of<const char*>(
      random, {"off", "fixed:1", "fixed:5", "fixed:12", "threshold", "threshold:min=1,max=3,start=2",
               "schedule:1=6,2=3,4=0", "goodput:max=6,probe=2", "tree:nodes=9,budget=24"});
  const std::int32_t count = from_to(1, 8);
  const bool trees = random.chance(0.5);
  for (std::int32_t id = 0; id < count; ++id) {
    ScheduledRequest r;
    r.id = id;
    r.arrival_step = random.chance(0.5) ? 0 : from_to(0, 30);
    r.prompt_len = from_to(1, random.chance(0.05) ? options.context_len_max + 5 : options.context_len_max / 2);
    if (random.chance(0.25)) r.companion_len = from_to(1, options.context_len_max / 2);
    r.output_len_max = from_to(1, random.chance(0.5) ? options.context_len_max : 30);
    if (random.chance(0.5)) {
      r.group = from_to(0, 1);
      r.shared_len = from_to(0, 80);
    }
    if (random.chance(0.2)) r.stop_after = from_to(1, r.output_len_max);
    if (random.chance(0.15)) r.cancel_step = r.arrival_step + from_to(0, 25);
    if (random.chance(0.1)) r.fail_after = from_to(0, random.chance(0.5) ? 0 : 10);
    if (random.chance(0.2)) r.num_drafts_max = from_to(0, 3);
    r.trees = trees && random.chance(0.8);
    schedule.requests.push_back(r);
  }
  return schedule;
}

RandomSchedule shrink(RandomSchedule schedule, const PlantedFault& fault) {
  const auto fails = [&](const RandomSchedule& s) { return run_schedule(s, fault).failure.has_value(); };
  for (bool smaller = true; smaller;) {
    smaller = false;
    const auto keep_if_fails = [&](const RandomSchedule& candidate) {
      if (!fails(candidate)) return false;
      schedule = candidate;
      return smaller = true;
    };
    for (std::size_t i = 0; i < schedule.requests.size();) {
      RandomSchedule fewer = schedule;
      fewer.requests.erase(fewer.requests.begin() + static_cast<std::ptrdiff_t>(i));
      if (!keep_if_fails(fewer)) ++i;
    }
    using R = ScheduledRequest;
    constexpr std::pair<std::int32_t R::*, std::int32_t> kShorter[] = {
        {&R::prompt_len, 1},   {&R::companion_len, 0}, {&R::output_len_max, 1}, {&R::arrival_step, 0},
        {&R::cancel_step, -1}, {&R::stop_after, 0},    {&R::shared_len, 0},     {&R::num_drafts_max, 0}};
    for (std::size_t i = 0; i < schedule.requests.size(); ++i) {
      for (const auto& [member, least] : kShorter) {
        for (std::int32_t cut = schedule.requests[i].*member - least; cut > 0; cut /= 2) {
          RandomSchedule shorter = schedule;
          std::int32_t& value = shorter.requests[i].*member;
          if (value - cut < least) continue;
          value -= cut;
          keep_if_fails(shorter);
        }
      }
    }
  }
  return schedule;
}

std::string text_of(const RandomSchedule& schedule) {
  std::ostringstream out;
  const SchedulerOptions& o = schedule.options;
  out << "seed " << schedule.seed << ": num_blocks " << o.num_blocks << ", context_len_max " << o.context_len_max
      << ", token_budget " << o.token_budget << ", running_max " << o.running_max << ", waiting_max " << o.waiting_max
      << ", chunked " << o.chunked_prefill << ", chunk_max " << o.prefill_chunk_max << ", drafts_with_prefill "
      << o.drafts_with_prefill << ", two_phase " << (o.policy == StepPolicy::two_phase) << " (" << o.prefill_steps_max
      << ")"
      << ", swap " << (o.preemption == Preemption::swap) << " (" << o.num_swap_blocks << "), reserve "
      << o.admission_reserve_blocks << ", " << schedule.speculation << '\n';
  for (const ScheduledRequest& r : schedule.requests)
    out << "  request " << r.id << ": arrival_step " << r.arrival_step << ", prompt " << r.prompt_len << ", companion "
        << r.companion_len << ", output " << r.output_len_max << ", group " << r.group << " (" << r.shared_len
        << "), stop_after " << r.stop_after << ", cancel_step " << r.cancel_step << ", fail_after " << r.fail_after
        << ", drafts " << r.num_drafts_max << ", trees " << r.trees << '\n';
  return out.str();
}

}  // namespace draftproof::testing
