#include "sim/serving/simulated_backend.hpp"

#include "sim/acceptance/acceptance_choice.hpp"
#include "tests/sim/serving/constant_models.hpp"
#include "tests/support/test.hpp"

namespace {

// Remembers what it was asked for.
struct AskedCost final : StepCost {
  mutable PassLoad pass;
  mutable DraftLoad draft;
  double target_ns(const PassLoad& load) const override {
    pass = load;
    return 100.4;
  }
  double draft_ns(const DraftLoad& load) const override {
    draft = load;
    return 30.0;
  }
  double overhead_ns(std::int64_t requests, const DraftLoad&) const override {
    return 2.0 * static_cast<double>(requests);
  }
};

// A chunk of a prompt (40 of more, behind 16), a request that decodes with 3 drafts behind 99 tokens, and a guided one
// that decodes without drafts behind 10 and 5.
StepPlan small_plan() {
  StepPlan plan;
  PlannedRequest chunk;
  chunk.request = 0;
  chunk.streams[0] = {{{}, 16}, 40};
  PlannedRequest drafting;
  drafting.request = 1;
  static constexpr std::array<std::int32_t, 7> kBlocks{3, 4, 5, 6, 7, 8, 9};
  drafting.streams[0] = {{kBlocks, 99}, 1};
  drafting.sample = true;
  drafting.num_drafts_max = 3;
  drafting.draft_depth_max = 3;
  PlannedRequest guided;
  guided.request = 2;
  guided.num_streams = 2;
  guided.streams[0] = {{{}, 10}, 1};
  guided.streams[1] = {{{}, 5}, 1};
  guided.sample = true;
  plan.requests = {chunk, drafting, guided};
  return plan;
}

}  // namespace

TEST_CASE("a step's load is counted row by row") {
  const AskedCost cost;
  const ConstantAcceptance acceptance(1.0);
  SimulatedBackend backend(cost, acceptance, {});
  backend.add(0, 0, 100);
  backend.add(1, 1, 50);
  backend.add(2, 2, 11);
  backend.advance_to(1000);
  StepOutcome outcome;
  backend.run(small_plan(), outcome);
  CHECK(cost.pass.rows == 40 + 4 + 2);
  CHECK(cost.pass.streams == 4);
  CHECK(cost.pass.kv_tokens == 16 + 99 + 10 + 5);
  CHECK(cost.pass.logit_rows == 4 + 2);
  std::int64_t pairs = 11 + 6;
  for (int row = 0; row < 40; ++row) pairs += 16 + row + 1;
  for (int row = 0; row < 4; ++row) pairs += 99 + row + 1;
  CHECK(cost.pass.attended == pairs);
  CHECK(cost.draft.requests == 1);
  CHECK(cost.draft.passes == 3);
  CHECK(cost.draft.rows == 3);
  CHECK(cost.draft.kv_tokens == 100);
  CHECK(!cost.draft.tree);
  CHECK(backend.committed_kv_tokens() == 56 + 100 + 11 + 6);
  CHECK(backend.held_slots() == 7 * 16);  // the other streams of this plan have no blocks
  REQUIRE(outcome.sequences.size() == 3);
  CHECK(outcome.sequences[0].num_emitted == 0);
  CHECK(outcome.sequences[1].num_accepted == 3);
  CHECK(outcome.sequences[1].num_emitted == 4);
  CHECK(!outcome.sequences[1].rejected);
  CHECK(outcome.sequences[2].num_emitted == 1);
  CHECK(outcome.begin_ns == 1000);
  CHECK(outcome.draft_ns == 30);
  CHECK(outcome.verify_ns == 100);
  CHECK(outcome.sample_ns == 6);
  CHECK(outcome.end_ns == 1136);
  CHECK(backend.now_ns() == 1136);
  // The drafter of request 1 reads the 99 tokens behind it again, if it discards its KV.
  SimulatedDrafting drafting;
  drafting.discards_kv = true;
  SimulatedBackend discards(cost, acceptance, drafting);
  discards.add(0, 0, 100);
  discards.add(1, 1, 50);
  discards.add(2, 2, 11);
  discards.run(small_plan(), outcome);
  CHECK(cost.draft.rows == 3 + 99);
  CHECK(cost.draft.kv_tokens == 100);
}

TEST_CASE("a tree is drafted in as many passes as it has levels, a head that sees all positions drafts in one") {
  const AskedCost cost;
  const ConstantAcceptance acceptance(0.0);
  StepPlan plan = small_plan();
  plan.requests[1].num_drafts_max = 12;
  plan.requests[1].draft_depth_max = 7;
  StepOutcome outcome;
  for (const bool one_pass : {false, true}) {
    SimulatedBackend backend(cost, acceptance, {one_pass, 4, 0.0});
    for (const RequestHandle handle : {0, 1, 2}) backend.add(handle, 0, 9);
    backend.run(plan, outcome);
    CHECK(cost.draft.passes == (one_pass ? 1 : 4));
    CHECK(cost.draft.rows == (one_pass ? 4 : 12));
    CHECK(cost.draft.tree == !one_pass);
    CHECK(cost.pass.logit_rows == 13 + 2);
    CHECK(outcome.sequences[1].rejected);
    CHECK(outcome.sequences[1].num_drafted == 12);
  }
}

TEST_CASE("of confident drafts all are drafted and those that are kept are verified") {
  const AskedCost cost;
  // Confidences are the slots' rates: 1, 0.5, 0.5, of products 1, 0.5, 0.25.
  const auto acceptance = make_acceptance("positions:1,0.5+confidence:explained=0", 1, "test");
  const auto run = [&](const char* text) {
    const SpeculationPolicy policy(parse_speculation(text, "test"));
    SimulatedBackend backend(cost, *acceptance, {true, 0, 0.0}, &policy);
    StepPlan plan = small_plan();
    plan.requests[1].num_drafts_max = plan.requests[1].draft_depth_max = 7;
    for (const RequestHandle handle : {0, 1, 2}) backend.add(handle, 0, 9);
    StepOutcome outcome;
    backend.run(plan, outcome);
    CHECK(cost.draft.rows == 7);
    CHECK(cost.draft.passes == 1);
    CHECK(cost.draft.depth == 7);
    return outcome.sequences[1];
  };
  for (const auto& [text, kept] : {std::pair("confidence:threshold=0.3", 2),
                                   {"confidence:threshold=0", 7},
                                   {"confidence:threshold=1", 1},
                                   {"confidence:threshold=0,budget=4", 4}}) {
    INFO(text);
    const SequenceOutcome outcome = run(text);
    CHECK(outcome.num_drafted == kept);
    CHECK(cost.pass.rows == 40 + 1 + kept + 2);
    CHECK(cost.pass.logit_rows == 1 + kept + 2);
    CHECK(outcome.num_accepted <= kept);
    CHECK(outcome.num_accepted >= 1);
    CHECK(outcome.rejected == (outcome.num_accepted < kept));
    CHECK(outcome.num_emitted == outcome.num_accepted + 1);
  }
}

TEST_CASE("blocks that are swapped take their time") {
  const AskedCost cost;
  const ConstantAcceptance acceptance(0.0);
  SimulatedBackend backend(cost, acceptance, {false, 0, 1000.0});
  for (const RequestHandle handle : {0, 1, 2}) backend.add(handle, 0, 9);
  StepPlan plan = small_plan();
  plan.swap_out = {{0, 1}, {2, 3}};
  StepOutcome outcome;
  backend.run(plan, outcome);
  CHECK(outcome.end_ns - outcome.begin_ns == 30 + 100 + 6 + 2000);
}
