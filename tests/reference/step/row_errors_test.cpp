// Errors of a step's rows: every RowStatus, and a text that names request, place, tensor row and column.
#include "reference/step/verify_step.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

using Catch::StartsWith;

namespace {

constexpr std::int64_t kRowLength = 4;

// Drafts of token 1, which every target row makes as good as certain: every verifier walks down the first children. In
// a tree the third node hangs from the context, with another token.
struct BrokenRows {
  std::vector<float> target, unconditional, proposal;
  VerifyRequest request;

  explicit BrokenRows(bool is_tree = false, bool probabilities = false) {
    for (int row = 0; row < 4; ++row) {
      const std::vector<float> values =
          probabilities ? std::vector<float>{0, 1, 0, 0} : std::vector<float>{-60, 0, -60, -60};
      target.insert(target.end(), values.begin(), values.end());
      proposal.insert(proposal.end(), {0.25f, 0.25f, 0.25f, 0.25f});
    }
    unconditional = std::vector<float>(16, 0.5f);
    request.draft = DraftTree({1, 1, is_tree ? 2 : 1}, {kRootNode, 0, is_tree ? kRootNode : 1});
    request.target_is_probabilities = probabilities;
    request.target = matrix_of(target, 4, kRowLength);
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = matrix_of(proposal, 4, kRowLength);
    request.first_row = 100;
    request.first_proposal_row = 50;
  }
  float& at(int row, int column) { return target[static_cast<std::size_t>(row * kRowLength + column)]; }
  float& q_at(int row, int column) { return proposal[static_cast<std::size_t>(row * kRowLength + column)]; }
  void fill(int row, float value) {
    for (int column = 0; column < kRowLength; ++column) at(row, column) = value;
  }
};

struct Found {
  RowStatus status;
  std::string text;
};

Found error_of_step(const BrokenRows& f, const VerifierChoice& verifier = Verifier::chain,
                    Sampler sampler = Sampler::inverse) {
  VerifyOptions options;
  options.verifier = verifier;
  options.sampler = sampler;
  StepWorkspace workspace;
  PhiloxSource source;
  validate(f.request, verifier, 7);
  try {
    verify_step(f.request, options, source, workspace);
  } catch (const RowError& error) {
    return {error.status(), error_in_request(f.request, 7, error).what()};
  }
  FAIL_CHECK("no row was refused");
  return {};
}

}  // namespace

TEST_CASE("every status of a row is the fault of some request, and its text says where") {
  struct Fault {
    RowStatus status;
    bool probabilities;
    std::function<void(BrokenRows&)> plant;
    std::string text;  // begins so
  };
  const std::vector<Fault> faults{
      {RowStatus::nothing_left, false, [](BrokenRows& f) { f.fill(1, -kInfinity); },
       "request 7, draft position 1, row 101 of target_logits: no token is left"},
      {RowStatus::all_zero, true, [](BrokenRows& f) { f.fill(3, 0.0f); },
       "request 7, bonus position, row 103 of target_probs: every probability is 0"},
      {RowStatus::bad_sum, true, [](BrokenRows& f) { f.fill(3, 0.9f); },
       "request 7, bonus position, row 103 of target_probs: the probabilities sum to more than 3"},
      {RowStatus::logit_too_large, false, [](BrokenRows& f) { f.at(2, 3) = 0x1p30f; },
       "request 7, draft position 2, row 102 of target_logits, column 3: the logit divided by the temperature"},
      {RowStatus::infinite_logit, false, [](BrokenRows& f) { f.at(0, 2) = kInfinity; },
       "request 7, draft position 0, row 100 of target_logits, column 2: the logit is +inf"},
      {RowStatus::nan_logit, false, [](BrokenRows& f) { f.at(3, 0) = kNan; },
       "request 7, bonus position, row 103 of target_logits, column 0: the logit is NaN"},
      {RowStatus::bad_probability, true, [](BrokenRows& f) { f.at(1, 1) = 1.5f; },
       "request 7, draft position 1, row 101 of target_probs, column 1: the probability is 1.5"},
      {RowStatus::bad_guidance, false,
       [](BrokenRows& f) {
         f.unconditional[2 * kRowLength + 3] = -kInfinity;
         f.request.unconditional = matrix_of(f.unconditional, 4, kRowLength);
         f.request.parameters.guidance_scale = 2.0f;
       },
       "request 7, draft position 2, row 102 of target_logits, column 3: the conditional logit is"},
      {RowStatus::bad_id, false, [](BrokenRows& f) { f.request.target_fault = RowStatus::bad_id; },
       "request 7, draft position 0, row 100 of target_logits: the request's parameters, ids or histories"},
      {RowStatus::bad_parameter, false,
       [](BrokenRows& f) {
         f.request.parameters.presence_penalty = 0.5f;
         f.request.history_len_max = 1;
       },
       "request 7, draft position 2, row 102 of target_logits: the history is longer than history_len_max"},
  };
  std::set<RowStatus> produced;
  for (const Fault& fault : faults)
    for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
      BrokenRows f(false, fault.probabilities);
      fault.plant(f);
      const Found found = error_of_step(f, Verifier::chain, sampler);
      CHECK(found.status == fault.status);
      CHECK_THAT(found.text, StartsWith(fault.text));
      produced.insert(found.status);
    }
  for (int status = 1; status <= static_cast<int>(RowStatus::bad_parameter); ++status)
    CHECK(produced.count(static_cast<RowStatus>(status)) == 1);
}

TEST_CASE("rows of a proposal are named by their own tensor and number") {
  BrokenRows f;
  f.q_at(1, 1) = -0.25f;
  const Found probability = error_of_step(f);
  CHECK(probability.status == RowStatus::bad_probability);
  CHECK_THAT(probability.text, StartsWith("request 7, draft position 1, row 51 of draft_probs, column 1: "));
  f.q_at(1, 1) = kNan;
  f.request.proposal_kind = ProposalKind::logits;
  const Found logit = error_of_step(f);
  CHECK(logit.status == RowStatus::nan_logit);
  CHECK_THAT(logit.text, StartsWith("request 7, draft position 1, row 51 of draft_logits, column 1: "));
  f.request.proposal_fault = RowStatus::bad_parameter;
  const Found parameters = error_of_step(f);
  CHECK(parameters.status == RowStatus::bad_parameter);
  CHECK_THAT(parameters.text,
             StartsWith("request 7, draft position 0, row 50 of draft_logits: the draft's parameters"));
}

TEST_CASE("of a tree the node is named, and of every verifier that looks at the row the fault is the same") {
  int verifiers_of_trees = 0;
  for (const VerifierInfo& info : verifiers()) {
    CAPTURE(std::string(info.name));
    BrokenRows chain;
    chain.at(0, 3) = kNan;
    const Found at_root = error_of_step(chain, info.verifier);
    CHECK(at_root.status == RowStatus::nan_logit);
    CHECK_THAT(at_root.text, StartsWith("request 7, draft position 0, row 100 of target_logits, column 3: "));
    if (info.draft == DraftForm::chain) continue;
    ++verifiers_of_trees;
    BrokenRows tree(true);
    tree.at(1, 2) = kNan;  // after node 0, the likely one
    const Found after_node = error_of_step(tree, info.verifier);
    CHECK(after_node.status == RowStatus::nan_logit);
    CHECK_THAT(after_node.text, StartsWith("request 7, draft node 0, row 101 of target_logits, column 2: "));
    tree.at(0, 1) = kInfinity;
    const Found at_context = error_of_step(tree, info.verifier);
    CHECK(at_context.status == RowStatus::infinite_logit);
    CHECK_THAT(at_context.text, StartsWith("request 7, root of the draft tree, row 100 of target_logits, column 1: "));
  }
  CHECK(verifiers_of_trees == 13);
}

TEST_CASE("of several faults of one row the highest status is reported, wherever the columns stand") {
  for (const Verifier verifier : {Verifier::chain, Verifier::block, Verifier::coupled, Verifier::rrs}) {
    CAPTURE(std::string(info_of(verifier).name));
    for (const float temperature : {0.0f, 0.5f, 1.0f}) {
      CAPTURE(temperature);
      BrokenRows logits;
      logits.request.parameters.temperature = temperature;
      logits.at(0, 0) = kInfinity;
      logits.at(0, 1) = 0x1p30f;
      CHECK(error_of_step(logits, verifier).status == RowStatus::infinite_logit);
      logits.at(0, 3) = kNan;
      const Found nan = error_of_step(logits, verifier);
      CHECK(nan.status == RowStatus::nan_logit);
      CHECK_THAT(nan.text, Contains("column 3"));
      logits.request.unconditional = matrix_of(logits.unconditional, 4, kRowLength);
      logits.request.parameters.guidance_scale = 1.5f;
      CHECK(error_of_step(logits, verifier).status == RowStatus::bad_guidance);
    }
    // A row that is drawn from: its sum is bad, and then an element too.
    BrokenRows sums(false, true);
    sums.request.draft = {};
    sums.request.target = sums.request.target.slice(0, 1);
    sums.request.proposal = sums.request.proposal.slice(0, 0);
    sums.fill(0, 0.9f);
    CHECK(error_of_step(sums, verifier).status == RowStatus::bad_sum);
    sums.at(0, 3) = -0.5f;
    const Found bad = error_of_step(sums, verifier);
    CHECK(bad.status == RowStatus::bad_probability);
    CHECK_THAT(bad.text, Contains("column 3") && Contains("-0.5"));
    sums.fill(0, 0.0f);
    CHECK(error_of_step(sums, verifier).status == RowStatus::all_zero);
    sums.at(0, 2) = kNan;
    CHECK(error_of_step(sums, verifier).status == RowStatus::bad_probability);
  }
}

TEST_CASE("block verification, which looks at all rows of the drafts, reports the worst of them") {
  BrokenRows f;
  f.at(1, 0) = kInfinity;
  f.at(2, 0) = kNan;
  const Found block = error_of_step(f, Verifier::block);
  CHECK(block.status == RowStatus::nan_logit);
  CHECK_THAT(block.text, StartsWith("request 7, draft position 2, row 102"));
  CHECK(error_of_step(f, Verifier::chain).status == RowStatus::infinite_logit);  // the first that is asked for
}

TEST_CASE("random nonsense in probabilities is refused as a row or judged, and never more") {
  // Sums anywhere up to 3, drafts that their proposal cannot produce, and bad elements.
  TestRandom random(7800);
  StepWorkspace workspace;
  int refused = 0;
  int judged = 0;
  for (const VerifierInfo& info : verifiers())
    for (int i = 0; i < 300; ++i) {
      const std::int64_t vocab_size = 1 + random.below(6);
      OwnedRequest o = random_tree_request(random, vocab_size, info.draft == DraftForm::chain ? 0 : 6);
      VerifyRequest& r = o.request;
      const double scale = 3.0 * random.uniform() * random.uniform();
      o.proposal.resize(static_cast<std::size_t>(r.rows() * vocab_size));
      for (std::vector<float>* rows : {&o.target, &o.proposal})
        for (float& p : *rows) {
          p = random.chance(0.3) ? 0.0f : static_cast<float>(std::min(1.0, scale * random.uniform()));
          if (random.chance(0.004)) p = random.chance(0.5) ? kNan : -1.0f;
        }
      r.target_is_probabilities = true;
      r.unconditional.reset();
      r.proposal_kind = ProposalKind::probabilities;
      r.proposal = matrix_of(o.proposal, r.rows(), vocab_size);
      VerifyOptions options;
      options.verifier = info.verifier;
      options.sampler = random.chance(0.5) ? Sampler::inverse : Sampler::race;
      CAPTURE(std::string(info.name), i);
      validate(r, options.verifier, i);
      PhiloxSource source;
      try {
        const Emission emission = verify_step(r, options, source, workspace);
        for (const Token token : emission.tokens) REQUIRE((token >= 0 && token < vocab_size));
        ++judged;
      } catch (const RowError& error) {
        REQUIRE(error.row().number >= 0);
        ++refused;
      }
    }
  CHECK(refused > 200);
  CHECK(judged > 1000);
}
