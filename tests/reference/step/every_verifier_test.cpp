// Every verifier of the registry through the step layer: the decisions of its template on rows that the test makes
// itself, and what is reported of them.
#include "exactness/proof/steps.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/step/verify_step.hpp"
#include "tests/reference/step/own_rows.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

using namespace draftproof::own_rows;

namespace {

// A verifier's template over the rows of the test.
struct Call {
  const VerifyRequest& request;
  const Rows& rows;
  AddressedChance<PhiloxSource>& chance;
  std::span<const Token> draft = request.draft.tokens;
  MassTarget masses{rows};
  MassProposal proposal_masses{rows};
  DenseRows<double> target = rows.dense_target;
  DenseRows<double> proposal = rows.dense_proposal;
  std::uint32_t position = static_cast<std::uint32_t>(request.output_tokens.size());
};

TreeOutcome outcome(const ChainOutcome& chain) {
  TreeOutcome tree{{}, chain.last_token};
  for (std::uint32_t i = 0; i < chain.num_accepted; ++i) tree.path.push_back(static_cast<std::int32_t>(i));
  return tree;
}

template <class Rule>
TreeOutcome by_siblings(Call& c, Rule rule) {
  return verify_tree(c.request.draft, c.target, c.proposal, rule, c.chance);
}

// Verifiers with parameters other than the standard ones.
const std::map<std::string, std::function<TreeOutcome(Call&)>>& templates() {
  static const std::map<std::string, std::function<TreeOutcome(Call&)>> all{
      {"chain", [](Call& c) { return outcome(verify_chain(c.draft, c.masses, c.proposal_masses, c.chance)); }},
      {"block", [](Call& c) { return outcome(verify_block(c.draft, c.target, c.proposal, c.chance)); }},
      {"sampler_match", [](Call& c) { return outcome(verify_sampler_match(c.draft, c.masses, c.chance)); }},
      {"coupled", [](Call& c) { return outcome(verify_coupled(c.draft, c.masses, c.position, c.chance)); }},
      {"naive", [](Call& c) { return by_siblings(c, proof_steps::naive); }},
      {"target_only", [](Call& c) { return by_siblings(c, proof_steps::target_only); }},
      {"rrs", [](Call& c) { return by_siblings(c, proof_steps::rrs); }},
      {"rrsw", [](Call& c) { return by_siblings(c, proof_steps::rrsw); }},
      {"k_seq", [](Call& c) { return by_siblings(c, proof_steps::k_seq); }},
      {"importance:weighed=2",
       [](Call& c) { return by_siblings(c, [](auto&&... a) { return accept_sibling_importance(a..., 2); }); }},
      {"greedy_draft", [](Call& c) { return by_siblings(c, proof_steps::greedy_draft); }},
      {"traversal", [](Call& c) { return verify_traversal(c.request.draft, c.target, c.proposal, c.chance); }},
      {"greedy_multipath:paths=3",
       [](Call& c) { return verify_greedy_multipath(c.request.draft, 3, c.target, c.proposal, c.chance); }},
      {"coupled_list:paths=3",
       [](Call& c) { return verify_coupled_list(c.request.draft, 3, c.masses, c.position, c.chance); }},
      {"typical:epsilon=0.1,delta=0.2",
       [](Call& c) {
         const auto threshold = [](const DenseMasses<double>& p) { return typical_threshold(p, {0.1, 0.2}); };
         return verify_typical(c.request.draft, c.target, threshold, c.chance);
       }},
      {"thresholds:acc=0.7,single=0.5",
       [](Call& c) {
         return by_siblings(c, ThresholdedTargetOnly<double>{{0.7, 0.5}});
       }},
      {"top_k_resample:k=2",
       [](Call& c) { return outcome(verify_top_k_resample(c.draft, c.target, c.proposal, 2, c.chance)); }},
      {"synthetic:rate=0.6",
       [](Call& c) { return outcome(verify_synthetic_acceptance(c.draft, c.masses, 0.6, c.chance)); }},
      {"spectr_gbv:paths=3",
       [](Call& c) { return verify_spectr_gbv(c.request.draft, 3, c.target, c.proposal, c.chance); }},
      {"ensemble:weight=0.4",
       [](Call& c) { return outcome(verify_ensemble(c.draft, c.target, c.proposal, 0.4, c.chance)); }},
      {"fly:window=1,entropy=0.4,top=2",
       [](Call& c) {
         const auto gate = [](const DenseMasses<double>& p) { return entropy_of_most_probable(p, 2) >= 0.4; };
         return outcome(verify_fly(c.draft, c.target, c.proposal, 1, gate, c.chance));
       }},
      {"relaxed:top_k=3,delta=0.2",
       [](Call& c) {
         const auto near = [](const DenseMasses<double>& p) {
           return tokens_near_best(p, 3, [](double x, double best) { return x >= best - 0.2; });
         };
         return outcome(verify_near_best(c.draft, c.target, near, c.chance));
       }},
      {"accept_k:k=2,tolerance=1",
       [](Call& c) {
         const auto near = [](const DenseMasses<double>& p) {
           return tokens_near_best(p, 2, [](double x, double best) { return x >= best * natural_exp(-1.0); });
         };
         return outcome(verify_near_best(c.draft, c.target, near, c.chance));
       }},
  };
  return all;
}

// A valid request that the verifier takes; some targets are given as probabilities.
OwnedRequest request_for(const VerifierInfo& info, TestRandom& random) {
  const std::int64_t vocab_size = 3 + random.below(random.chance(0.3) ? 38 : 4);
  const bool chain = info.draft == DraftForm::chain;
  OwnedRequest o = chain ? random_request(random, vocab_size, 5) : random_tree_request(random, vocab_size, 7);
  VerifyRequest& r = o.request;
  if (r.proposal_kind == ProposalKind::one_hot && !r.draft.is_chain() && info.proposal != DraftSampling::any)
    r.draft = DraftTree::chain(o.draft);
  if (random.chance(0.15)) r.draft_parameters.temperature = 0.0f;
  if (random.chance(0.25)) {
    to_probabilities(o.target, vocab_size);
    r.target_is_probabilities = true;
    r.unconditional.reset();
    r.allowed_masks = {};
  }
  r.logprob_token_ids = o.prompt;
  return o;
}

// Emission expected of a step, from the rows of the test.
Emission expected_emission(const VerifyRequest& request, const Rows& rows, const VerifyOptions& options,
                           const TreeOutcome& outcome) {
  Emission e;
  e.num_accepted = static_cast<std::uint32_t>(outcome.path.size());
  e.path = outcome.path;
  std::vector<std::uint32_t> reported{0};
  for (const std::int32_t node : outcome.path) {
    e.tokens.push_back(request.draft.tokens[static_cast<std::size_t>(node)]);
    reported.push_back(static_cast<std::uint32_t>(node) + 1);
  }
  e.tokens.push_back(outcome.last_token);
  for (std::size_t i = 0; i < reported.size() && options.logprobs; ++i) {
    Row& row = *rows.target[reported[i]];
    const float logprob = row.distribution.log_probability(e.tokens[i]);
    e.logprobs.push_back(logprob);
    if (options.raw_logprobs)
      e.raw_logprobs.push_back(request.target_is_probabilities ? logprob
                                                               : row.pipeline.raw_log_probability(e.tokens[i]));
  }
  for (const std::uint32_t at : reported)
    for (const Token id : options.logprobs ? request.logprob_token_ids : std::span<const Token>()) {
      Row& row = *rows.target[at];
      e.token_id_logprobs.push_back(row.distribution.log_probability(id));
      if (options.raw_logprobs)
        e.raw_token_id_logprobs.push_back(request.target_is_probabilities ? e.token_id_logprobs.back()
                                                                          : row.pipeline.raw_log_probability(id));
    }
  if (request.target_is_probabilities) reported.clear();
  if (options.all_rows) {
    reported.clear();
    for (std::uint32_t row = 0; row < request.rows(); ++row) reported.push_back(row);
  }
  for (const std::uint32_t row : reported) {
    e.kept_mass.push_back(static_cast<float>(rows.target[row]->distribution.kept_mass()));
    e.kept_count.push_back(rows.target[row]->distribution.kept_count());
  }
  return e;
}

}  // namespace

TEST_CASE("every verifier decides as its template does on rows that are processed alone, bit for bit") {
  TestRandom random(7100);
  StepWorkspace workspace;
  std::size_t names = 0;
  for (const auto& [text, run] : templates()) {
    const VerifierChoice verifier = parse_verifier(text, "test");
    const VerifierInfo& info = verifier.info();
    ++names;
    int accepted = 0;
    int rejected = 0;
    int branched = 0;
    for (int i = 0; i < 250; ++i) {
      const OwnedRequest o = request_for(info, random);
      const VerifyRequest& request = o.request;
      CAPTURE(text, i);
      REQUIRE_NOTHROW(validate(request, verifier, i));
      VerifyOptions options;
      options.verifier = verifier;
      options.sampler = random.chance(0.5) ? Sampler::inverse : Sampler::race;
      options.logprobs = !random.chance(0.2);
      options.raw_logprobs = random.chance(0.7);
      options.all_rows = random.chance(0.3);
      PhiloxSource source;
      const Emission found = verify_step(request, options, source, workspace);

      const Rows rows(request, random);
      AddressedChance<PhiloxSource> chance(source, request.seed, request.step, options.sampler);
      Call call{request, rows, chance};
      // Trees that a greedy target judges: all lossless verifiers are one there, and SpecTr-GBV.
      const bool is_greedy =
          has_greedy_target(request) && (info.lossless || info.joint) && info.draft != DraftForm::chain;
      const TreeOutcome outcome = is_greedy ? templates().at("target_only")(call) : run(call);
      REQUIRE(same_emission(found, expected_emission(request, rows, options, outcome)));
      REQUIRE(same_emission(found, verify_step(request, options, source, workspace)));  // and so again

      std::int32_t parent = kRootNode;
      for (const std::int32_t node : found.path) {
        REQUIRE(node > parent);
        REQUIRE(request.draft.parents[static_cast<std::size_t>(node)] == parent);
        parent = node;
      }
      accepted += static_cast<int>(found.num_accepted);
      rejected += request.draft.children(parent).empty() ? 0 : 1;
      branched += request.draft.is_chain() ? 0 : 1;
    }
    CHECK(accepted > 30);
    CHECK(rejected > 30);
    CHECK((branched > 50) == (info.draft != DraftForm::chain));
  }
  CHECK(names == verifiers().size());
}

TEST_CASE("rows of a tree may be asked for in any order and again") {
  TestRandom random(7200);
  StepWorkspace workspace;
  int jumps = 0;  // to a row that does not hang from the one before
  for (int i = 0; i < 400; ++i) {
    OwnedRequest o = random_tree_request(random, 3 + random.below(38), 7);
    VerifyRequest& request = o.request;
    if (request.proposal_kind == ProposalKind::one_hot) request.draft = DraftTree::chain(o.draft);
    const Rows expected(request, random);
    StepRows rows(request, {}, workspace);
    CAPTURE(i);
    std::uint32_t before = 0;
    for (std::uint32_t asked = 0; asked < 3 * request.rows(); ++asked) {
      const auto row = static_cast<std::uint32_t>(random.below(request.rows()));
      jumps += row == 0 || DraftTree::row_after(request.draft.parents[row - 1]) != before ? 1 : 0;
      before = row;
      CAPTURE(row);
      REQUIRE(dense(rows.target(row)) == expected.dense_target.row(row));
      if (expected.proposal[row] && random.chance(0.5))
        REQUIRE(dense(rows.proposal(row)) == expected.dense_proposal.row(row));
      const Token token = random.token(request.target.vocab_size);
      Row& alone = *expected.target[row];
      const StepRows::Logprobs logprobs = rows.logprobs(row, token);
      REQUIRE(logprobs.processed == alone.distribution.log_probability(token));
      REQUIRE(logprobs.raw == alone.pipeline.raw_log_probability(token));
      REQUIRE(rows.kept(row).count == alone.distribution.kept_count());
    }
  }
  CHECK(jumps > 1000);
}
