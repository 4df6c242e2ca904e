// Steps of a chain engine of the test's own that records its random numbers: a right one, one that does not follow its
// numbers once in thousands of steps, and ones whose numbers are followed and are not random.
#include "exactness/audit/recorded.hpp"

#include "exactness/audit/fitting.hpp"
#include "tests/exactness/audit/found_tests.hpp"
#include "tests/exactness/audit/tree_samples.hpp"
#include "tests/support/test.hpp"

namespace {

enum class Fault {
  none,
  departs_once,
  one_coin,
  coin_draws_residual,
  coin_of_draft,
  coins_not_uniform,
  coins_of_requests
};

// Every request has rows of its own.
StepSample steps_with(Fault fault, std::size_t requests, std::uint64_t seed) {
  constexpr std::int32_t kDrafts = 3;
  struct Numbers {
    std::vector<double> uniforms, draw_uniforms;
    std::shared_ptr<const void> rows;
  };
  const auto numbers = std::make_shared<Numbers>();
  TestRandom random(seed);
  std::vector<double> draft_u;
  double coin_before = 0.0;
  const TreeDrafter drafter = [&](const PathDistribution& q, TreeChance&) {
    draft_u.clear();
    DraftTree tree;
    for (std::int32_t i = 0; i < kDrafts; ++i) {
      draft_u.push_back(random.uniform());
      tree.add(drawn_by(draft_u.back(), q(tree.path(i - 1))), i - 1);
    }
    return tree;
  };
  const ChainEngine engine = [&](std::span<const Token> draft, TreeRows& p, TreeRows& q, TreeChance&) {
    std::vector<double> u{random.uniform(), random.uniform(), random.uniform()};
    double last_u = random.uniform();
    const std::size_t request = numbers->draw_uniforms.size();
    if (fault == Fault::one_coin) u = {u[0], u[0], u[0]};
    if (fault == Fault::coin_of_draft) u = draft_u;
    if (fault == Fault::coins_not_uniform)
      for (double& x : u) x *= x;
    if (fault == Fault::coins_of_requests && request % 2 == 1) u[0] = coin_before;
    coin_before = u[0];
    std::uint32_t accepted = 0;
    while (accepted < kDrafts &&
           u[accepted] * q.probability(accepted, draft[accepted]) < p.probability(accepted, draft[accepted]))
      ++accepted;
    if (fault == Fault::coin_draws_residual && accepted < kDrafts) last_u = u[accepted];
    if (fault == Fault::departs_once && request == 1234) accepted = accepted == 0 ? 1 : 0;
    numbers->uniforms.insert(numbers->uniforms.end(), u.begin(), u.end());
    numbers->draw_uniforms.push_back(last_u);
    const auto masses = accepted < kDrafts ? positive_difference(p.row(accepted), q.row(accepted)) : p.row(accepted);
    return ChainOutcome{accepted, drawn_by(last_u, masses)};
  };
  StepSample sample = chain_steps(seed, {.steps = static_cast<std::int64_t>(requests), .contexts = 0}, engine, drafter);
  for (std::size_t b = 0; b < requests; ++b) {
    RecordedRandomness& recorded = sample.requests[b].recorded;
    recorded.uniforms = RecordedNumbers{{}, std::span(numbers->uniforms).subspan(b * kDrafts, kDrafts)};
    recorded.draw_uniforms = RecordedNumbers{{}, std::span(numbers->draw_uniforms).subspan(b, 1)};
  }
  numbers->rows = sample.keeps;
  sample.keeps = numbers;
  return sample;
}

// Names of the tests that reject at level 1e-9 each.
std::set<std::string> rejected(const Audit& audit) {
  std::set<std::string> names;
  for (const TestResult& test : audit.tests)
    if (test.p_value < 1e-9) names.insert(test.name);
  return names;
}

std::set<std::string> found(Fault fault, std::size_t requests = 6000) {
  return rejected(audit_steps(steps_with(fault, requests, 17), {}));
}

}  // namespace

TEST_CASE("an engine that follows its recorded numbers passes the tests of them, and the tests are there") {
  const Audit audit = audit_steps(steps_with(Fault::none, 6000, 17), {});
  CHECK(rejected(audit).empty());
  std::set<std::string> names;
  for (const TestResult& test : audit.tests) names.insert(test.name);
  for (const char* const name : {"replay", "coins_ks", "coins_bins", "draw_uniforms_ks", "correlation_coins",
                                 "correlation_coins_of_requests", "correlation_draft_coin", "correlation_coin_last"}) {
    CAPTURE(name);
    CHECK(names.contains(name));
  }
  CHECK_FALSE(names.contains("well_formed"));
}

TEST_CASE("one step in thousands that does not follow its numbers is found and named, without statistics") {
  const Audit audit = audit_steps(steps_with(Fault::departs_once, 3000, 17), {});
  CHECK(audit.verdict == AuditVerdict::biased);
  const TestResult* const replay = find(audit, "replay");
  REQUIRE(replay != nullptr);
  CHECK(replay->statistic == 1.0);
  CHECK(replay->n == 3000);
  REQUIRE(replay->worst_cells.size() == 1);
  CHECK(replay->worst_cells[0].keys[0].second == 1234);
  CHECK(rejected(audit).count("replay") == 1);
}

TEST_CASE("recorded numbers that steps follow and that are not random are found by name") {
  CHECK(found(Fault::one_coin).contains("correlation_coins"));
  CHECK(found(Fault::coin_draws_residual).contains("correlation_coin_last"));
  CHECK(found(Fault::coin_of_draft).contains("correlation_draft_coin"));
  CHECK(found(Fault::coins_not_uniform).contains("coins_ks"));
  CHECK(found(Fault::coins_of_requests).contains("correlation_coins_of_requests"));
  for (const Fault fault :
       {Fault::one_coin, Fault::coin_draws_residual, Fault::coin_of_draft, Fault::coins_not_uniform})
    CHECK_FALSE(found(fault).contains("replay"));
}

TEST_CASE("recorded numbers are refused by verifiers that do not take them, and any verifier tests their randomness") {
  StepSample sample = steps_with(Fault::one_coin, 3000, 17);
  AuditOptions options;
  options.verifier = VerifierChoice(Verifier::sampler_match);
  CHECK_THROWS_WITH(audit_steps(sample, options), Contains("throws no coins"));
  options.verifier.reset();
  const std::set<std::string> names = rejected(audit_steps(sample, options));
  CHECK(names.contains("correlation_coins"));
  CHECK_FALSE(names.contains("replay"));
}
