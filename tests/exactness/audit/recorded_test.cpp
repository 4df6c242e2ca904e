// Steps of a chain engine of the test's own that records its random numbers: a right one, one that does not follow its
// numbers once in thousands of steps, and ones whose numbers are followed and are not random.
#include "exactness/audit/recorded.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "exactness/audit/fitting.hpp"

namespace draftproof {
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

constexpr std::size_t kVocab = 5;
constexpr std::size_t kDrafts = 3;

struct Steps {
  std::vector<float> target, proposal;
  std::vector<double> uniforms, draw_uniforms;
};

std::vector<float> random_row(std::mt19937_64& bits) {
  std::vector<float> row(kVocab);
  std::uniform_real_distribution<float> some(0.05f, 1.0f);
  float total = 0.0f;
  for (float& x : row) total += x = some(bits);
  for (float& x : row) x /= total;
  return row;
}

std::size_t draw(const std::vector<float>& masses, double u) {
  double total = 0.0;
  for (const float x : masses) total += static_cast<double>(x);
  double sum = 0.0;
  for (std::size_t t = 0; t < masses.size(); ++t)
    if ((sum += static_cast<double>(masses[t])) > u * total) return t;
  return masses.size() - 1;
}

// Every request has rows of its own.
StepSample steps_with(Fault fault, std::size_t requests, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  const auto steps = std::make_shared<Steps>();
  StepSample sample;
  sample.begins = {0};
  std::vector<DraftTree> drafts;
  double coin_before = 0.0;
  for (std::size_t b = 0; b < requests; ++b) {
    std::vector<Token> draft;
    std::vector<std::vector<float>> p, q;
    std::vector<double> draft_u;
    for (std::size_t i = 0; i <= kDrafts; ++i) {
      p.push_back(random_row(bits));
      steps->target.insert(steps->target.end(), p.back().begin(), p.back().end());
      if (i == kDrafts) break;
      q.push_back(random_row(bits));
      steps->proposal.insert(steps->proposal.end(), q.back().begin(), q.back().end());
      draft_u.push_back(uniform(bits));
      draft.push_back(static_cast<Token>(draw(q.back(), draft_u.back())));
    }
    std::vector<double> u;
    for (std::size_t i = 0; i < kDrafts; ++i) u.push_back(uniform(bits));
    double last_u = uniform(bits);
    if (fault == Fault::one_coin) u = {u[0], u[0], u[0]};
    if (fault == Fault::coin_of_draft) u = draft_u;
    if (fault == Fault::coins_not_uniform)
      for (double& x : u) x *= x;
    if (fault == Fault::coins_of_requests && b % 2 == 1) u[0] = coin_before;
    coin_before = u[0];
    std::size_t accepted = 0;
    const auto stands = [&](std::size_t i) {
      const auto token = static_cast<std::size_t>(draft[i]);
      return u[i] * static_cast<double>(q[i][token]) < static_cast<double>(p[i][token]);
    };
    while (accepted < kDrafts && stands(accepted)) ++accepted;
    if (fault == Fault::coin_draws_residual && accepted < kDrafts) last_u = u[accepted];
    if (fault == Fault::departs_once && b == 1234) accepted = accepted == 0 ? 1 : 0;
    std::vector<float> masses = p[accepted];
    if (accepted < kDrafts)
      for (std::size_t t = 0; t < kVocab; ++t) masses[t] = std::max(0.0f, p[accepted][t] - q[accepted][t]);
    for (std::size_t i = 0; i < accepted; ++i) sample.tokens.push_back(draft[i]);
    sample.tokens.push_back(static_cast<Token>(draw(masses, last_u)));
    sample.begins.push_back(sample.tokens.size());
    steps->uniforms.insert(steps->uniforms.end(), u.begin(), u.end());
    steps->draw_uniforms.push_back(last_u);
    drafts.push_back(DraftTree::chain(draft));
  }
  constexpr auto kWidth = static_cast<std::int64_t>(kVocab);
  for (std::size_t b = 0; b < requests; ++b) {
    VerifyRequest request;
    request.draft = drafts[b];
    request.target_is_probabilities = true;
    request.target = {DType::f32, steps->target.data() + b * (kDrafts + 1) * kVocab, kDrafts + 1, kWidth, kWidth};
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = {DType::f32, steps->proposal.data() + b * kDrafts * kVocab, kDrafts, kWidth, kWidth};
    request.recorded.uniforms = RecordedNumbers{{}, std::span(steps->uniforms).subspan(b * kDrafts, kDrafts)};
    request.recorded.draw_uniforms = RecordedNumbers{{}, std::span(steps->draw_uniforms).subspan(b, 1)};
    sample.requests.push_back(request);
  }
  sample.keeps = steps;
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
  const auto replay =
      std::find_if(audit.tests.begin(), audit.tests.end(), [](const TestResult& t) { return t.name == "replay"; });
  REQUIRE(replay != audit.tests.end());
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
  CHECK_THROWS_WITH(audit_steps(sample, options), Catch::Matchers::Contains("throws no coins"));
  options.verifier.reset();
  const std::set<std::string> names = rejected(audit_steps(sample, options));
  CHECK(names.contains("correlation_coins"));
  CHECK_FALSE(names.contains("replay"));
}

}  // namespace draftproof
