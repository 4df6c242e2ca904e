// Every invariant fails on a fault that is planted for it, in schedules that hold without the fault.
#include "tests/engine/scheduler/invariants.hpp"

#include "tests/engine/decode/random_schedule.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

using Inside = SchedulerInspection;
using Pool = KvBlockInspection;

// A running request of the scheduler that `suits`; null where there is none.
RequestProgress* running_request(Scheduler& scheduler, const std::function<bool(const RequestProgress&)>& suits) {
  for (const RequestHandle handle : Inside::running(scheduler)) {
    RequestProgress& request = Inside::requests(scheduler)[handle];
    if (suits(request)) return &request;
  }
  return nullptr;
}
RequestProgress* running_request(Scheduler& scheduler) {
  return running_request(scheduler, [](const RequestProgress& r) { return !r.streams[0].table.blocks.empty(); });
}

// A fault of a running request.
std::function<bool(Scheduler&)> in_running(std::function<void(Scheduler&, RequestProgress&)> change) {
  return [change = std::move(change)](Scheduler& scheduler) {
    RequestProgress* const request = running_request(scheduler);
    if (request != nullptr) change(scheduler, *request);
    return request != nullptr;
  };
}
// A fault of the metrics.
std::function<bool(Scheduler&)> in_metrics(std::function<void(EngineMetrics&)> change) {
  return [change = std::move(change)](Scheduler& scheduler) {
    change(Inside::metrics(scheduler));
    return true;
  };
}

struct Fault {
  const char* name;
  const char* invariant;                  // that must fail
  std::function<bool(Scheduler&)> plant;  // false: there was no occasion
};

const Fault kFaults[] = {
    {"a block leaks", "blocks:",
     [](Scheduler& s) {
       if (s.blocks().num_free() == 0) return false;
       Inside::blocks(s).allocate();
       Inside::metrics(s).blocks_held = s.blocks().num_held();
       return true;
     }},
    {"a block is released twice", "blocks:", in_running([](Scheduler& s, RequestProgress& r) {
       Inside::blocks(s).release(r.streams[0].table.blocks.back());
     })},
    {"a holder is not counted", "blocks:", in_running([](Scheduler& s, RequestProgress& r) {
       ++Pool::blocks(Inside::blocks(s))[r.streams[0].table.blocks.front()].references;
     })},
    {"a free block is in the list twice", "blocks:",
     [](Scheduler& s) {
       auto& blank = Pool::blank(Inside::blocks(s));
       if (blank.empty()) return false;
       blank.push_back(blank.front());
       return true;
     }},
    {"a findable block loses its key", "blocks:",
     [](Scheduler& s) {
       for (auto& block : Pool::blocks(Inside::blocks(s))) {
         if (!block.findable) continue;
         ++block.key;
         return true;
       }
       return false;
     }},
    {"two requests write into one block", "slots:",
     [](Scheduler& s) {
       const auto& running = Inside::running(s);
       if (running.size() < 2) return false;
       auto& first = Inside::requests(s)[running[0]].streams[0].table.blocks;
       auto& second = Inside::requests(s)[running[1]].streams[0].table.blocks;
       if (first.empty() || second.empty() || s.blocks().references(second.back()) > 1) return false;
       Inside::blocks(s).release(second.back());
       Inside::blocks(s).retain(second.back() = first.back());
       Inside::metrics(s).blocks_held = s.blocks().num_held();
       return true;
     }},
    {"a block that is still written is findable", "slots:",
     [](Scheduler& s) {
       RequestProgress* request =
           running_request(s, [](const RequestProgress& r) { return r.streams[0].computed % kKvBlockSlots != 0; });
       if (request == nullptr) return false;
       Inside::blocks(s).publish(request->streams[0].table.blocks.back(), 1);
       return true;
     }},
    {"a rejected draft stays computed", "traces:",
     [](Scheduler& s) {
       RequestProgress* request = running_request(
           s, [](const RequestProgress& r) { return r.decodes() && r.streams[0].computed % kKvBlockSlots != 0; });
       if (request == nullptr) return false;
       ++request->streams[0].computed;
       return true;
     }},
    {"the block of a rejected draft is kept", "traces:",
     [](Scheduler& s) {
       RequestProgress* request = running_request(s);
       if (request == nullptr || s.blocks().num_free() == 0) return false;
       request->streams[0].table.blocks.push_back(Inside::blocks(s).allocate());
       Inside::metrics(s).blocks_held = s.blocks().num_held();
       return true;
     }},
    {"drafts outlive their step", "traces:", in_running([](Scheduler&, RequestProgress& r) { r.planned_drafts = 1; })},
    {"a younger request runs first", "order:",
     [](Scheduler& s) {
       auto& running = Inside::running(s);
       if (running.size() < 2) return false;
       std::swap(running[0], running[1]);
       return true;
     }},
    {"a token is counted twice", "counters:", in_metrics([](EngineMetrics& m) { ++m.acceptance.received_tokens; })},
    {"an accepted draft is counted at no position",
     "counters:", in_metrics([](EngineMetrics& m) { ++m.acceptance.accepted_tokens; })},
    {"an ended request is not counted", "counters:",
     [](Scheduler& s) {
       auto& ended = Inside::metrics(s).ended[static_cast<std::size_t>(RequestEnd::length)];
       if (ended == 0) return false;
       --ended;
       return true;
     }},
    {"waiting requests are miscounted", "counters:", in_metrics([](EngineMetrics& m) { ++m.num_waiting; })},
};

// Plants a fault at the first occasion after a few steps.
PlantedFault planted(const Fault& fault, bool& done) {
  PlantedFault out;
  out.after_commit = [&fault, &done, steps = 0](Scheduler& scheduler) mutable {
    if (++steps > 4 && !done) done = fault.plant(scheduler);
  };
  return out;
}

TEST_CASE("every invariant fails on the faults that are planted for it", "[scheduler][release]") {
  for (const Fault& fault : kFaults) {
    int times = 0;
    for (std::uint64_t seed = 0; times < 10 && seed < 2000; ++seed) {
      bool done = false;
      const ScheduleResult result = run_schedule(random_schedule(seed), planted(fault, done));
      if (!done) continue;
      INFO(fault.name << ", seed " << seed << ": " << result.failure.value_or("nothing was found"));
      REQUIRE(result.failure.has_value());
      CHECK(result.failure->find(std::string("after commit(), ") + fault.invariant) != std::string::npos);
      ++times;
    }
    INFO(fault.name);
    CHECK(times == 10);
  }
}

TEST_CASE("a plan without the oldest request is starvation", "[scheduler]") {
  SchedulerOptions options;
  Scheduler scheduler(options);
  RequestSpec spec;
  spec.prompt_len = 5;
  spec.output_len_max = 3;
  scheduler.add(spec);
  scheduler.add(spec);
  scheduler.plan();
  CHECK_FALSE(violated_invariant(scheduler).has_value());
  Inside::requests(scheduler)[0].planned = false;
  Inside::requests(scheduler)[0].streams[0].computed = 0;
  Inside::requests(scheduler)[0].streams[0].table.trim_to(Inside::blocks(scheduler), 0);
  Inside::metrics(scheduler).blocks_held = scheduler.blocks().num_held();
  CHECK(violated_invariant(scheduler).value_or("") == "starvation: the oldest request 0 is not in the plan");
}

TEST_CASE("KV that is not moved to its place is found by the comparison with plain decoding", "[scheduler][release]") {
  PlantedFault fault;
  fault.moves_are_lost = true;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const ScheduleResult result = run_schedule(random_schedule(seed), fault);
    if (!result.failure) continue;
    INFO("seed " << seed << ": " << *result.failure);
    CHECK(result.failure->find("is not that of plain decoding") != std::string::npos);
    ++found;
  }
  CHECK(found > 30);
}

TEST_CASE("a failing schedule is shrunk to what it takes to fail", "[scheduler]") {
  // A block leaks where a prompt of 20 tokens or more has been computed.
  PlantedFault fault;
  fault.after_commit = [](Scheduler& scheduler) {
    if (running_request(scheduler, [](const RequestProgress& r) {
          return r.streams[0].prompt_len >= 20 && r.streams[0].computed >= 20;
        }) != nullptr)
      Inside::metrics(scheduler).num_running += 7;
  };
  int shrunk = 0;
  for (std::uint64_t seed = 0; shrunk < 5; ++seed) {
    const RandomSchedule schedule = random_schedule(seed);
    if (schedule.requests.size() < 3 || !run_schedule(schedule, fault).failure) continue;
    const RandomSchedule smallest = shrink(schedule, fault);
    INFO(text_of(smallest));
    CHECK(run_schedule(smallest, fault).failure.has_value());
    REQUIRE(smallest.requests.size() == 1);
    CHECK(smallest.requests[0].prompt_len == 20);
    CHECK(smallest.requests[0].companion_len == 0);
    CHECK(smallest.requests[0].arrival_step == 0);
    ++shrunk;
  }
}

}  // namespace
}  // namespace draftproof::testing
