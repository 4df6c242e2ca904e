// Distances of lossy rules on the rows of a step, against those worked out by hand.
#include "reference/step/lossy_distance.hpp"

#include "reference/step/request.hpp"
#include "tests/support/test.hpp"

TEST_CASE("the first token's distance under each lossy rule is the one worked out by hand") {
  // p = (.5, .3, .2), q = (.2, .3, .5): a total variation of .3.
  const std::vector<float> target = {std::log(0.5f), std::log(0.3f), std::log(0.2f), 0.0f, 0.0f,
                                     0.0f,           0.0f,           0.0f,           0.0f};
  const std::vector<float> proposal = {0.2f, 0.3f, 0.5f, 0.2f, 0.3f, 0.5f};
  const std::array<Token, 2> draft = {2, 1};
  VerifyRequest request;
  request.draft = DraftTree::chain(draft);
  request.target = {DType::f32, target.data(), 3, 3, 3};
  request.proposal_kind = ProposalKind::probabilities;
  request.proposal = {DType::f32, proposal.data(), 2, 3, 3};
  const auto distance = [&](const char* name) {
    VerifyOptions options;
    options.logprobs = options.raw_logprobs = false;
    options.verifier = parse_verifier(name, "test");
    StepWorkspace workspace;
    StepRows rows(request, options, workspace);
    return first_token_distance(options.verifier, rows);
  };
  CHECK(distance("ensemble:weight=0.9").value() == Approx(0.03).epsilon(1e-5));
  CHECK(distance("ensemble:weight=0.5").value() == Approx(0.15).epsilon(1e-5));
  CHECK(distance("synthetic:rate=0.7").value() == Approx(0.21).epsilon(1e-5));
  // The residual lies on token 0 alone.
  CHECK(distance("top_k_resample:k=1").value() == Approx(0.0).margin(1e-6));
  // All tokens are typical; above 0.25 only 0 and 1: q(A) = 0.5, against (.25, .15, .1).
  CHECK(distance("typical").value() == Approx(0.3).epsilon(1e-5));
  CHECK(distance("typical:epsilon=0.25,delta=1").value() == Approx(0.15).epsilon(1e-5));
  // Drafts stand with 5/9, 1/3, 2/9: (167/336, 359/1200, 107/525). At 0.5 with 1, 3/5, 2/5.
  CHECK(distance("thresholds").value() == Approx(2.0 / 525).epsilon(1e-4));
  CHECK(distance("thresholds:acc=0.5,single=0.5").value() == Approx(6.0 / 175).epsilon(1e-5));
  CHECK(distance("thresholds:acc=1,single=1").value() == Approx(0.0).margin(1e-7));
  // Of 2 drafts a window of 1 gives the bound; a longer one never passes, nor a row of less entropy.
  CHECK(distance("fly:window=1").value() == Approx(0.3).epsilon(1e-5));
  CHECK(distance("fly:window=2").value() == 0.0);
  CHECK(distance("fly:window=1,entropy=1.1").value() == 0.0);
  // 0 and 1 are within 0.25 of the best: 0 gets what is rejected, (.7, .3, 0). All are within 0.6, and 5 nats.
  CHECK(distance("relaxed:delta=0.25").value() == Approx(0.2).epsilon(1e-5));
  CHECK(distance("relaxed").value() == Approx(0.3).epsilon(1e-5));
  CHECK(distance("accept_k").value() == Approx(0.3).epsilon(1e-5));
  CHECK_FALSE(distance("chain"));
  CHECK_FALSE(distance("block"));
}
