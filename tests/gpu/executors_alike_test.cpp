// Compares what the reference and the kernels on the CPU executor report for data with several errors.
#include "gpu/draftproof.h"
#include "tests/support/test.hpp"

namespace {

using Call = int (*)(const draftproof_verify_arguments*, const draftproof_settings*);
using Bytes = int64_t (*)(const draftproof_verify_arguments*);

// One request with two drafts over two tokens.
struct Request {
  std::vector<std::int64_t> cu_num_draft_tokens = {0, 2};
  std::vector<std::int32_t> draft_tokens = {0, 0};
  std::vector<float> target = std::vector<float>(6, 0.5f);
  std::uint64_t seed = 1;
  std::uint32_t step = 0;
  std::int32_t num_accepted = -1;
  std::vector<std::int32_t> tokens = std::vector<std::int32_t>(3, -7);
  std::int32_t status = -1;
  draftproof_verify_arguments arguments{};

  Request() {
    draftproof_verify_arguments& a = arguments;
    a.requests = 1;
    a.draft_tokens_total = a.draft_len_max = a.vocab_size = 2;
    a.draft_tokens = draft_tokens.data();
    a.cu_num_draft_tokens = cu_num_draft_tokens.data();
    a.target_kind = DRAFTPROOF_PROBABILITIES;
    a.target = {target.data(), 2, DRAFTPROOF_F32};
    a.randomness = {&seed, &step};
    a.num_accepted = &num_accepted;
    a.tokens = tokens.data();
    a.status = &status;
  }

  std::int32_t status_of(Call call, Bytes workspace_bytes, std::int32_t executor) {
    arguments.workspace_bytes = workspace_bytes(&arguments);
    REQUIRE(arguments.workspace_bytes >= 0);
    std::vector<std::byte> memory(static_cast<std::size_t>(arguments.workspace_bytes) + 256);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    arguments.workspace = memory.data() + (256 - address % 256) % 256;
    draftproof_settings settings{};
    settings.executor = executor;
    INFO(draftproof_error_message());
    REQUIRE(call(&arguments, &settings) == DRAFTPROOF_SUCCESS);
    return status;
  }
};

}  // namespace

TEST_CASE("block verification reports a history too long for a later draft before an invalid stop id", "[device_api]") {
  const float penalty = 1.5f;
  const std::int32_t stop = 7;
  const std::int32_t history = 0;
  const std::int64_t offsets[] = {0, 1};
  for (const std::int32_t executor : {DRAFTPROOF_REFERENCE, DRAFTPROOF_SIMT}) {
    Request request;
    draftproof_verify_arguments& a = request.arguments;
    a.target_kind = DRAFTPROOF_LOGITS;
    a.parameters.repetition_penalty = &penalty;
    draftproof_constraints& c = a.constraints;
    c.stop_ids = &stop;
    c.stop_offsets = offsets;
    c.stop_ids_count = 1;
    c.history_tokens = &history;
    c.history_offsets = offsets;
    c.history_tokens_count = 1;
    c.history_len_max = 1;
    CHECK(request.status_of(draftproof_verify_block, draftproof_verify_block_workspace_bytes, executor) ==
          DRAFTPROOF_ROW_BAD_PARAMETER);
    // A chain comes to its first row, whose history is short enough, and no further.
    CHECK(request.status_of(draftproof_verify_chain, draftproof_verify_chain_workspace_bytes, executor) ==
          DRAFTPROOF_ROW_BAD_ID);
  }
}

TEST_CASE("block verification reports logits before probabilities, with log-probabilities and without",
          "[device_api]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> proposal = {0.0f, 0.0f, nan, 0.0f};
  for (const std::int32_t executor : {DRAFTPROOF_REFERENCE, DRAFTPROOF_SIMT}) {
    for (const bool wants_logprobs : {false, true}) {
      Request request;
      request.target[0] = -1.0f;
      request.arguments.proposal_kind = DRAFTPROOF_LOGITS;
      request.arguments.proposal = {proposal.data(), 2, DRAFTPROOF_F32};
      std::vector<float> logprobs(3);
      if (wants_logprobs) request.arguments.logprobs = logprobs.data();
      CHECK(request.status_of(draftproof_verify_block, draftproof_verify_block_workspace_bytes, executor) ==
            DRAFTPROOF_ROW_NAN_LOGIT);
      CHECK(request.status_of(draftproof_verify_chain, draftproof_verify_chain_workspace_bytes, executor) ==
            DRAFTPROOF_ROW_BAD_PROBABILITY);
    }
  }
}

TEST_CASE("with the drafter's row sums a chain reads of a proposal row that is not rejected its draft alone",
          "[device_api]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> proposal = {0.0f, nan, nan, 0.0f, nan, nan};
  const std::vector<std::int32_t> exponent = {0, 0};
  std::vector<std::uint64_t> total(2, std::uint64_t{3} << 44);  // of three logits 0
  const std::vector<std::int32_t> status = {0, 0};
  Request request;
  request.target = {8.0f, 0.0f, 0.0f, 8.0f, 0.0f, 0.0f, 8.0f, 0.0f, 0.0f};  // above the proposal: both are accepted
  draftproof_verify_arguments& a = request.arguments;
  a.vocab_size = 3;
  a.target_kind = a.proposal_kind = DRAFTPROOF_LOGITS;
  a.target = {request.target.data(), 3, DRAFTPROOF_F32};
  a.proposal = {proposal.data(), 3, DRAFTPROOF_F32};
  const auto kernels_say = [&] {
    return request.status_of(draftproof_verify_chain, draftproof_verify_chain_workspace_bytes, DRAFTPROOF_SIMT);
  };
  CHECK(kernels_say() == DRAFTPROOF_ROW_NAN_LOGIT);
  a.proposal_sums = {exponent.data(), total.data(), status.data()};
  CHECK(kernels_say() == DRAFTPROOF_ROW_OK);
  CHECK(request.num_accepted == 2);
  CHECK(request.tokens[1] == 0);
  total[1] = 0;  // which no row has
  CHECK(kernels_say() == DRAFTPROOF_ROW_NOTHING_LEFT);
}
