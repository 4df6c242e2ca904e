// Refusals by the host before a call runs: each message names call and argument, the value, and what was expected.
#include "gpu/api.hpp"

#include "tests/gpu/call_arguments.hpp"
#include "tests/support/test.hpp"

namespace {

// The message of a call that must be refused as wrongly used.
template <class Arguments>
std::string refusal(void (*call)(const Arguments&, const draftproof_settings&), const Arguments& arguments,
                    draftproof_settings settings = {}) {
  return error_of(ErrorKind::usage, [&] { call(arguments, settings); });
}

draftproof_sample_arguments valid_sample() {
  draftproof_sample_arguments a{};
  a.rows = 2;
  a.requests = 2;
  a.vocab_size = 100;
  a.logits = rows_of(100);
  a.randomness = {any<std::uint64_t>(), any<std::uint32_t>()};
  a.sampler = DRAFTPROOF_RACE;
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = any<std::int32_t>();
  a.status = any<std::int32_t>();
  a.workspace = refused_memory.data();
  a.workspace_bytes = device::sample_workspace_bytes(a);
  return a;
}

draftproof_verify_arguments valid_verify() {
  draftproof_verify_arguments a = verify_call();
  a.target_kind = DRAFTPROOF_PROBABILITIES;
  a.target = rows_of(100);
  a.proposal_kind = DRAFTPROOF_PROBABILITIES;
  a.proposal = rows_of(128);
  a.workspace = refused_memory.data();
  a.workspace_bytes = static_cast<std::int64_t>(refused_memory.size());
  return a;
}

draftproof_verify_arguments valid_tree() {
  draftproof_verify_arguments a = valid_verify();
  a.parents = any<std::int32_t>();
  a.tree_rule = DRAFTPROOF_RRSW;
  return a;
}

// `valid` with one thing changed.
template <class Arguments, class Change>
Arguments but(Arguments valid, Change change) {
  change(valid);
  return valid;
}

TEST_CASE("settings out of range are refused", "[device_api]") {
  const draftproof_tree_mask_arguments nothing{};
  draftproof_settings settings{};
  settings.executor = 7;
  CHECK(refusal(device::tree_mask, nothing, settings) == "settings, executor: it is 7; expected 0 to 2");
  settings = {};
  settings.block_threads = 64;
  CHECK(refusal(device::tree_mask, nothing, settings) ==
        "settings, block_threads: it is 64; expected 0, 128, 256 or 512");
  settings = {};
  settings.os_threads = -1;
  CHECK(refusal(device::tree_mask, nothing, settings) == "settings, os_threads: it is -1; expected 0 to 1024");
}

TEST_CASE("a batch of nothing needs no arrays", "[device_api]") {
  for (const std::int32_t executor : {DRAFTPROOF_REFERENCE, DRAFTPROOF_SIMT}) {
    draftproof_settings settings{};
    settings.executor = executor;
    draftproof_verify_arguments verify{};
    verify.vocab_size = 10;
    device::verify_chain(verify, settings);
    device::verify_block(verify, settings);
    device::verify_tree(verify, settings);
    draftproof_sample_arguments sample{};
    sample.vocab_size = 10;
    device::sample(sample, settings);
    device::tree_mask({}, settings);
    device::kv_commit({}, settings);
  }
}

TEST_CASE("rows of logits are refused by vocabulary, pointer, stride, type and address", "[device_api]") {
  const auto message = [](auto change) { return refusal(device::sample, but(valid_sample(), change)); };
  using A = draftproof_sample_arguments;
  CHECK(message([](A& a) { a.vocab_size = 0; }) == "sample, vocab_size: it is 0; expected 1 to 524288");
  CHECK(message([](A& a) { a.vocab_size = 524289; }) == "sample, vocab_size: it is 524289; expected 1 to 524288");
  CHECK(message([](A& a) { a.rows = -1; }) == "sample, rows: it is -1; expected 0 or more");
  CHECK(message([](A& a) { a.rows = std::int64_t{1} << 31; }) ==
        "sample, rows: it is 2147483648; expected at most 2147483647 rows of this vocabulary");
  CHECK(message([](A& a) { a.rows = 3; }) == "sample, requests: it is 2; expected 3 or more");
  CHECK(message([](A& a) { a.logits.data = nullptr; }) == "sample, logits.data: it is NULL; expected an array");
  CHECK(message([](A& a) { a.logits.row_stride = 99; }) == "sample, logits.row_stride: it is 99; expected 100 or more");
  CHECK(message([](A& a) { a.logits.dtype = 3; }) == "sample, logits.dtype: it is 3; expected 0 to 2");
  CHECK(message([](A& a) { a.logits.data = refused_memory.data() + 2; }) ==
        "sample, logits.data: it is an address with remainder 2; expected a multiple of the element's 4 bytes");
  CHECK(message([](A& a) {
          a.unconditional = {refused_memory.data(), 5, DRAFTPROOF_F32};
        }) == "sample, unconditional.row_stride: it is 5; expected 100 or more");
}

TEST_CASE("a sampling call is refused by what it lacks", "[device_api]") {
  const auto message = [](auto change) { return refusal(device::sample, but(valid_sample(), change)); };
  using A = draftproof_sample_arguments;
  CHECK(message([](A& a) { a.randomness.seed = nullptr; }) == "sample, randomness.seed: it is NULL; expected an array");
  CHECK(message([](A& a) { a.randomness.step = nullptr; }) == "sample, randomness.step: it is NULL; expected an array");
  CHECK(message([](A& a) { a.sampler = 2; }) == "sample, sampler: it is 2; expected 0 to 1");
  CHECK(message([](A& a) { a.purpose = 2; }) ==
        "sample, purpose: it is 2; expected 1 (draft sample) or 4 (target sample)");
  CHECK(message([](A& a) { a.tokens = nullptr; }) == "sample, tokens: it is NULL; expected an array");
  CHECK(message([](A& a) { a.status = nullptr; }) == "sample, status: it is NULL; expected an array");
  CHECK(message([](A& a) {
          a.probabilities = any<float>();
          a.probabilities_stride = 10;
        }) == "sample, probabilities_stride: it is 10; expected 100 or more");
}

TEST_CASE("constraints that mean something together only are refused alone", "[device_api]") {
  const auto message = [](auto change) {
    return refusal(device::sample, but(valid_sample(), [&](draftproof_sample_arguments& a) { change(a.constraints); }));
  };
  using C = draftproof_constraints;
  CHECK(message([](C& c) { c.allowed_mask = any<std::uint32_t>(); }) ==
        "sample, constraints.allowed_mask_stride: it is 0; expected 4 or more");
  CHECK(message([](C& c) { c.allowed_ids = any<std::int32_t>(); }) ==
        "sample, constraints.allowed_offsets: it is NULL; expected an array where constraints.allowed_ids is given");
  CHECK(message([](C& c) { c.history_offsets = any<std::int64_t>(); }) ==
        "sample, constraints.history_tokens: it is NULL; expected an array where constraints.history_offsets is given");
  CHECK(message([](C& c) { c.bad_word_tokens = any<std::int32_t>(); }).find("bad_word_offsets: it is NULL") !=
        std::string::npos);
  CHECK(message([](C& c) { c.stop_ids = any<std::int32_t>(); }).find("stop_offsets: it is NULL") != std::string::npos);
  CHECK(message([](C& c) { c.bias_values = any<float>(); }).find("bias_tokens: it is NULL") != std::string::npos);
  CHECK(message([](C& c) { c.row_draft_len = any<std::int32_t>(); }).find("row_draft_tokens: it is NULL") !=
        std::string::npos);
  CHECK(message([](C& c) { c.history_len_max = -1; }) ==
        "sample, constraints.history_len_max: it is -1; expected 0 to 2147483647");
}

TEST_CASE("a workspace is refused where it is missing, too small or askew", "[device_api]") {
  draftproof_settings simt{};
  simt.executor = DRAFTPROOF_SIMT;
  const draftproof_sample_arguments valid = valid_sample();
  REQUIRE(valid.workspace_bytes > 0);
  using A = draftproof_sample_arguments;
  const auto message = [&](auto change) { return refusal(device::sample, but(valid, change), simt); };
  CHECK(message([](A& a) { --a.workspace_bytes; }) == "sample, workspace_bytes: it is " +
                                                          std::to_string(valid.workspace_bytes - 1) + "; expected " +
                                                          std::to_string(valid.workspace_bytes) + " or more");
  CHECK(message([](A& a) { a.workspace = nullptr; }) == "sample, workspace: it is NULL; expected an array");
  CHECK(message([](A& a) { a.workspace = refused_memory.data() + 16; }) ==
        "sample, workspace: it is an address with remainder 16; expected a multiple of 256 bytes");
}

TEST_CASE("log-probabilities are refused by their number and outputs", "[device_api]") {
  draftproof_logprobs_arguments a{};
  a.vocab_size = 10;
  a.n = 1025;
  CHECK(refusal(device::logprobs, a) == "logprobs, n: it is 1025; expected 0 to 1024");
  a.n = 1;
  a.ids_max = 129;
  CHECK(refusal(device::logprobs, a) == "logprobs, ids_max: it is 129; expected 0 to 128");
  a.ids_max = 128;
  a.rows = a.requests = 1;
  a.logits = rows_of(10);
  CHECK(refusal(device::logprobs, a) == "logprobs, sampled: it is NULL; expected an array");
  a.ids = any<std::int32_t>();
  CHECK(refusal(device::logprobs, a) == "logprobs, ids_offsets: it is NULL; expected an array where ids is given");
}

TEST_CASE("rows across devices have no other rule of top-p", "[device_api]") {
  draftproof_shard_select_arguments a{};
  a.shard.rows = 1;
  a.shard.vocab_size = a.shard.end = 10;
  a.shard.devices = 1;
  a.shard.logits = rows_of(10);
  a.message = any<std::uint64_t>();
  a.parameters.top_p_rule = any<std::uint8_t>();
  CHECK(refusal(device::shard_select, a) ==
        "shard_select, parameters.top_p_rule: it is not NULL; expected NULL: rows across devices have rule 0 alone");
}

TEST_CASE("mass pass and guidance are refused by what they lack", "[device_api]") {
  draftproof_mass_pass_arguments mass{};
  mass.rows = 1;
  mass.vocab_size = 10;
  mass.logits = rows_of(10);
  CHECK(refusal(device::mass_pass, mass) == "mass_pass, tile_sum: it is NULL; expected an array");
  draftproof_guidance_arguments guidance{};
  guidance.rows = 1;
  guidance.vocab_size = 10;
  guidance.conditional = rows_of(10);
  CHECK(refusal(device::guidance, guidance) == "guidance, unconditional.data: it is NULL; expected an array");
  guidance.unconditional = rows_of(10);
  guidance.scale = any<float>();
  guidance.out = any<float>();
  CHECK(refusal(device::guidance, guidance) == "guidance, out_stride: it is 0; expected 10 or more");
}

TEST_CASE("verification of chains is refused by its drafts, rows and outputs", "[device_api]") {
  using A = draftproof_verify_arguments;
  const auto message = [](auto change) { return refusal(device::verify_chain, but(valid_verify(), change)); };
  CHECK(message([](A& a) { a.requests = -1; }) == "verify_chain, requests: it is -1; expected 0 to 2147483647");
  CHECK(message([](A& a) { a.draft_len_max = 2; }) ==
        "verify_chain, draft_tokens_total: it is 5; expected at most 4 (requests times draft_len_max)");
  CHECK(message([](A& a) { a.draft_tokens = nullptr; }).find("verify_chain, draft_tokens: it is NULL") == 0);
  CHECK(message([](A& a) { a.cu_num_draft_tokens = nullptr; }).find("verify_chain, cu_num_draft_tokens: it is NULL") ==
        0);
  CHECK(message([](A& a) { a.target_kind = DRAFTPROOF_ONE_HOT; }) ==
        "verify_chain, target_kind: it is 0; expected 1 to 2");
  CHECK(message([](A& a) { a.proposal_kind = 3; }) == "verify_chain, proposal_kind: it is 3; expected 0 to 2");
  CHECK(message([](A& a) { a.proposal.row_stride = 99; }) ==
        "verify_chain, proposal.row_stride: it is 99; expected 100 or more");
  CHECK(message([](A& a) { a.parents = any<std::int32_t>(); }) ==
        "verify_chain, parents: it is not NULL; expected NULL: a tree has another call");
  CHECK(message([](A& a) { a.path = any<std::int32_t>(); }).find("verify_chain, path: it is not NULL") == 0);
  CHECK(message([](A& a) {
          a.target_kind = DRAFTPROOF_LOGITS;
          a.constraints.row_draft_tokens = any<std::int32_t>();
          a.constraints.row_draft_begin = any<std::int64_t>();
          a.constraints.row_draft_len = any<std::int32_t>();
        }).find("constraints.row_draft_tokens: it is not NULL") != std::string::npos);
  CHECK(message([](A& a) {
          a.proposal_kind = DRAFTPROOF_LOGITS;
          a.draft_parameters.repetition_penalty = any<float>();
        }).find("draft_parameters.repetition_penalty: it is not NULL") != std::string::npos);
  const auto gives_sums = [](A& a) {
    a.proposal_kind = DRAFTPROOF_LOGITS;
    a.proposal_sums = {any<std::int32_t>(), any<std::uint64_t>(), any<std::int32_t>()};
  };
  CHECK(message([&](A& a) {
          gives_sums(a);
          a.proposal_sums.status = nullptr;
        }) == "verify_chain, proposal_sums.status: it is NULL; expected an array");
  CHECK(message([&](A& a) {
          gives_sums(a);
          a.draft_parameters.top_k = any<std::int32_t>();
        }).find("verify_chain, draft_parameters.top_k: it is not NULL") == 0);
  CHECK(message([&](A& a) {
          gives_sums(a);
          a.proposal_kind = DRAFTPROOF_PROBABILITIES;
        }).find("verify_chain, proposal_sums.row_exponent: it is not NULL") == 0);
  CHECK(message([](A& a) { a.num_accepted = nullptr; }) == "verify_chain, num_accepted: it is NULL; expected an array");
}

TEST_CASE("verification of trees is refused by rule, size, parents and proposals", "[device_api]") {
  using A = draftproof_verify_arguments;
  const auto message = [](auto change) { return refusal(device::verify_tree, but(valid_tree(), change)); };
  CHECK(message([](A& a) { a.tree_rule = 2; }) == "verify_tree, tree_rule: it is 2; expected 0 to 1");
  CHECK(message([](A& a) { a.draft_len_max = 1025; }) == "verify_tree, draft_len_max: it is 1025; expected 0 to 1024");
  CHECK(message([](A& a) { a.parents = nullptr; }) == "verify_tree, parents: it is NULL; expected an array");
  CHECK(message([](A& a) { a.proposal_kind = DRAFTPROOF_ONE_HOT; }) ==
        "verify_tree, proposal_kind: it is 0; expected 1 to 2");
  CHECK(message([](A& a) {
          a.proposal_sums = {any<std::int32_t>(), any<std::uint64_t>(), any<std::int32_t>()};
        }).find("verify_tree, proposal_sums.row_exponent: it is not NULL") == 0);
  CHECK(message([](A& a) { a.proposal.data = nullptr; }) ==
        "verify_tree, proposal.data: it is NULL; expected an array");
}

TEST_CASE("tree masks and slot commits are refused by their sizes", "[device_api]") {
  draftproof_tree_mask_arguments mask{};
  mask.requests = 1;
  mask.draft_tokens_total = mask.draft_len_max = 32;
  mask.cu_num_draft_tokens = any<std::int64_t>();
  mask.parents = any<std::int32_t>();
  mask.depths = any<std::int32_t>();
  mask.mask = any<std::uint32_t>();
  mask.words_per_row = 1;
  CHECK(refusal(device::tree_mask, mask) == "tree_mask, words_per_row: it is 1; expected 2 or more");

  using A = draftproof_kv_commit_arguments;
  const auto message = [](auto change) { return refusal(device::kv_commit, but(kv_commit_call(), change)); };
  CHECK(message([](A& a) { a.num_slots = 0; }) == "kv_commit, num_slots: it is 0; expected 1 or more");
  CHECK(message([](A& a) { a.slot_bytes = 17; }) == "kv_commit, slot_stride_bytes: it is 16; expected 17 or more");
  CHECK(
      message([](A& a) { a.layer_stride_bytes = 0; }) ==
      "kv_commit, layer_stride_bytes: it is 0; expected 128 or more, so that the entries of two layers do not overlap");
  CHECK(message([](A& a) { a.layer_stride_bytes = 127; }).find("kv_commit, layer_stride_bytes: it is 127; ") == 0);
  CHECK(message([](A& a) {
          a.layer_stride_bytes = 16;
          a.slot_stride_bytes = 31;
        }).find("kv_commit, layer_stride_bytes: it is 16; ") == 0);
  CHECK(message([](A& a) { a.cache = nullptr; }) == "kv_commit, cache: it is NULL; expected an array");
  CHECK(message([](A& a) { a.layers = std::int64_t{1} << 31; }).find("kv_commit, layers: it is 2147483648; ") == 0);
}

TEST_CASE("executors have names", "[device_api]") {
  CHECK(std::string(device::executor_name(DRAFTPROOF_SIMT)) == "simt");
  CHECK(device::why_unavailable(DRAFTPROOF_SIMT).empty());
  CHECK(error_of(ErrorKind::usage, [] {
          device::executor_name(static_cast<draftproof_executor>(3));
        }).find("it is 3") != std::string::npos);
}

}  // namespace
