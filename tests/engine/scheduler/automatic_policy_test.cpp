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

class Runs {
 public:
  explicit Runs(std::int32_t longest = 8)
      : policy_(parse_speculation("auto", "test"), std::make_shared<DefaultStepCost>()), longest_(longest) {}

  // Tokens a millisecond over so many steps.
  double speed(const Machine& machine, std::int64_t batch, int steps) {
    states_.resize(static_cast<std::size_t>(batch), policy_.first_state());
    double tokens = 0.0;
    double ms = 0.0;
    StepPlan plan;
    StepOutcome outcome;
    for (int step = 0; step < steps; ++step) {
      policy_.begin_step();
      for (SpeculationState& state : states_) {
        state.longest = longest_;
        policy_.count(state, 1);
      }
      policy_.decide(0);
      plan = {};
      outcome = {};
      plan.num_tokens = batch;
      std::int64_t rows = 0;
      std::int32_t passes = 0;
      std::int64_t drafting = 0;
      for (SpeculationState& state : states_) {
        const std::int32_t drafted = std::min(policy_.num_drafts(state), longest_);
        std::int32_t accepted = 0;
        while (accepted < drafted && random_.uniform() < machine.acceptance) ++accepted;
        PlannedRequest& planned = plan.requests.emplace_back();
        planned.sample = true;
        planned.draft_depth_max = drafted;
        outcome.sequences.push_back({drafted, accepted, accepted + 1, -1, accepted < drafted});
        policy_.observe(state, drafted, accepted, accepted < drafted);
        tokens += accepted + 1;
        rows += drafted;
        passes = std::max(passes, drafted);
        drafting += drafted > 0 ? 1 : 0;
      }
      const double slower = 1.0 + machine.noise * random_.uniform();
      const double took = slower * machine.step_ms(batch, rows, passes, drafting);
      outcome.end_ns = static_cast<std::int64_t>(1e6 * took);
      const double pass_ms = machine.draft_ms + machine.draft_row_ms * static_cast<double>(drafting);
      outcome.draft_ns = static_cast<std::int64_t>(1e6 * slower * passes * pass_ms);
      policy_.observe_step(plan, outcome);
      ms += took;
    }
    return tokens / ms;
  }

 private:
  SpeculationPolicy policy_;
  std::int32_t longest_;
  std::vector<SpeculationState> states_;
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
