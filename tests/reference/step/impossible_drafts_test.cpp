// Drafts that their proposal distribution cannot have produced.
#include "reference/step/impossible_drafts.hpp"

#include "tests/support/test.hpp"

namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

RowMatrix matrix(const std::vector<float>& values, std::int64_t vocab_size) {
  return {DType::f32, values.data(), static_cast<std::int64_t>(values.size()) / vocab_size, vocab_size, vocab_size};
}

TEST_CASE("drafts of probability zero are counted and the first is named whatever the threads") {
  const std::vector<float> target(12, 0.0f);
  const std::vector<float> possible = {0.5f, 0.5f, 0.0f, 1.0f, 0.0f, 0.0f};
  const std::vector<float> impossible = {0.5f, 0.5f, 0.0f, 0.0f, 0.0f, 1.0f};
  const std::vector<Token> draft = {1, 0};
  VerifyRequest request;
  request.draft = DraftTree::chain(draft);
  request.target = matrix(target, 3).slice(0, 3);
  request.proposal_kind = ProposalKind::probabilities;
  request.proposal = matrix(possible, 3);
  std::vector<VerifyRequest> requests(5, request);
  CHECK(find_impossible_drafts(requests, 1).count == 0);
  CHECK_FALSE(find_impossible_drafts(requests, 2).first.has_value());
  requests[2].proposal = requests[4].proposal = matrix(impossible, 3);
  for (const int threads : {1, 2}) {
    const ImpossibleDrafts found = find_impossible_drafts(requests, threads);
    CHECK(found.count == 2);
    REQUIRE(found.first.has_value());
    CHECK(found.first->request == 2);
    CHECK(found.first->position == 1);
    CHECK(found.first->token == 0);
  }
  // A greedy target does not ask the proposal.
  requests[2].parameters.temperature = 0.0f;
  CHECK(find_impossible_drafts(requests, 1).first->request == 4);
  // One-hot proposals cannot be contradicted.
  requests[4].proposal_kind = ProposalKind::one_hot;
  CHECK(find_impossible_drafts(requests, 1).count == 0);
}

TEST_CASE("a draft outside what temperature and filters leave of its logits is impossible") {
  const std::vector<float> target(8, 0.0f);
  const std::vector<float> logits = {3.0f, 2.0f, 1.0f, kMasked};
  const auto count = [&](Token token, std::int32_t top_k, float temperature) {
    const std::array<Token, 1> draft = {token};
    VerifyRequest request;
    request.draft = DraftTree::chain(draft);
    request.target = matrix(target, 4);
    request.proposal_kind = ProposalKind::logits;
    request.proposal = matrix(logits, 4);
    request.draft_parameters.temperature = temperature;
    request.draft_parameters.filters.top_k = top_k;
    return find_impossible_drafts(std::span(&request, 1), 1).count;
  };
  CHECK(count(2, 0, 1.0f) == 0);
  CHECK(count(3, 0, 1.0f) == 1);
  CHECK(count(1, 2, 0.5f) == 0);
  CHECK(count(2, 2, 0.5f) == 1);
  CHECK(count(2, 2, 0.0f) == 0);  // argmax drafts are one-hot proposals
}

}  // namespace
