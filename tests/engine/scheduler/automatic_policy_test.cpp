// Rule auto on machines that are made up: what a step takes and what is accepted are known, and so is the best draft
// length.
#include "engine/scheduler/speculation_policy.hpp"
#include "tests/support/test.hpp"

namespace {

struct Machine {
  std::function<double(double)> target_ms;  // of rows
  double draft_ms = 0.0;                    // of one pass, and of each of its rows
  double draft_row_ms = 0.0;
  double acceptance = 0.0;  // of each draft
  double noise = 0.0;       // times are up to so much longer
  double read_ms = 0.0;     // of a token that came since the last draft of its request

  double step_ms(std::int64_t batch, std::int64_t rows, std::int32_t passes, std::int64_t drafting) const {
    return target_ms(static_cast<double>(batch + rows)) +
           passes * (draft_ms + draft_row_ms * static_cast<double>(drafting));
  }
  // Tokens a millisecond with drafts of a length for every request, exactly.
  double speed(std::int64_t batch, std::int32_t length) const {
    double tokens = 1.0;
    double survival = 1.0;
    for (std::int32_t j = 0; j < length; ++j) tokens += survival *= acceptance;
    const auto all = static_cast<double>(batch);
    return all * tokens / (step_ms(batch, batch * length, length, batch) * (1.0 + noise / 2.0));
  }
  double best_speed(std::int64_t batch) const {
    double best = 0.0;
    for (std::int32_t length = 0; length <= 8; ++length) best = std::max(best, speed(batch, length));
    return best;
  }
};

// Row counts cost as this project's own passes do.
Machine like_a_cpu() {
  return {[](double rows) { return rows <= 8 ? 2.8 + 0.33 * rows : 0.55 + 0.61 * rows; }, 0.1, 0.04, 0.5, 0.1};
}
// Rows cost a third of that.
Machine like_a_faster_cpu() {
  return {[](double rows) { return 2.8 + 0.2 * rows; }, 0.1, 0.02, 0.5, 0.1};
}
// Rows cost nothing up to 128.
Machine like_a_gpu() {
  return {[](double rows) { return 8.0 + 0.05 * std::max(rows - 128.0, 0.0); }, 0.4, 0.0, 0.6, 0.1};
}

constexpr std::int32_t kPromptLen = 64;
constexpr std::int32_t kOutputLen = 192;

// Requests one after the other, `batch` at a time.
class Runs {
 public:
  explicit Runs(bool looks_up = false)
      : policy_(parse_speculation("auto", "test"), std::make_shared<DefaultStepCost>()), looks_up_(looks_up) {}

  // Tokens a millisecond over so many steps.
  double speed(const Machine& machine, std::int64_t batch, int steps) {
    std::int64_t tokens = 0;
    double ms = 0.0;
    lost_ms_ = 0.0;
    excess_ms_ = 0.0;
    worst_ms_ = 0.0;
    for (int step = 0; step < steps; ++step) {
      const auto [emitted, took] = run_step(machine, batch);
      tokens += emitted;
      ms += took;
      // What the account must hold: the loss so far, but for the part of the time that is earned.
      const double plain_ms = machine.step_ms(batch, 0, 0, 0);
      lost_ms_ += took - plain_ms * static_cast<double>(emitted) / static_cast<double>(batch) - kShare * took;
      worst_ms_ = std::max(worst_ms_, lost_ms_);
      excess_ms_ = std::max(excess_ms_, took - plain_ms);
    }
    return static_cast<double>(tokens) / ms;
  }

  // Of the last speed(): the largest loss beyond 0.25 % of the time at any step, and by how much the longest step was
  // longer than a plain one.
  double worst_loss_ms() const { return worst_ms_; }
  double longest_excess_ms() const { return excess_ms_; }

 private:
  static constexpr double kShare = 0.0025;
  struct Step {
    std::int64_t tokens;
    double ms;
  };
  struct Request {
    SpeculationState state;
    std::int32_t output_len = 0;
  };

  Step run_step(const Machine& machine, std::int64_t batch) {
    while (std::ssize(requests_) < batch) {
      Request& request = requests_.emplace_back(Request{policy_.first_state()});
      request.state.longest = 8;
      request.state.looks_up = looks_up_;
    }
    policy_.begin_step();
    for (Request& request : requests_) {
      request.state.tokens = kPromptLen + request.output_len;
      request.state.room = kOutputLen - request.output_len;
      policy_.count(request.state, 1);
    }
    policy_.decide(0);
    StepPlan plan;
    StepOutcome outcome;
    plan.num_tokens = batch;
    Step step{0, 0.0};
    std::int64_t rows = 0, drafting = 0;
    std::int32_t passes = 0, read = 0;
    for (Request& request : requests_) {
      const std::int32_t drafted = std::min(policy_.num_drafts(request.state), looks_up_ ? 2 : 8);
      std::int32_t accepted = 0;
      while (accepted < drafted && random_.uniform() < machine.acceptance) ++accepted;
      PlannedRequest& planned = plan.requests.emplace_back();
      planned.sample = true;
      planned.draft_depth_max = drafted;
      outcome.sequences.push_back({drafted, accepted, accepted + 1, -1, accepted < drafted});
      if (drafted > 0) read += std::max(request.state.tokens - request.state.read - 17, 0);
      policy_.observe(request.state, drafted, accepted, accepted < drafted);
      step.tokens += accepted + 1;
      request.output_len += accepted + 1;
      rows += drafted;
      passes = std::max(passes, drafted);
      drafting += drafted > 0 ? 1 : 0;
    }
    std::erase_if(requests_, [](const Request& request) { return request.output_len >= kOutputLen; });
    const double slower = 1.0 + machine.noise * random_.uniform();
    const double read_ms = read * machine.read_ms;
    step.ms = slower * (machine.step_ms(batch, rows, passes, drafting) + read_ms);
    const double pass_ms = machine.draft_ms + machine.draft_row_ms * static_cast<double>(drafting);
    outcome.end_ns = static_cast<std::int64_t>(1e6 * step.ms);
    outcome.draft_ns = static_cast<std::int64_t>(1e6 * slower * (passes * pass_ms + read_ms));
    outcome.late_ns = static_cast<std::int64_t>(1e6 * slower * read_ms);
    policy_.observe_step(plan, outcome);
    return step;
  }

  SpeculationPolicy policy_;
  bool looks_up_;
  std::vector<Request> requests_;
  double lost_ms_ = 0.0, worst_ms_ = 0.0, excess_ms_ = 0.0;
  TestRandom random_{11};
};

constexpr std::int64_t kBatches[] = {1, 4, 8, 12, 16, 24, 32};

TEST_CASE("rule auto never loses more than a fiftieth of plain decoding, on any batch, from the first step on",
          "[release]") {
  for (Machine machine : {like_a_cpu(), like_a_gpu()})
    for (const double acceptance : {0.0, 0.2, 0.5})
      for (const std::int64_t batch : kBatches) {
        machine.acceptance = acceptance;
        INFO("acceptance " << acceptance << ", batch " << batch);
        CHECK(Runs().speed(machine, batch, 150) > 0.975 * machine.speed(batch, 0));
        CHECK(Runs().speed(machine, batch, 600) > 0.98 * machine.speed(batch, 0));
      }
}

// Costs that nobody expects: rows beyond the batch that cost ten times as much, slow passes, slow reading.
std::vector<Machine> hostile_machines(std::int64_t batch) {
  Machine steep = like_a_cpu(), slow = like_a_cpu(), reads = like_a_cpu();
  steep.target_ms = [batch](double rows) {
    const auto beyond = rows - static_cast<double>(batch);
    return 3.0 + 0.5 * static_cast<double>(batch) + 5.0 * std::max(beyond, 0.0);
  };
  slow.draft_ms = 10.0;
  reads.read_ms = 0.5;
  return {like_a_cpu(), like_a_gpu(), steep, slow, reads};
}

TEST_CASE("rule auto loses at most 0.25 % of the time, what its account begins with, and one step") {
  for (const bool looks_up : {false, true})
    for (const std::int64_t batch : kBatches) {
      int index = 0;
      for (Machine machine : hostile_machines(batch)) {
        machine.noise = 0.0;
        for (const double acceptance : {0.0, 0.1, 0.3}) {
          machine.acceptance = acceptance;
          Runs runs(looks_up);
          runs.speed(machine, batch, 3000);
          INFO("looked up " << looks_up << ", machine " << index << ", batch " << batch << ", acceptance "
                            << acceptance);
          const double plain_ms = machine.step_ms(batch, 0, 0, 0);
          const double begins_with = plain_ms * 2.5 / static_cast<double>(batch);
          CHECK(runs.worst_loss_ms() < 1.05 * (begins_with + runs.longest_excess_ms()));
        }
        ++index;
      }
    }
}

TEST_CASE("rule auto loses at most its full account and one step where drafts that paid stop paying") {
  for (const bool looks_up : {false, true})
    for (const std::int64_t batch : kBatches) {
      Machine machine = like_a_faster_cpu();
      machine.noise = 0.0;
      machine.acceptance = 0.9;
      Runs runs(looks_up);
      CHECK(runs.speed(machine, batch, 1000) > machine.speed(batch, 0));
      machine.acceptance = 0.0;
      runs.speed(machine, batch, 2000);
      INFO("looked up " << looks_up << ", batch " << batch);
      CHECK(runs.worst_loss_ms() < 1.05 * (16.0 * machine.step_ms(batch, 0, 0, 0) + runs.longest_excess_ms()));
    }
}

TEST_CASE("rule auto keeps gains where a head has to read first what came since its last draft") {
  Machine machine = like_a_cpu();
  machine.read_ms = 0.05;
  machine.acceptance = 0.7;
  for (const std::int64_t batch : {1, 4}) {
    INFO("batch " << batch << ", best " << machine.best_speed(batch) << ", plain " << machine.speed(batch, 0));
    CHECK(Runs().speed(machine, batch, 1500) > 0.9 * machine.best_speed(batch));
  }
}

TEST_CASE("rule auto finds the best draft length where drafts gain", "[release]") {
  for (Machine machine : {like_a_cpu(), like_a_faster_cpu()})
    for (const double acceptance : {0.6, 0.8})
      for (const std::int64_t batch : kBatches) {
        machine.acceptance = acceptance;
        INFO("acceptance " << acceptance << ", batch " << batch << ", best " << machine.best_speed(batch) << ", plain "
                           << machine.speed(batch, 0));
        CHECK(Runs().speed(machine, batch, 1500) > 0.93 * machine.best_speed(batch));
      }
}

TEST_CASE("rule auto finds again what has changed") {
  Runs runs;
  Machine machine = like_a_cpu();
  machine.acceptance = 0.0;
  CHECK(runs.speed(machine, 4, 1000) > 0.97 * machine.speed(4, 0));
  machine.acceptance = 0.9;
  CHECK(runs.speed(machine, 4, 2000) > 0.85 * machine.best_speed(4));
  machine.acceptance = 0.0;
  CHECK(runs.speed(machine, 4, 2000) > 0.97 * machine.speed(4, 0));
}

TEST_CASE("rule auto drafts whole where a request's tokens depend on its drafts, whatever steps took") {
  SpeculationPolicy policy(parse_speculation("auto", "test"), std::make_shared<DefaultStepCost>());
  SpeculationState greedy = policy.first_state();
  SpeculationState drawn = policy.first_state();
  greedy.longest = drawn.longest = 4;
  drawn.shapes_tokens = true;
  policy.begin_step();
  policy.count(greedy, 1);
  policy.count(drawn, 1);
  policy.decide(0);
  CHECK(policy.num_drafts(greedy) >= 4);
  CHECK(policy.num_drafts(drawn) >= 4);
  policy.begin_step();
  policy.count(greedy, 1);
  policy.decide(0);
  CHECK(policy.num_drafts(greedy) == 0);  // no step was timed
}

}  // namespace
