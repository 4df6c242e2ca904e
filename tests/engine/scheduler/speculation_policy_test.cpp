#include "engine/scheduler/speculation_policy.hpp"

#include "tests/support/test.hpp"

namespace {

SpeculationPolicy policy_of(const char* text, std::shared_ptr<const StepCost> cost = nullptr) {
  return SpeculationPolicy(parse_speculation(text, "--speculation"), std::move(cost));
}

TEST_CASE("a speculation policy is read from text and written back", "[speculation]") {
  for (const char* text :
       {"off", "fixed:3", "threshold:min=2,max=6,start=3,raise=0.9,lower=0.5,weight=1", "schedule:1=6,4=2,32=0",
        "goodput:max=5,prior=2,memory=0.9,probe=16", "tree:nodes=9,budget=32", "likely",
        "confidence:max=5,threshold=0.25,budget=96", "cumulative:min=2,max=6,start=3,raise=0.9,lower=0.5",
        "target_efficiency:share=0.5,max=6,start=3"})
    CHECK(text_of(parse_speculation(text, "x")) == text);
  CHECK(text_of(parse_speculation("fixed", "x")) == "fixed:5");
  CHECK(text_of(parse_speculation("schedule", "x")) == "schedule:1=5,8=3,32=0");
  CHECK(text_of(parse_speculation("confidence", "x")) == "confidence:max=7,threshold=0.3,budget=0");
  CHECK(text_of(parse_speculation("threshold:max=9", "x")) ==
        "threshold:min=1,max=9,start=4,raise=0.85,lower=0.55,weight=0.3");
}

TEST_CASE("a policy that is none is refused with what is expected", "[speculation]") {
  const auto message = [](const char* text) {
    return error_of(ErrorKind::usage, [&] { parse_speculation(text, "--speculation"); });
  };
  CHECK(message("fast") ==
        "--speculation: the speculation policy is 'fast'; expected one of off, fixed, threshold, schedule, goodput, "
        "tree, likely, confidence, auto, cumulative, target_efficiency");
  CHECK(message("fixed:-1") == "--speculation: is 'fixed:-1'; expected fixed:K with K from 0 to 1024");
  for (const auto& [text, error] :
       {std::pair("likely:max=3", "likely has no parameters"),
        {"off:1", "off has no parameters"},
        {"confidence:threshold=1.5", "threshold is '1.5'; expected a number in [0, 1]"},
        {"confidence:nodes=3", "expected one of max, threshold, budget"},
        {"fixed:", "expected fixed:K"},
        {"target_efficiency:start=9", "start is 9; expected a number from min (1) to max (8)"},
        {"threshold:high=1", "has no parameter 'high'; expected one of min, max, start"},
        {"threshold:max=3,max=4", "max is given twice"},
        {"threshold:raise=1.5", "raise is '1.5'; expected a number in [0, 1]"},
        {"threshold:start=9", "start is 9; expected a number from min (1) to max (8)"},
        {"threshold:lower=0.9", "lower is 0.9; expected at most raise (0.85)"},
        {"goodput:max=2.5", "max is '2.5'; expected a whole number in [1, 64]"},
        {"goodput:max", "has 'max'; expected NAME=VALUE"},
        {"schedule:2=3", "has batch size 2 after 0; expected ascending sizes, the first 1"},
        {"schedule:1=3,1=2", "batch size 1 after 1"},
        {"schedule:1=65", "expected BATCH=DRAFTS"}})
    CHECK_THAT(message(text), Contains(error));
  for (const char* const by_cost : {"goodput", "likely"})
    CHECK(error_of(ErrorKind::usage, [&] { policy_of(by_cost); }).find("no cost model") != std::string::npos);
}

TEST_CASE("the threshold rule raises and lowers K by the moving average of what is accepted", "[speculation]") {
  SpeculationPolicy policy = policy_of("threshold:min=1,max=5,start=3,weight=0.5");
  SpeculationState state = policy.first_state();
  CHECK(policy.num_drafts(state) == 3);
  policy.observe(state, 3, 3, false);  // average 1
  CHECK(policy.num_drafts(state) == 4);
  policy.observe(state, 4, 3, true);  // 0.875
  CHECK(policy.num_drafts(state) == 5);
  policy.observe(state, 5, 5, false);  // 0.9375, but 5 is most
  CHECK(policy.num_drafts(state) == 5);
  policy.observe(state, 5, 2, true);  // 0.66875: between the thresholds
  CHECK(policy.num_drafts(state) == 5);
  policy.observe(state, 0, 0, false);  // no draft says nothing
  CHECK(policy.num_drafts(state) == 5);
  for (int i = 0; i < 10; ++i) policy.observe(state, 5, 0, true);
  CHECK(policy.num_drafts(state) == 1);
}

TEST_CASE("the cumulative rule goes by all drafts so far, from 5 within 1 to 8", "[speculation]") {
  SpeculationPolicy policy = policy_of("cumulative");
  CHECK(text_of(policy.choice()) == "cumulative:min=1,max=8,start=5,raise=0.85,lower=0.55");
  SpeculationState state = policy.first_state();
  CHECK(policy.num_drafts(state) == 5);
  policy.observe(state, 5, 5, false);  // 5 of 5
  CHECK(policy.num_drafts(state) == 6);
  policy.observe(state, 6, 4, true);  // 9 of 11 = 0.82
  CHECK(policy.num_drafts(state) == 6);
  policy.observe(state, 6, 0, true);  // 9 of 17 = 0.53
  CHECK(policy.num_drafts(state) == 5);
  policy.observe(state, 0, 0, false);
  CHECK(policy.num_drafts(state) == 5);
  // One good step moves an average of few steps, and not that of all: 14 of 22 = 0.64.
  policy.observe(state, 5, 5, false);
  CHECK(policy.num_drafts(state) == 5);
  for (int i = 0; i < 100; ++i) policy.observe(state, 8, 8, false);
  CHECK(policy.num_drafts(state) == 8);
}

TEST_CASE("the target efficiency is the share of accepted drafts that the K chosen is expected to keep",
          "[speculation]") {
  SpeculationPolicy policy = policy_of("target_efficiency");
  CHECK(text_of(policy.choice()) == "target_efficiency:share=0.7,max=8,start=5");
  const auto drafts_at = [&](int accepted, int rejected) {
    SpeculationState state = policy.first_state();
    CHECK(policy.num_drafts(state) == 5);
    for (int i = 0; i < accepted; ++i) policy.observe(state, 1, 1, false);
    for (int i = 0; i < rejected; ++i) policy.observe(state, 1, 0, true);
    return policy.num_drafts(state);
  };
  // (a + ... + a^K) / K: at 0.8, 0.8, 0.72, 0.65; at 0.9, 0.9, 0.855, 0.813, 0.774, 0.737, 0.703, 0.671.
  CHECK(drafts_at(8, 2) == 2);
  CHECK(drafts_at(9, 1) == 6);
  CHECK(drafts_at(1, 1) == 1);
  CHECK(drafts_at(0, 3) == 1);
  CHECK(drafts_at(20, 0) == 8);
}

TEST_CASE("the schedule goes by batch size and trees share their budget", "[speculation]") {
  SpeculationPolicy schedule = policy_of("schedule:1=5,3=2,5=0");
  SpeculationPolicy tree = policy_of("tree:nodes=9,budget=20");
  const std::vector<std::int32_t> by_schedule = {5, 5, 2, 2, 0, 0};
  const std::vector<std::int32_t> by_tree = {9, 9, 6, 5, 4, 3};
  for (int batch = 1; batch <= 6; ++batch) {
    for (SpeculationPolicy* policy : {&schedule, &tree}) {
      SpeculationState state = policy->first_state();
      policy->begin_step();
      for (int i = 0; i < batch; ++i) policy->count(state, 1);
      policy->decide(0);
      INFO("batch " << batch);
      CHECK(policy->num_drafts(state) == (policy == &tree ? by_tree : by_schedule)[batch - 1]);
    }
  }
}

// A cost with a cliff, which no rule that looks at marginal gains alone gets right.
struct CliffCost final : StepCost {
  double base, token, cliff_ns, pass;
  std::int64_t cliff_at;

  double target_ns(const PassLoad& load) const override {
    return base + token * static_cast<double>(load.rows) + (load.rows > cliff_at ? cliff_ns : 0.0);
  }
  double draft_ns(const DraftLoad& load) const override { return pass * load.passes; }
  double overhead_ns(std::int64_t, const DraftLoad&) const override { return 0.0; }

  double step_ns(std::int64_t rows, std::int32_t passes, std::int64_t batch) const {
    return target_ns(planned_pass(rows, batch)) + draft_ns(planned_drafting(passes, batch));
  }
};

// The best goodput over every choice of K for every request, by trying all.
double best_by_trying(const std::vector<double>& rates, const CliffCost& cost, std::int32_t most) {
  std::vector<std::int32_t> drafts(rates.size());
  double best = 0.0;
  for (;;) {
    double tokens = 0.0;
    std::int64_t rows = 0;
    std::int32_t longest = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      double probability = 1.0;
      tokens += 1.0;
      for (std::int32_t j = 0; j < drafts[i]; ++j) tokens += probability *= rates[i];
      rows += 1 + drafts[i];
      longest = std::max(longest, drafts[i]);
    }
    const auto batch = static_cast<std::int64_t>(rates.size());
    best = std::max(best, tokens / cost.step_ns(rows, longest, batch));
    std::size_t i = 0;
    while (i < drafts.size() && drafts[i] == most) drafts[i++] = 0;
    if (i == drafts.size()) return best;
    ++drafts[i];
  }
}

TEST_CASE("the goodput rule finds the best K of every request that trying all finds", "[speculation]") {
  int off = 0, mixed = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    TestRandom random(seed);
    auto cost = std::make_shared<CliffCost>();
    cost->base = 100.0 * random.uniform();
    cost->token = 30.0 * random.uniform();
    cost->pass = 40.0 * random.uniform();
    cost->cliff_at = random.below(16);
    cost->cliff_ns = random.chance(0.5) ? 200.0 * random.uniform() : 0.0;
    SpeculationPolicy policy = policy_of("goodput:max=3,prior=0,memory=1,probe=1000000", cost);
    // Four requests whose measured rates lie in the middle of a class of their own.
    std::vector<SpeculationState> states;
    std::vector<double> rates;
    for (int i = 0; i < 4; ++i) {
      const auto middle = 2 * (8 * random.below(4) + 2 * i) + 1;  // of 64
      SpeculationState state = policy.first_state();
      state.judged = 64e4f;
      state.accepted = static_cast<float>(middle) * 1e4f;
      states.push_back(state);
      rates.push_back(static_cast<double>(middle) / 64.0);
      CHECK(policy.rate(state) == Approx(rates.back()).epsilon(1e-6));
    }
    policy.begin_step();
    for (SpeculationState& state : states) policy.count(state, 1);
    policy.decide(0);
    double tokens = 0.0;
    std::int64_t rows = 0;
    std::int32_t longest = 0, shortest = 3;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const std::int32_t k = policy.num_drafts(states[i]);
      double probability = 1.0;
      tokens += 1.0;
      for (std::int32_t j = 0; j < k; ++j) tokens += probability *= rates[i];
      rows += 1 + k;
      longest = std::max(longest, k);
      shortest = std::min(shortest, k);
    }
    INFO("seed " << seed);
    CHECK(tokens / cost->step_ns(rows, longest, 4) == Approx(best_by_trying(rates, *cost, 3)).epsilon(1e-12));
    off += longest == 0;
    mixed += longest > shortest;
  }
  CHECK(off > 10);
  CHECK(mixed > 50);
}

TEST_CASE("the goodput rule measures the request, starts from the batch and tries again after a while",
          "[speculation]") {
  auto cost = std::make_shared<LinearCost>();
  cost->fixed_ns = 1000.0;
  cost->row_ns = 100.0;
  cost->draft_pass_ns = 100.0;
  SpeculationPolicy policy = policy_of("goodput:max=4,prior=4,memory=0.9,probe=5", cost);
  SpeculationState good = policy.first_state();
  SpeculationState bad = policy.first_state();
  const auto decide = [&] {
    policy.begin_step();
    policy.count(good, 1);
    policy.count(bad, 1);
    policy.decide(0);
  };
  for (int i = 0; i < 60; ++i) {
    policy.observe(good, 4, 4, false);
    policy.observe(bad, 4, 0, true);
  }
  decide();
  CHECK(policy.num_drafts(good) == 4);
  CHECK(policy.num_drafts(bad) == 0);
  CHECK(policy.rate(policy.first_state()) > policy.rate(bad));
  CHECK(policy.rate(policy.first_state()) < policy.rate(good));
  for (int i = 0; i < 5; ++i) policy.observe(bad, 0, 0, false);
  decide();
  CHECK(policy.num_drafts(bad) == 1);
}

using Confidences = std::vector<std::vector<float>>;

std::vector<std::int32_t> kept_of(const char* text, const Confidences& confidences,
                                  const std::vector<std::int32_t>& streams = {}) {
  std::vector<ConfidentDraft> drafts;
  for (std::size_t i = 0; i < confidences.size(); ++i)
    drafts.push_back({confidences[i], streams.empty() ? 1 : streams[i], 99});
  policy_of(text).keep_confident(drafts);
  std::vector<std::int32_t> kept;
  for (const ConfidentDraft& draft : drafts) kept.push_back(draft.kept);
  return kept;
}

// Products by hand: 0.9, 0.72, 0.216 and 0.5, 0.45, 0.405.
TEST_CASE("the confidence rule keeps the beginning of a draft whose survival is above the threshold", "[speculation]") {
  const Confidences drafts{{0.9f, 0.8f, 0.3f}, {0.5f, 0.9f, 0.9f}, {}};
  CHECK(policy_of("confidence:max=3").num_drafts({}) == 3);
  CHECK(kept_of("confidence:threshold=0.5", drafts) == std::vector<std::int32_t>{2, 1, 0});
  CHECK(kept_of("confidence:threshold=0.41", drafts) == std::vector<std::int32_t>{2, 2, 0});
  CHECK(kept_of("confidence:threshold=0", drafts) == std::vector<std::int32_t>{3, 3, 0});
  CHECK(kept_of("confidence:threshold=1", drafts) == std::vector<std::int32_t>{0, 0, 0});
}

// Largest first: 0.9, 0.72, 0.5, 0.45, 0.405, 0.216; of a request with a companion half of it for each of its two rows.
TEST_CASE("a budget of rows goes to the largest survivals of the batch", "[speculation]") {
  const Confidences drafts{{0.9f, 0.8f, 0.3f}, {0.5f, 0.9f, 0.9f}};
  using Kept = std::vector<std::int32_t>;
  for (const auto& [budget, kept] :
       {std::pair("1", Kept{1, 0}), {"2", {2, 0}}, {"3", {2, 1}}, {"5", {2, 3}}, {"9", {3, 3}}})
    CHECK(kept_of((std::string("confidence:threshold=0,budget=") + budget).c_str(), drafts) == kept);
  CHECK(kept_of("confidence:threshold=0.5,budget=9", drafts) == Kept{2, 1});
  // 0.5, 0.45 (0.9 over two rows), 0.45, 0.405: the guided request's first draft does not fit behind one row, and what
  // comes behind it is not kept either.
  CHECK(kept_of("confidence:threshold=0,budget=2", drafts, {2, 1}) == Kept{0, 1});
  CHECK(kept_of("confidence:threshold=0,budget=4", drafts, {2, 1}) == Kept{1, 2});
}

// DSpark, appendix A: where the decision on draft k reads what token k says, verification is biased. The confidence of
// draft k + 1 is computed from token k.
TEST_CASE("whether a draft is kept never depends on a later confidence of its own request", "[speculation]") {
  TestRandom random(8);
  int cut = 0, whole = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    Confidences drafts(4, std::vector<float>(5));
    for (auto& draft : drafts)
      for (float& c : draft) c = random.chance(0.2) ? 1.0f : static_cast<float>(random.uniform());
    const char* const text = trial % 2 == 0 ? "confidence:threshold=0.1,budget=7" : "confidence:threshold=0.3";
    const std::vector<std::int32_t> kept = kept_of(text, drafts);
    const auto request = static_cast<std::size_t>(random.below(4));
    const auto slot = static_cast<std::size_t>(random.below(5));  // whose token changes: confidences behind it may
    Confidences others = drafts;
    for (std::size_t later = slot + 1; later < 5; ++later)
      others[request][later] = static_cast<float>(random.uniform());
    const std::int32_t now = kept_of(text, others)[request];
    const auto through = static_cast<std::int32_t>(slot) + 1;
    CHECK(std::min(now, through) == std::min(kept[request], through));
    cut += kept[request] < 5 ? 1 : 0;
    whole += kept[request] > 0 ? 1 : 0;
  }
  CHECK(cut > 500);
  CHECK(whole > 500);
}

TEST_CASE("confidences that are none are refused", "[speculation]") {
  const auto message = [](std::vector<float> confidences, std::size_t drafted) {
    return error_of(ErrorKind::internal, [&] { require_confidences(confidences, drafted); });
  };
  CHECK(message({0.5f}, 2) == "drafter: it gives 1 confidences for 2 drafts; expected one for each");
  CHECK(message({1.5f}, 1) == "drafter: a confidence is 1.500000; expected a number in [0, 1]");
  CHECK_THAT(message({std::numeric_limits<float>::quiet_NaN()}, 1), Contains("expected a number in [0, 1]"));
  require_confidences(std::vector<float>{0.0f, 1.0f}, 2);
}

TEST_CASE("off never drafts and fixed always does", "[speculation]") {
  SpeculationPolicy off;
  SpeculationPolicy fixed = policy_of("fixed:7");
  CHECK(off.num_drafts(off.first_state()) == 0);
  CHECK(fixed.num_drafts(fixed.first_state()) == 7);
}

}  // namespace
