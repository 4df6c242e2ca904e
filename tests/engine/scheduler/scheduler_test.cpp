// The scheduler's rules one at a time, on schedules small enough to follow by hand.
#include "engine/scheduler/scheduler.hpp"

#include "tests/support/test.hpp"

namespace {

RequestSpec request(std::int32_t prompt_len, std::int32_t output_len_max) {
  RequestSpec spec;
  spec.prompt_len = prompt_len;
  spec.output_len_max = output_len_max;
  return spec;
}

SpeculationPolicy fixed(std::int32_t drafts) {
  return SpeculationPolicy(parse_speculation("fixed:" + std::to_string(drafts), "test"));
}

// Drafts all that is planned and accepts `accepted` of each.
StepOutcome outcome_of(const StepPlan& plan, std::int32_t accepted = 0, std::int64_t end_ns = 0) {
  StepOutcome outcome;
  outcome.begin_ns = outcome.end_ns = end_ns;
  for (const PlannedRequest& planned : plan.requests) {
    SequenceOutcome& o = outcome.sequences.emplace_back();
    if (!planned.sample) continue;
    o.num_drafted = planned.num_drafts_max;
    o.num_accepted = std::min(accepted, o.num_drafted);
    o.num_emitted = o.num_accepted + 1;
    o.rejected = o.num_accepted < o.num_drafted;
  }
  return outcome;
}

using Blocks = std::vector<std::int32_t>;

Blocks blocks_of(const PlannedStream& stream) {
  return {stream.context.blocks.begin(), stream.context.blocks.end()};
}

TEST_CASE("a prompt is computed in chunks of the budget and only the last chunk samples", "[scheduler]") {
  SchedulerOptions options;
  options.token_budget = 30;
  Scheduler scheduler(options);
  scheduler.add(request(70, 2));
  for (const auto& [begin, count, sample] :
       {std::tuple{0, 30, false}, {30, 30, false}, {60, 10, true}, {70, 1, true}}) {
    const StepPlan& plan = scheduler.plan();
    REQUIRE(plan.requests.size() == 1);
    CHECK(plan.requests[0].streams[0].context.length == begin);
    CHECK(plan.requests[0].streams[0].num_tokens == count);
    CHECK(plan.requests[0].sample == sample);
    CHECK(plan.num_tokens == count);
    scheduler.commit(outcome_of(plan));
  }
  REQUIRE(scheduler.finished().size() == 1);
  CHECK(scheduler.progress(scheduler.finished()[0]).end == RequestEnd::length);
  CHECK(scheduler.idle());
  CHECK(scheduler.plan().empty());
  CHECK(scheduler.metrics().prompt_tokens == 70);
  CHECK(scheduler.blocks().num_held() == 0);
}

TEST_CASE("those who decode and those who begin share a step in the order of their arrival", "[scheduler]") {
  SchedulerOptions options;
  options.token_budget = 16;
  Scheduler scheduler(options, fixed(3));
  const RequestHandle first = scheduler.add(request(4, 9));
  scheduler.commit(outcome_of(scheduler.plan()));
  const RequestHandle second = scheduler.add(request(40, 9));
  const StepPlan& plan = scheduler.plan();
  REQUIRE(plan.requests.size() == 2);
  CHECK(plan.requests[0].request == first);
  CHECK(plan.requests[0].streams[0].num_tokens == 1);
  CHECK(plan.requests[0].num_drafts_max == 3);
  CHECK(plan.requests[1].request == second);
  CHECK(plan.requests[1].streams[0].num_tokens == 12);  // what the budget leaves
  CHECK_FALSE(plan.requests[1].sample);
  CHECK(plan.num_tokens == 13);
  CHECK(plan.num_draft_rows_max == 3);
}

TEST_CASE("rejected drafts are taken back, with the block that lay behind", "[scheduler]") {
  Scheduler scheduler(SchedulerOptions{}, fixed(5));
  const RequestHandle handle = scheduler.add(request(13, 100));
  const StepPlan& plan = scheduler.plan();
  CHECK(plan.requests[0].streams[0].draft_slot(0) == 13);
  CHECK(plan.requests[0].streams[0].draft_slot(4) == 17);  // in a second block
  CHECK(scheduler.progress(handle).streams[0].computed == 18);
  CHECK(scheduler.blocks().num_held() == 2);
  CHECK(scheduler.commit(outcome_of(plan, 2)).empty());  // of a chain nothing moves
  CHECK(scheduler.progress(handle).streams[0].computed == 15);
  CHECK(scheduler.progress(handle).output_len == 3);
  CHECK(scheduler.blocks().num_held() == 1);
  CHECK(scheduler.progress(handle).decodes());
}

TEST_CASE("accepted nodes of a tree move behind the last committed token, in every stream", "[scheduler]") {
  Scheduler scheduler(SchedulerOptions{}, fixed(6));
  RequestSpec spec = request(3, 50);
  spec.companion_prompt_len = 1;
  spec.draft_trees = true;
  scheduler.add(spec);
  const StepPlan& plan = scheduler.plan();
  REQUIRE(plan.requests[0].num_drafts_max == 6);
  REQUIRE(blocks_of(plan.requests[0].streams[0]) == Blocks{0});
  REQUIRE(blocks_of(plan.requests[0].streams[1]) == Blocks{1});
  StepOutcome outcome = outcome_of(plan);
  outcome.paths = {9, 0, 2, 5};
  outcome.sequences[0] = {6, 3, 4, 1, true, SequenceEnd::none};
  const auto moves = scheduler.commit(outcome);
  // Nodes 2 and 5 lie in slots 5 and 8 of the first stream, behind prompts of 3 and 1.
  CHECK(std::vector(moves.begin(), moves.end()) ==
        std::vector<SlotMove>{{3 + 2, 4}, {3 + 5, 5}, {16 + 1 + 2, 16 + 2}, {16 + 1 + 5, 16 + 3}});
  CHECK(scheduler.progress(0).streams[0].computed == 6);
  CHECK(scheduler.progress(0).streams[1].computed == 4);
}

TEST_CASE("drafts end where the output does", "[scheduler]") {
  Scheduler scheduler(SchedulerOptions{}, fixed(8));
  scheduler.add(request(2, 4));
  RequestSpec tree = request(2, 4);
  tree.draft_trees = true;
  scheduler.add(tree);
  const StepPlan& plan = scheduler.plan();
  CHECK(plan.requests[0].num_drafts_max == 3);
  CHECK(plan.requests[1].num_drafts_max == 8);
  CHECK(plan.requests[1].draft_depth_max == 3);
}

TEST_CASE("a pair is in every step whole and samples in one", "[scheduler]") {
  SchedulerOptions options;
  options.token_budget = 10;
  Scheduler scheduler(options, fixed(2));
  RequestSpec spec = request(4, 5);
  spec.companion_prompt_len = 20;
  scheduler.add(spec);
  const std::vector<std::array<std::int32_t, 2>> counts = {{3, 7}, {0, 10}, {1, 3}};
  for (const auto& count : counts) {
    const PlannedRequest planned = scheduler.plan().requests.at(0);
    CHECK(planned.streams[0].num_tokens == count[0]);
    CHECK(planned.streams[1].num_tokens == count[1]);
    CHECK(planned.sample == (count[0] == 1));
    CHECK(planned.num_drafts_max == (count[0] == 1 ? 2 : 0));
    StepPlan plan;
    plan.requests = {planned};
    scheduler.commit(outcome_of(plan, 2));
  }
  CHECK(scheduler.progress(0).output_len == 3);
  CHECK(scheduler.plan().requests.at(0).streams[1].num_tokens == 1);
}

TEST_CASE("where blocks are missing the youngest is preempted and computed again later", "[scheduler]") {
  SchedulerOptions options;
  options.num_blocks = 3;
  Scheduler scheduler(options);
  const RequestHandle old = scheduler.add(request(16, 20));
  const RequestHandle young = scheduler.add(request(14, 20));
  scheduler.commit(outcome_of(scheduler.plan()));  // 16 and 14 computed
  scheduler.commit(outcome_of(scheduler.plan()));  // 17 and 15: three blocks
  scheduler.commit(outcome_of(scheduler.plan()));  // 18 and 16
  const StepPlan& plan = scheduler.plan();         // 17 of the young one need a fourth block
  REQUIRE(plan.requests.size() == 1);
  CHECK(plan.requests[0].request == old);
  CHECK(scheduler.progress(young).state == RequestState::waiting);
  CHECK(scheduler.progress(young).streams[0].computed == 0);
  CHECK(scheduler.metrics().preemptions == 1);
  scheduler.commit(outcome_of(plan));
  while (scheduler.progress(old).state == RequestState::running) {
    CHECK(scheduler.plan().requests.size() == 1);  // 17 tokens do not fit beside the old one's 2 blocks
    scheduler.commit(outcome_of(plan));
  }
  const StepPlan& again = scheduler.plan();
  REQUIRE(again.requests.size() == 1);
  CHECK(again.requests[0].request == young);
  CHECK(again.requests[0].streams[0].num_tokens == 17);  // 14 of the prompt and 3 of its output
  CHECK(again.requests[0].sample);
  scheduler.commit(outcome_of(again));
  CHECK(scheduler.metrics().recomputed_tokens == 16);
  CHECK(scheduler.metrics().prompt_tokens == 30);
}

TEST_CASE("a request that is swapped out comes back with what it had computed", "[scheduler]") {
  SchedulerOptions options;
  options.num_blocks = 3;
  options.preemption = Preemption::swap;
  options.num_swap_blocks = 2;
  Scheduler scheduler(options);
  scheduler.add(request(16, 4));
  const RequestHandle young = scheduler.add(request(14, 20));
  for (int i = 0; i < 3; ++i) scheduler.commit(outcome_of(scheduler.plan()));
  const StepPlan& plan = scheduler.plan();
  REQUIRE(plan.swap_out.size() == 1);
  CHECK(plan.swap_out[0].from == 1);
  CHECK(plan.swap_out[0].to == 0);
  CHECK(scheduler.progress(young).state == RequestState::swapped);
  scheduler.commit(outcome_of(plan));  // the old one ends
  const StepPlan& back = scheduler.plan();
  REQUIRE(back.swap_in.size() == 1);
  CHECK(back.swap_in[0].from == 0);
  REQUIRE(back.requests.size() == 1);
  CHECK(back.requests[0].streams[0].context.length == 16);
  CHECK(back.requests[0].streams[0].num_tokens == 1);
  CHECK(back.requests[0].streams[0].context.blocks[0] == back.swap_in[0].to);
  scheduler.commit(outcome_of(back));
  CHECK(scheduler.metrics().recomputed_tokens == 0);
}

TEST_CASE("requests with equal keys share their full blocks, also after the first has gone", "[scheduler]") {
  Scheduler scheduler(SchedulerOptions{});
  const std::vector<std::uint64_t> keys = {11, 22};
  RequestSpec spec = request(32, 5);  // two full blocks; the last token is computed anew all the same
  spec.block_keys = keys;
  scheduler.add(spec);
  scheduler.commit(outcome_of(scheduler.plan()));
  RequestSpec longer = request(40, 5);
  longer.block_keys = keys;
  scheduler.add(spec);
  scheduler.add(longer);
  const StepPlan& plan = scheduler.plan();
  REQUIRE(plan.requests.size() == 3);
  CHECK(plan.requests[1].streams[0].context.length == 16);
  CHECK(plan.requests[1].streams[0].num_tokens == 16);
  CHECK(plan.requests[2].streams[0].context.length == 32);
  CHECK(blocks_of(plan.requests[2].streams[0])[1] == 1);
  CHECK(scheduler.blocks().references(0) == 3);
  scheduler.commit(outcome_of(plan));
  CHECK(scheduler.metrics().prefix_hits == 16 + 32);
  CHECK(scheduler.metrics().prefix_queries == 32 + 32 + 40);
  for (RequestHandle handle = 0; handle < 3; ++handle) CHECK(scheduler.cancel(handle));
  CHECK(scheduler.blocks().num_held() == 0);
  scheduler.plan();
  scheduler.add(longer);
  CHECK(scheduler.plan().requests.at(0).streams[0].context.length == 32);
}

TEST_CASE("blocks that the output fills are shared when their keys are given", "[scheduler]") {
  Scheduler scheduler(SchedulerOptions{});
  const std::vector<std::uint64_t> keys = {1, 2};
  const RequestHandle first = scheduler.add(request(15, 40));
  for (int i = 0; i < 2; ++i) scheduler.commit(outcome_of(scheduler.plan()));
  CHECK(error_of(ErrorKind::input, [&] { scheduler.append_block_keys(first, 0, keys); }) ==
        "block keys: there are 2; expected at most 1, one for each full block");
  scheduler.append_block_keys(first, 0, std::span(keys).first(1));
  scheduler.commit(outcome_of(scheduler.plan()));
  RequestSpec follow_up = request(33, 5);
  follow_up.block_keys = keys;
  scheduler.add(follow_up);
  const StepPlan& plan = scheduler.plan();
  REQUIRE(plan.requests.size() == 2);
  CHECK(plan.requests[1].streams[0].context.length == 16);
  CHECK(plan.requests[1].streams[0].context.blocks[0] == plan.requests[0].streams[0].context.blocks[0]);
}

TEST_CASE("cancelling ends a request wherever it is", "[scheduler]") {
  SchedulerOptions options;
  options.running_max = 2;
  Scheduler scheduler(options);
  const RequestHandle running = scheduler.add(request(5, 9));
  const RequestHandle planned = scheduler.add(request(5, 9));
  const RequestHandle waiting = scheduler.add(request(5, 9));
  scheduler.commit(outcome_of(scheduler.plan()));
  CHECK(scheduler.cancel(waiting));
  CHECK(scheduler.cancel(running));
  CHECK_FALSE(scheduler.cancel(running));
  CHECK(scheduler.finished().size() == 2);
  const StepPlan& plan = scheduler.plan();
  CHECK(scheduler.cancel(planned));
  CHECK(scheduler.finished().empty());
  scheduler.commit(outcome_of(plan));
  REQUIRE(scheduler.finished().size() == 1);
  CHECK(scheduler.progress(planned).end == RequestEnd::cancelled);
  CHECK(scheduler.progress(planned).output_len == 1);  // of the step before
  CHECK(scheduler.idle());
  CHECK(scheduler.metrics().ended[static_cast<std::size_t>(RequestEnd::cancelled)] == 3);
}

TEST_CASE("a request that fails or stops leaves the others alone", "[scheduler]") {
  Scheduler scheduler(SchedulerOptions{}, fixed(3));
  for (int i = 0; i < 3; ++i) scheduler.add(request(5, 9));
  const StepPlan& plan = scheduler.plan();
  StepOutcome outcome = outcome_of(plan, 3);
  outcome.sequences[0] = {0, 0, 0, -1, false, SequenceEnd::failed};
  outcome.sequences[1].num_emitted = 2;  // the stop token is the second of four
  outcome.sequences[1].end = SequenceEnd::stop;
  scheduler.commit(outcome);
  CHECK(scheduler.progress(0).end == RequestEnd::failed);
  CHECK(scheduler.progress(0).output_len == 0);
  CHECK(scheduler.progress(1).end == RequestEnd::stop);
  CHECK(scheduler.progress(1).output_len == 2);
  CHECK(scheduler.progress(2).state == RequestState::running);
  CHECK(scheduler.progress(2).output_len == 4);
  CHECK(scheduler.metrics().acceptance.discarded_tokens == 2);
  CHECK(scheduler.plan().requests.size() == 1);
}

TEST_CASE("two phases keep prompts, plain steps and speculation apart", "[scheduler]") {
  SchedulerOptions options;
  options.policy = StepPolicy::two_phase;
  Scheduler scheduler(options, fixed(2));
  scheduler.add(request(5, 9));
  RequestSpec plain = request(5, 9);
  plain.num_drafts_max = 0;
  scheduler.add(plain);
  std::vector<StepPhase> phases;
  for (int i = 0; i < 5; ++i) {
    if (i == 3) scheduler.add(request(5, 9));
    const StepPlan& plan = scheduler.plan();
    phases.push_back(plan.phase);
    for (const PlannedRequest& planned : plan.requests)
      CHECK((planned.num_drafts_max > 0) == (plan.phase == StepPhase::speculative));
    scheduler.commit(outcome_of(plan));
  }
  CHECK(phases == std::vector{StepPhase::prefill, StepPhase::speculative, StepPhase::normal, StepPhase::prefill,
                              StepPhase::speculative});
}

TEST_CASE("a step with the end of a prompt drafts only where that is asked for", "[scheduler]") {
  for (const bool drafts : {false, true}) {
    SchedulerOptions options;
    options.drafts_with_prefill = drafts;
    Scheduler scheduler(options, fixed(2));
    scheduler.add(request(5, 9));
    CHECK(scheduler.plan().requests.at(0).num_drafts_max == (drafts ? 2 : 0));
  }
}

TEST_CASE("without chunks a prompt waits for a step that holds it", "[scheduler]") {
  SchedulerOptions options;
  options.token_budget = 30;
  options.chunked_prefill = false;
  Scheduler scheduler(options);
  scheduler.add(request(20, 5));
  scheduler.add(request(20, 5));
  CHECK(scheduler.plan().requests.size() == 1);
}

TEST_CASE("a request that can never run is refused by name and nothing else suffers", "[scheduler]") {
  SchedulerOptions options;
  options.num_blocks = 4;
  options.context_len_max = 100;
  options.waiting_max = 2;
  Scheduler scheduler(options);
  const auto message = [&](const RequestSpec& spec) {
    return error_of(ErrorKind::input, [&] { scheduler.add(spec, "request 7"); });
  };
  CHECK(message(request(100, 1)) ==
        "request 7: the prompt has 100 tokens; expected at most 99, so that one more fits into the context of 100");
  CHECK(message(request(0, 1)) == "request 7: the prompt is empty; expected at least 1 token");
  CHECK(message(request(1, 0)) == "request 7: output_len_max is 0; expected 1 token or more");
  CHECK(message(request(60, 6)) == "request 7: it may need 5 KV blocks; expected at most the 4 of the cache");
  const std::vector<std::uint64_t> keys = {1, 2};
  RequestSpec keyed = request(31, 1);
  keyed.block_keys = keys;
  CHECK(message(keyed) == "request 7: the prompt has 2 block keys; expected at most 1, one for each full block");
  RequestSpec pair = request(30, 3);
  pair.companion_prompt_len = 100;
  CHECK(message(pair).find("the unconditional prompt has 100 tokens") != std::string::npos);
  CHECK(scheduler.idle());
  scheduler.add(request(60, 5));  // exactly 4 blocks: its last token is never computed
  scheduler.add(request(1, 1));
  CHECK(message(request(1, 1)) == "request 7: 2 requests wait; expected fewer than 2");
  CHECK(scheduler.plan().requests.size() == 1);

  options.token_budget = 1;
  Scheduler narrow(options);
  RequestSpec small_pair = request(3, 3);
  small_pair.companion_prompt_len = 3;
  CHECK(error_of(ErrorKind::input, [&] { narrow.add(small_pair); }) ==
        "request: it needs 2 tokens in one step; expected at most the token budget of 1");
}

TEST_CASE("the output ends where the context does", "[scheduler]") {
  SchedulerOptions options;
  options.context_len_max = 8;
  Scheduler scheduler(options);
  const RequestHandle handle = scheduler.add(request(6, 1000));
  CHECK(scheduler.progress(handle).output_len_max == 2);
}

TEST_CASE("options out of range are refused by name", "[scheduler]") {
  SchedulerOptions options;
  options.token_budget = 0;
  CHECK(error_of(ErrorKind::usage, [&] { Scheduler{options}; }) == "token_budget: it is 0; expected 1 or more");
}

TEST_CASE("an outcome that is not the plan's is an error and changes nothing", "[scheduler]") {
  Scheduler scheduler(SchedulerOptions{}, fixed(3));
  const RequestHandle handle = scheduler.add(request(5, 9));
  const StepPlan& plan = scheduler.plan();
  const auto message = [&](SequenceOutcome sequence, std::vector<std::int32_t> paths = {}) {
    StepOutcome outcome;
    outcome.sequences = {sequence};
    outcome.paths = std::move(paths);
    return error_of(ErrorKind::internal, [&] { scheduler.commit(outcome); });
  };
  CHECK(message({4, 0, 1}).find("4 drafted, 0 accepted, 1 emitted; expected at most 3 drafts") != std::string::npos);
  CHECK(message({2, 3, 4}).find("3 accepted") != std::string::npos);
  CHECK(message({3, 2, 2}).find("one token more than are accepted") != std::string::npos);
  CHECK(message({3, 2, 3, 0}, {1}).find("ends behind the paths") != std::string::npos);
  CHECK(message({3, 2, 3, 0}, {1, 1}).find("has node 1; expected ascending nodes below 3") != std::string::npos);
  CHECK_THAT(error_of(ErrorKind::internal, [&] { scheduler.commit(StepOutcome{}); }), Contains("expected 1"));
  CHECK(error_of(ErrorKind::internal, [&] { scheduler.plan(); }).find("has not been committed") != std::string::npos);
  CHECK(scheduler.progress(handle).streams[0].computed == 8);  // still as planned
  scheduler.commit(outcome_of(plan, 3));
  CHECK(scheduler.progress(handle).output_len == 4);
  CHECK_THAT(error_of(ErrorKind::internal, [&] { scheduler.commit(StepOutcome{}); }), Contains("there is no plan"));
}

}  // namespace
