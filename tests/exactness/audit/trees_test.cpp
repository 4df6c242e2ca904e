// The audit of every verifier of the registry, over trees and chains: right ones pass, planted faults are found, and by
// the tests that speak of them.
#include "exactness/audit/audit.hpp"
#include "exactness/audit/tests.hpp"
#include "exactness/proof/steps.hpp"
#include "reference/verify/emitted_path.hpp"
#include "tests/exactness/audit/found_tests.hpp"
#include "tests/exactness/audit/tree_samples.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

using Masses = DenseMasses<double>;

AuditOptions at_distance(const std::string& verifier, int decisions) {
  AuditOptions options;
  options.alpha = suite_level(decisions);
  options.tv_wanted = 0.2;
  options.verifier = parse_assumed_verifier(verifier, "test");
  return options;
}

// A walk by a rule at each node.
template <class Rule>
TreeEngine walk_by(Rule rule) {
  return [rule](const DraftTree& tree, TreeRows& p, TreeRows& q, TreeChance& chance) {
    return verify_tree(tree, p, q, rule, chance);
  };
}

TEST_CASE("every lossless verifier passes, in one context and in as many as there are requests") {
  for (const VerifierInfo& info : verifiers()) {
    if (!info.lossless) continue;
    for (const std::int64_t contexts : {1, 0}) {
      INFO(info.name << ", contexts " << contexts);
      const std::string name(info.name);
      const StepSample sample = steps_of(name, {.steps = fewer_if_sanitized(4000), .contexts = contexts}, 31);
      const Audit audit = audit_steps(sample, at_distance(name, 72));
      CHECK(audit.sentence.substr(0, 10) == "consistent");
      for (const char* test : {"support", "path", "first_token_ks", "string_bins"}) CHECK(find(audit, test) != nullptr);
      const bool shows_next =  // some token's next row for certain: drawn from q, or one of the most probable
          info.verifier != Verifier::sampler_match && info.verifier != Verifier::coupled &&
          info.verifier != Verifier::coupled_list;
      CHECK((find(audit, "string") != nullptr) == (contexts > 0 && shows_next));
      CHECK((find(audit, "draft_ks") != nullptr) == (info.proposal != DraftSampling::any));
      CHECK((find(audit, "next_tokens_by_depth") != nullptr) == (info.verifier != Verifier::chain));
      CHECK(audit_steps(sample, at_distance("any", 72)).verdict == AuditVerdict::consistent);
      if (info.verifier != Verifier::chain) continue;
      for (const char* test :
           {"acceptance_by_position", "acceptance_by_rate", "num_accepted", "recovered_ks", "bonus_ks"})
        CHECK(find(audit, test) != nullptr);
      REQUIRE(audit.positions.size() == 3);
      for (const PositionAudit& position : audit.positions) {
        const double rate = static_cast<double>(position.accepted) / static_cast<double>(position.reached);
        CHECK(position.interval.low < rate);
        CHECK(position.interval.high > rate);
        CHECK(has_rate(position.accepted, position.reached, position.expected_rate, 72));
        // Ratios lie in [0, 1], where no deviation is above 1/2.
        CHECK(has_mean(position.expected_rate, position.expected_by_rows, 0.5, position.reached, 72));
      }
    }
  }
}

TEST_CASE("a lossy verifier is said to be lossy, and its distribution is left alone") {
  for (const VerifierInfo& info : verifiers()) {
    if (info.lossless) continue;
    INFO(info.name);
    const std::string name(info.name);
    const StepSample sample = steps_of(name, {.steps = fewer_if_sanitized(4000)}, 32);
    const Audit audit = audit_steps(sample, at_distance(name, 1));
    CHECK_FALSE(audit.lossless);
    CHECK(audit.verdict == AuditVerdict::consistent);
    CHECK_THAT(audit.sentence, Contains("lossy verifier"));
    CHECK(find(audit, "path") != nullptr);
    CHECK((find(audit, "support") == nullptr) == !info.keeps_support);
    CHECK(find(audit, "first_token") == nullptr);
  }
  // Without a test there is no answer.
  Audit untested;
  untested.lossless = false;
  untested.observations = 7;
  conclude(untested, AuditOptions{});
  CHECK(untested.verdict == AuditVerdict::inconclusive);
  CHECK_THAT(untested.sentence, Contains("lossy"));
  // Above, the audit has nothing to find; what a lossy verifier does to the distribution shows when it is asked for.
  const StepSample typical = steps_of("typical", {}, 32);
  CHECK(rejects(audit_steps(typical, at_distance("any", 1)), "first_token"));
  // With thresholds of 1 it is a lossless one.
  const std::string exact = "thresholds:acc=1,single=1";
  CHECK(find(audit_steps(steps_of(exact, {}, 33), at_distance(exact, 1)), "first_token") != nullptr);
  CHECK(rejects(audit_steps(steps_of("thresholds:acc=0.5", {}, 33), at_distance(exact, 1)), "first_token"));
}

TEST_CASE("an update for independent siblings on drafts without replacement is found") {
  const Audit audit =
      audit_steps(steps_of("rrsw", {.steps = 20000}, 34, walk_by(proof_steps::rrs)), at_distance("rrsw", 2));
  CHECK(audit.verdict == AuditVerdict::biased);
  CHECK(rejects(audit, "first_token"));
  CHECK_FALSE(rejects(audit, "draft_ks"));
  CHECK_FALSE(rejects(audit, "draft_repeats"));
}

// p itself is what every sibling is held against, and what is drawn from at the end.
SiblingOutcome accept_without_update(const Masses& p, const Masses& q, std::span<const Token> siblings,
                                     std::span<const std::int32_t> nodes, std::uint32_t row, TreeChance& chance) {
  for (std::size_t j = 0; j < siblings.size(); ++j) {
    const auto x = static_cast<std::size_t>(siblings[j]);
    if (chance.accept(p[x], q[x], static_cast<std::uint32_t>(nodes[j])))
      return {static_cast<std::int32_t>(j), siblings[j]};
  }
  return {kNoSibling, chance.draw(p, row, Purpose::residual)};
}

TEST_CASE("a residual that is not updated is found, and by the drafted tokens that it recovers") {
  const Audit audit = audit_steps(steps_of("rrs", {}, 35, walk_by(accept_without_update)), at_distance("rrs", 1));
  CHECK(rejects(audit, "first_token"));
  CHECK(rejects(audit, "drafted_accepted"));
  CHECK_FALSE(rejects(audit, "draft_ks"));
}

TEST_CASE("siblings that repeat are found where the verifier relies on their being different") {
  const StepSample sample = tree_steps(36, {}, Verifier::rrsw, drafter_for(info_of(Verifier::rrs)));
  const Audit audit = audit_steps(sample, at_distance("rrsw", 1));
  CHECK(rejects(audit, "draft_repeats"));
  CHECK_FALSE(rejects(audit, "first_token"));  // this verifier passes over them
  // One that counts a repeated sibling's probability twice is biased.
  const auto twice = [](const Masses& p, const Masses&, std::span<const Token> siblings,
                        std::span<const std::int32_t> nodes, std::uint32_t row, TreeChance& chance) {
    double left = chance.draw(Masses{0.5, 0.5}, row + 100, Purpose::sibling_coin) == 0 ? 0.0 : 0.5;
    for (std::size_t j = 0; j < siblings.size(); ++j) {
      const double share = p[static_cast<std::size_t>(siblings[j])];
      const double rate = std::min(1.0, share / std::max(1e-9, 1.0 - left));
      left = j == 0 ? share : left + share;
      if (chance.accept(j == 0 ? share : rate, 1.0, static_cast<std::uint32_t>(nodes[j])))
        return SiblingOutcome{static_cast<std::int32_t>(j), siblings[j]};
    }
    return accept_sibling_naive_sampling(p, p, {}, {}, row, chance);
  };
  const Audit counted =
      audit_steps(tree_steps(37, {}, Verifier::target_only, drafter_for(info_of(Verifier::rrs)), walk_by(twice)),
                  at_distance("target_only", 1));
  CHECK(rejects(counted, "first_token"));
}

TEST_CASE("a fault below the first token is found at its depth") {
  // The bonus token comes from the root's row.
  const TreeEngine engine = [](const DraftTree& tree, TreeRows& p, TreeRows& q, TreeChance& chance) {
    TreeOutcome outcome = verify_tree(tree, p, q, proof_steps::naive, chance);
    if (outcome.path.size() == 2) outcome.last_token = chance.draw(p.row(0), 50, Purpose::target_sample);
    return outcome;
  };
  const Audit audit = audit_steps(steps_of("naive", {}, 39, engine), at_distance("naive", 1));
  CHECK_FALSE(rejects(audit, "first_token"));
  CHECK_FALSE(rejects(audit, "string"));
  CHECK(rejects(audit, "next_tokens_by_depth"));
  CHECK(find(audit, "next_tokens_by_depth")->worst_cells.at(0).label().substr(0, 7) == "depth 2");
}

TEST_CASE("a drafted token that is reported as recovered is found, whatever its distribution") {
  // Every emitted token is right, but the step ends after the first, drafted or not.
  const TreeEngine engine = [](const DraftTree&, TreeRows& p, TreeRows&, TreeChance& chance) {
    return TreeOutcome{{}, chance.draw(p.row(0), 0, Purpose::target_sample)};
  };
  const StepSample sample = steps_of("naive", {.reports_path = false}, 40, engine);
  const Audit audit = audit_steps(sample, at_distance("naive", 1));
  CHECK(rejects(audit, "drafted_accepted"));
  CHECK_FALSE(rejects(audit, "first_token"));
  CHECK(find(audit, "path") == nullptr);
  // Nothing forbids it where only the tokens are spoken of.
  CHECK(audit_steps(sample, at_distance("any", 1)).verdict == AuditVerdict::consistent);
}

TEST_CASE("a reported path that has other tokens than were emitted is found") {
  StepSample sample = steps_of("target_only", {.steps = 500}, 41);
  std::size_t b = 0;
  while (sample.reported_path(b).size() != 1) ++b;
  std::int32_t& node = (*sample.path_nodes)[sample.begins[b] - b];
  node = node == 0 ? 1 : 0;
  const Audit audit = audit_steps(sample, at_distance("target_only", 1));
  CHECK(rejects(audit, "path"));
  CHECK(find(audit, "path")->statistic == 1.0);
  CHECK(find(audit, "path")->worst_cells.at(0).keys.at(0).second == static_cast<std::int64_t>(b));
}

TEST_CASE("a verifier that does not take the drafts is refused") {
  const StepSample trees = steps_of("rrsw", {.steps = 3}, 42);
  CHECK_THAT(error_of(ErrorKind::usage, [&] { audit_steps(trees, at_distance("block", 1)); }),
             Contains("request 0") && Contains("takes a chain, and the draft is a tree"));
  StepSample unknown = steps_of("naive", {.steps = 3}, 42);
  for (VerifyRequest& request : unknown.requests) request.proposal_kind = ProposalKind::one_hot;
  CHECK_THAT(error_of(ErrorKind::usage, [&] { audit_steps(unknown, at_distance("rrs", 1)); }),
             Contains("needs the probabilities"));
  CHECK(audit_steps(unknown, at_distance("naive", 1)).tests.size() > 0);
  CHECK_THROWS_WITH(parse_assumed_verifier("rrss", "--verifier"), Contains("expected one of chain, block"));
}

TEST_CASE("the path of emitted tokens is found among siblings that repeat") {
  const DraftTree tree({4, 4, 5, 6, 7}, {-1, -1, 0, 1, 3});
  const auto path = [&](std::vector<Token> tokens) { return find_emitted_path(tree, tokens).nodes; };
  CHECK(path({}).empty());
  CHECK(path({4, 5}) == std::vector<std::int32_t>{0, 2});
  CHECK(path({4, 6, 7}) == std::vector<std::int32_t>{1, 3, 4});  // only the second of the two
  CHECK(path({4, 7}) == std::vector<std::int32_t>{0});           // as far as it goes
  CHECK(find_emitted_path(tree, std::vector<Token>{4, 6}).ambiguous);
  CHECK_FALSE(find_emitted_path(DraftTree({4, 5}, {-1, -1}), std::vector<Token>{4}).ambiguous);
}

}  // namespace
