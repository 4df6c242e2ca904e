#include "studies/serving/serving_timeline.hpp"

#include <thread>

#include "tests/support/test.hpp"

namespace {

std::vector<ServingTimelineSnapshot> snapshots_of(const ServingTimelineSettings& settings) {
  Job job;
  std::vector<ServingTimelineSnapshot> all;
  compute(settings, job, [&](ServingTimelineSnapshot snapshot) { all.push_back(std::move(snapshot)); });
  REQUIRE_FALSE(all.empty());
  return all;
}

ServingTimelineSettings small() {
  ServingTimelineSettings settings;
  settings.requests = 60;
  settings.loads = {8, 32};
  return settings;
}

// Without what differs between runs.
ordered_json comparable(ordered_json document) {
  document = without_envelope(std::move(document));
  const auto without_time = [](ordered_json& policies) {
    for (ordered_json& policy : policies) policy.erase("wall_s");
  };
  without_time(document.at("policies"));
  for (ordered_json& point : document.at("load")) without_time(point.at("policies"));
  return document;
}

ordered_json printed_by(const ServingTimelineSettings& settings, const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = command_arguments(settings);
  command.insert(command.end(), more.begin(), more.end());
  return testing::printed_by(command);
}

}  // namespace

TEST_CASE("the serving panel shows the numbers that its command prints, and its steps are those of the trace") {
  const ServingTimelineSettings settings = small();
  const std::vector<ServingTimelineSnapshot> all = snapshots_of(settings);
  CHECK(all.size() == 1 + settings.loads.size());
  const ServingTimelineSnapshot& snapshot = all.back();
  const TemporaryFolder folder;
  const ordered_json printed = printed_by(settings, {"--out", folder.file("out")});
  CHECK(comparable(to_json(snapshot)) == comparable(printed));
  CHECK(snapshot.loads.size() == 2);

  REQUIRE(snapshot.upper() != nullptr);
  REQUIRE(snapshot.lower() != nullptr);
  CHECK(snapshot.upper()->policy == "off");
  CHECK(snapshot.lower()->policy == "k3");
  std::ifstream file(folder.file("out/steps.k3.json"));
  const ordered_json trace = ordered_json::parse(file);
  std::size_t number = 0;
  for (const ordered_json& event : trace.at("traceEvents")) {
    if (event.at("name") == "step") ++number;
    if (number == 0 || event.at("ph") != "X") continue;
    const StepBox& box = snapshot.lower()->steps.steps()[number - 1];
    const auto ns = std::llround(event.at("dur").get<double>() * 1e3);
    if (event.at("name") == "step") {
      CHECK(box.begin_ns == std::llround(event.at("ts").get<double>() * 1e3));
      CHECK(box.drafted == event.at("args").at("drafted").get<std::int64_t>());
      CHECK(box.accepted == event.at("args").at("accepted").get<std::int64_t>());
      CHECK(box.emitted == event.at("args").at("emitted").get<std::int64_t>());
      CHECK(box.running_max == event.at("args").at("requests").get<std::int64_t>());
    } else if (event.at("name") == "draft") {
      CHECK(box.part_ns[0] == ns);
    } else if (event.at("name") == "target") {
      CHECK(box.part_ns[1] + box.part_ns[2] + box.part_ns[3] == ns);
    }
  }
  CHECK(number == snapshot.lower()->steps.steps().size());
  CHECK(snapshot.lower()->requests.size() == 60);
  for (const RequestLane& lane : snapshot.lower()->requests) {
    CHECK(lane.arrival_ns <= lane.begin_ns);
    CHECK(lane.begin_ns < lane.first_token_ns);
    CHECK(lane.first_token_ns <= lane.last_token_ns);
  }
  CHECK(to_table(snapshot).rows.size() ==
        snapshot.upper()->steps.steps().size() + snapshot.lower()->steps.steps().size());
  for (std::size_t p = 0; p < snapshot.reports.size(); ++p) {
    PlottedRows points;
    for (const LoadPoint& point : snapshot.loads) {
      std::vector<double>& row = points.emplace_back(1, point.load);
      for (const Figure figure : {Figure::ttft_p50, Figure::tpot_p50, Figure::goodput})
        row.push_back(point.policies[p].figure(figure).mean);
    }
    check_plotted(to_figure(snapshot), "policy" + std::to_string(p), points);
  }
}

TEST_CASE("a timeline accounts for every nanosecond, slot and token of its steps") {
  const std::vector<ServingTimelineSnapshot> all = snapshots_of(small());
  const PolicyTimeline& off = *all.front().upper();
  const PolicyTimeline& k3 = *all.front().lower();
  std::int64_t emitted = 0;
  for (const StepBox& box : k3.steps.steps()) {
    CHECK(box.busy_ns() == box.end_ns - box.begin_ns);
    CHECK(box.committed_slot_ns + box.accepted_slot_ns + box.rejected_slot_ns <= box.held_slot_ns);
    emitted += box.emitted;
  }
  std::int64_t received = 0;
  std::int64_t prompts = 0;
  for (const RequestLane& lane : k3.requests) {
    received += lane.output_len;
    prompts += lane.prompt_len;
  }
  CHECK(emitted >= received);  // what is behind the end of an output is emitted and not received
  std::int64_t prefill_rows = 0;
  for (const StepBox& box : off.steps.steps()) {
    CHECK(box.drafted == 0);
    CHECK(box.part_ns[0] == 0);
    CHECK(box.part_ns[2] == 0);
    CHECK(box.rejected_slot_ns == 0.0);
    prefill_rows += box.prompt_tokens;
  }
  // A prompt's last token has the row that is sampled from.
  CHECK(prefill_rows == prompts - 60);
}

TEST_CASE("requests of a stretch of time are those in the system then, or as many of them as are wanted") {
  PolicyTimeline timeline;
  timeline.longest_ns = 50;
  for (std::int64_t i = 0; i < 1000; ++i) {
    RequestLane lane;
    lane.number = static_cast<std::uint64_t>(i);
    lane.arrival_ns = 10 * i;
    lane.last_token_ns = 10 * i + (i % 2 == 0 ? 50 : 5);
    timeline.requests.push_back(lane);
  }
  const auto found = timeline.requests_between(1002, 1012, 100);
  std::vector<std::uint64_t> numbers;
  for (const RequestLane* lane : found) numbers.push_back(lane->number);
  CHECK(numbers == std::vector<std::uint64_t>{96, 98, 100, 101});
  const auto some = timeline.requests_between(0, 10'000, 10);
  REQUIRE(some.size() == 10);
  CHECK(some.front()->number == 0);
  CHECK(some.back()->number == 900);
  CHECK(PolicyTimeline().requests_between(0, 10, 5).empty());
}

TEST_CASE("levels of steps hold the same time and tokens, and any stretch needs a bounded number of boxes") {
  StepLevels levels;
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 100'000; ++i) {
    StepBox box;
    box.begin_ns = now;
    box.part_ns = {i % 3, i % 5, 2, 1, 1};
    now += box.busy_ns();
    box.end_ns = now;
    box.first_step = i;
    box.running_max = static_cast<std::int32_t>(i % 97);
    box.drafted = i % 7;
    box.held_slot_ns = static_cast<double>(i);
    levels.add(box);
    now += i % 2;  // idle
  }
  REQUIRE(levels.steps().size() == 100'000);
  for (const std::size_t most : {std::size_t{2'000}, std::size_t{500}, std::size_t{10}}) {
    const auto boxes = levels.visible(0, levels.end_ns(), most);
    CHECK(boxes.size() <= most);
    CHECK(boxes.size() > most / 5);
    std::int64_t steps = 0, busy = 0, drafted = 0, last_end = 0;
    double held = 0.0;
    for (const StepBox& box : boxes) {
      CHECK(box.begin_ns >= last_end);
      CHECK(box.first_step == steps);
      last_end = box.end_ns;
      steps += box.steps;
      busy += box.busy_ns();
      drafted += box.drafted;
      held += box.held_slot_ns;
    }
    CHECK(steps == 100'000);
    CHECK(last_end == levels.end_ns());
    std::int64_t busy_of_steps = 0, drafted_of_steps = 0;
    double held_of_steps = 0.0;
    for (const StepBox& box : levels.steps()) {
      busy_of_steps += box.busy_ns();
      drafted_of_steps += box.drafted;
      held_of_steps += box.held_slot_ns;
    }
    CHECK(busy == busy_of_steps);
    CHECK(drafted == drafted_of_steps);
    CHECK(held == Approx(held_of_steps));
  }
  // A short stretch shows single steps, with both that it cuts.
  const StepBox& some = levels.steps()[5'000];
  const auto near = levels.visible(some.begin_ns + 1, some.end_ns - 1, 100);
  REQUIRE(near.size() == 1);
  CHECK(near[0].first_step == 5'000);
  CHECK(StepLevels().visible(0, 10, 5).empty());
}

TEST_CASE("the serving panel takes other loads, policies and seeds as its command does") {
  ServingTimelineSettings settings = small();
  settings.load = 20;
  settings.seed = 7;
  settings.loads.clear();
  settings.upper = "goodput";
  const ServingTimelineSnapshot snapshot = snapshots_of(settings).back();
  CHECK(snapshot.upper()->policy == "goodput");
  CHECK(snapshot.scenario.workload.arrivals.rate == 20.0);
  const ordered_json printed = printed_by(settings);
  CHECK(comparable(to_json(snapshot)) == comparable(printed));
  ServingTimelineSettings opened = settings_of_simulation(printed, "test");
  CHECK(opened.requests == 0);
  CHECK(comparable(printed_by(opened)) == comparable(printed));
}

TEST_CASE("closed arrivals take requests at a time for their load, and a static batch has no timeline") {
  const TemporaryFolder folder;
  ServingTimelineSettings settings = small();
  settings.scenario = folder.file("closed.toml");
  const std::string scenario = R"(acceptance = "constant:0.8"
[linear]
target_ms = 6
draft_pass_ms = 0.5
[workload]
requests = 200
arrivals = { kind = "closed", concurrency = 2 }
prompt = 100
output = 20
[run]
mode = "MODE"
[[policy]]
name = "off"
speculation = "off"
)";
  const auto with_mode = [&](const std::string& mode) {
    std::string text = scenario;
    return text.replace(text.find("MODE"), 4, mode);
  };
  write_whole_file(settings.scenario, with_mode("serving"));
  settings.load = 3;
  const ServingTimelineSnapshot served = snapshots_of(settings).back();
  CHECK(served.closed);
  CHECK(served.loads[1].policies[0].figure(Figure::throughput).mean >
        served.loads[0].policies[0].figure(Figure::throughput).mean);
  CHECK(served.lower() == nullptr);  // one policy
  CHECK(comparable(to_json(served)) == comparable(printed_by(settings)));
  write_whole_file(settings.scenario, with_mode("static"));
  const ServingTimelineSnapshot batch = snapshots_of(settings).back();
  CHECK(batch.upper() == nullptr);
  CHECK(to_table(batch).rows.empty());
  CHECK(comparable(to_json(batch)) == comparable(printed_by(settings)));
}

TEST_CASE("the serving panel opens scenarios and grids, and refuses broken ones by file and line") {
  const ServingTimelineSettings grid =
      settings_of_scenario(DRAFTPROOF_SOURCE_DIR "/experiments/scenarios/chat_load.toml");
  CHECK(grid.loads == std::vector<double>{2, 4, 8, 16, 24, 32});
  CHECK_THAT(grid.scenario, Contains("chat.toml"));
  CHECK(shipped_scenarios().size() >= 2);
  const TemporaryFolder folder;
  const std::string broken = folder.file("broken.toml");
  write_whole_file(broken, "[workload]\nrequests = 10\nspeed = 3\n");
  CHECK_THAT(error_of(ErrorKind::input, [&] { settings_of_scenario(broken); }), Contains("broken.toml:"));
  write_whole_file(broken, "[workload\n");
  CHECK_THAT(error_of(ErrorKind::input, [&] { settings_of_scenario(broken); }), Contains("broken.toml:1"));
  CHECK_THAT(error_of(ErrorKind::input,
                      [] {
                        settings_of_simulation({{"command", "draftproof demo"}}, "f.json");
                      }),
             Contains("f.json: is no document of `draftproof sim`"));
  ServingTimelineSettings settings = small();
  settings.loads = {-1};
  CHECK_THAT(error_of(ErrorKind::usage, [&] { snapshots_of(settings); }), Contains("expected requests per second"));
}

TEST_CASE("a cancelled simulation ends in the middle of a run") {
  Job job;
  ServingTimelineSettings settings;
  settings.requests = 100'000'000;  // hours
  int published = 0;
  std::jthread canceller([&] {
    while (job.progress().doing.empty()) std::this_thread::yield();
    job.cancel();
  });
  CHECK_THROWS_AS(compute(settings, job, [&](ServingTimelineSnapshot) { ++published; }), Cancelled);
  CHECK(published == 0);
}
