#include "exactness/bugs/processor/replay.hpp"

#include "tests/support/test.hpp"

namespace {

ReplayRequest request_with_everything() {
  static const std::vector<Token> stop_ids{1, 2};
  static const LogitBias bias{3, 2.0f};
  static const BadWords bad_words({{4, 5}, {6}}, kReplayVocabSize);
  ReplayRequest request;
  request.parameters.temperature = 1.5f;
  request.parameters.repetition_penalty = 1.25f;
  request.parameters.frequency_penalty = 0.5f;
  request.parameters.filters.top_p = 0.9f;
  request.constraints.min_tokens = 10;
  request.constraints.stop_ids = stop_ids;
  request.constraints.logit_bias = std::span(&bias, 1);
  request.constraints.bad_words = &bad_words;
  request.grammar = [](std::span<const Token> tokens) {
    return std::vector<std::uint32_t>{~(1u << tokens.back())};  // no token twice in a row
  };
  request.logprobs = true;
  return request;
}

}  // namespace

TEST_CASE("speculation with the state of plain decoding emits its tokens and logprobs") {
  std::uint32_t accepted = 0;
  const auto start = [&] {
    return [&](const VerifyRequest& request) {
      Emission emission = verify_soundly(request);
      accepted += emission.num_accepted;
      return emission;
    };
  };
  const Finding finding = find_replay_difference(request_with_everything(), start);
  INFO(finding.evidence);
  CHECK_FALSE(finding.caught);
  CHECK(finding.cases > 200);
  CHECK(accepted > 100);
}

TEST_CASE("a wrong token and a wrong logprob are found") {
  const auto wrong_token = [](const VerifyRequest& request) {
    Emission emission = verify_soundly(request);
    if (request.output_tokens.size() > 10) emission.tokens.back() = (emission.tokens.back() + 1) % kReplayVocabSize;
    return emission;
  };
  const auto wrong_logprob = [](const VerifyRequest& request) {
    Emission emission = verify_soundly(request);
    emission.logprobs.front() = 0.0f;
    return emission;
  };
  CHECK(find_replay_difference(request_with_everything(), [&] { return wrong_token; }).caught);
  CHECK(find_replay_difference(request_with_everything(), [&] { return wrong_logprob; }).caught);
}
