// The audit of right and wrong samplers: it must let the former pass, find the latter, and say by which test.
#include "exactness/audit/audit.hpp"

#include "exactness/audit/self_test.hpp"
#include "tests/exactness/audit/found_tests.hpp"
#include "tests/exactness/audit/samples.hpp"
#include "tests/exactness/audit/tree_samples.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

const std::vector<double> kUniform8(8, 0.125);

// Options at which a test case may look `decisions` times at samplers that are right; the wrong ones are found at the
// same level.
AuditOptions at_suite_level(int decisions, AuditOptions options = {}) {
  options.alpha = suite_level(decisions);
  return options;
}

TEST_CASE("a fault at the detectable distance is found as often as the audit says") {
  // p' = p (1 +- 2 TV): the fault of its distance that is hardest to see, for which lambda is 4 n TV^2 exactly.
  const std::int64_t n = 10000;
  const AuditOptions options = at_suite_level(3, {.tv_wanted = 0.1});
  const Audit null = audit_draws(drawn(1, n, kUniform8, kUniform8), options);
  CHECK(null.verdict == AuditVerdict::consistent);
  const double detectable = find(null, "tokens")->detectable_tv;
  const double level = options.alpha / static_cast<double>(null.tests.size());
  CHECK(detectable == Approx(detectable_total_variation(1e4, 7, level, 0.99)));

  const auto found_of_200 = [&](double distance) {
    std::vector<double> biased(8);
    for (std::size_t i = 0; i < 8; ++i) biased[i] = 0.125 * (1.0 + (i % 2 == 0 ? 2.0 : -2.0) * distance);
    int found = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const Audit audit = audit_draws(drawn(100 + seed, n, kUniform8, biased), options);
      found += rejects(audit, "tokens") ? 1 : 0;
    }
    return found;
  };
  CHECK(possible_rates(found_of_200(detectable), 200, 3).high >= 0.99);
  CHECK(possible_rates(found_of_200(0.5 * detectable), 200, 3).low < 0.3);  // the distance is not overstated by far
}

TEST_CASE("the estimated distance is zero without a fault and right with a large one") {
  // A draw moves the estimate by 1 / n at the most, so McDiarmid's inequality bounds its deviations.
  constexpr std::int64_t n = 100000;
  const double margin = std::sqrt(std::log(2.0 / suite_level(2)) / (2.0 * n));
  const Audit null = audit_draws(drawn(2, n, kUniform8, kUniform8), {});
  CHECK(find(null, "tokens")->estimated_tv < margin);
  const std::vector<double> biased{0.225, 0.025, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125};
  const Audit audit = audit_draws(drawn(2, n, kUniform8, biased), {});
  CHECK(audit.verdict == AuditVerdict::biased);
  CHECK(find(audit, "tokens")->estimated_tv == Approx(0.1).margin(margin));
  // The two cells that are wrong come first.
  const auto& worst = find(audit, "tokens")->worst_cells;
  CHECK(worst[0].label() == "group 0, token 1");
  CHECK(worst[1].label() == "group 0, token 0");
  CHECK(worst[0].expected == Approx(12500.0));
}

TEST_CASE("a token of probability zero is a finding by itself") {
  std::vector<double> stated = kUniform8;
  stated[3] = 0.0;
  stated[4] = 0.25;
  std::vector<double> drawn_distribution = stated;
  drawn_distribution[3] = 1e-3;
  drawn_distribution[4] -= 1e-3;
  const Audit audit = audit_draws(drawn(3, 5000, stated, drawn_distribution), at_suite_level(1));
  CHECK(rejecting(audit.tests) == std::set<std::string>{"support"});
  CHECK(audit.verdict == AuditVerdict::biased);
  CHECK(find(audit, "support")->worst_cells[0].label() == "group 0, token 3");
  CHECK_FALSE(audit.anytime_log10_wealth);
}

TEST_CASE("few draws are neither consistent nor biased") {
  const DrawSample sample = drawn(4, 400, kUniform8, kUniform8);
  const Audit audit = audit_draws(sample, at_suite_level(2));
  CHECK(audit.verdict == AuditVerdict::inconclusive);
  CHECK(audit.detectable_tv > 0.05);
  CHECK(audit_draws(sample, at_suite_level(2, {.tv_wanted = 0.5})).verdict == AuditVerdict::consistent);
  CHECK(audit_draws(drawn(4, 0, kUniform8, kUniform8), {}).verdict == AuditVerdict::inconclusive);
}

TEST_CASE("greedy draws are judged by their support") {
  const std::vector<double> one_hot{0.0, 1.0, 0.0};
  CHECK(audit_draws(drawn(5, 1000, one_hot, one_hot), {}).verdict == AuditVerdict::consistent);
  CHECK(audit_draws(drawn(5, 1000, one_hot, {0.01, 0.99, 0.0}), {}).verdict == AuditVerdict::biased);
}

TEST_CASE("draws that all have distributions of their own are audited through their transforms") {
  const Audit right = audit_draws(drawn_once_each(6, 20000, 1.0f), at_suite_level(1));
  CHECK(right.verdict == AuditVerdict::consistent);
  CHECK(find(right, "tokens") == nullptr);
  CHECK(right.groups == 20000);
  const Audit wrong = audit_draws(drawn_once_each(6, 20000, 1.15f), at_suite_level(1));
  CHECK(wrong.verdict == AuditVerdict::biased);
  CHECK(rejects(wrong, "transform_ks"));
}

TEST_CASE("the bettor is rich against a wrong sampler only") {
  const double rich = -std::log10(suite_level());  // with a right sampler, less likely than that ever
  CHECK(*audit_draws(drawn(7, 20000, kUniform8, kUniform8), {}).anytime_log10_wealth < rich);
  std::vector<double> biased = kUniform8;
  biased[0] += 0.03;
  biased[1] -= 0.03;
  CHECK(*audit_draws(drawn(7, 20000, kUniform8, biased), {}).anytime_log10_wealth > rich);
}

TEST_CASE("a recovered token drawn from the target is found in shared and in single contexts") {
  const ChainEngine engine = [](std::span<const Token> draft, TreeRows& p, TreeRows& q, TreeChance& chance) {
    for (std::uint32_t i = 0; i < draft.size(); ++i) {
      if (!chance.accept(p.probability(i, draft[i]), q.probability(i, draft[i]), i))
        return ChainOutcome{i, chance.draw(p.masses(i), i, Purpose::residual)};
    }
    const auto k = static_cast<std::uint32_t>(draft.size());
    return ChainOutcome{k, chance.draw(p.masses(k), k, Purpose::target_sample)};
  };
  for (const std::int64_t contexts : {1, 0}) {
    INFO("contexts " << contexts);
    const StepSample sample = chain_steps(11, {.steps = 9000, .contexts = contexts}, engine);
    const Audit audit = audit_steps(sample, at_suite_level(2));
    CHECK(rejects(audit, "recovered_support"));
    CHECK(rejects(audit, "recovered_ks"));
    CHECK_FALSE(rejects(audit, "acceptance_by_rate"));
    CHECK_FALSE(rejects(audit, "draft_ks"));
    // Also without knowing what the verifier does inside.
    const Audit blind = audit_steps(sample, at_suite_level(2, {.verifier = std::nullopt}));
    CHECK(blind.verdict == AuditVerdict::biased);
    CHECK(find(blind, "recovered_ks") == nullptr);
  }
}

TEST_CASE("acceptance with probability p instead of the ratio is found by its rates") {
  const ChainEngine engine = [](std::span<const Token> draft, TreeRows& p, TreeRows& q, TreeChance& chance) {
    for (std::uint32_t i = 0; i < draft.size(); ++i) {
      if (!chance.accept(p.probability(i, draft[i]), 1.0, i))
        return ChainOutcome{i, chance.draw(residual_masses(p, q, i), i, Purpose::residual)};
    }
    const auto k = static_cast<std::uint32_t>(draft.size());
    return ChainOutcome{k, chance.draw(p.masses(k), k, Purpose::target_sample)};
  };
  const Audit audit = audit_steps(chain_steps(12, {}, engine), at_suite_level(1));
  for (const char* name :
       {"acceptance_certain", "acceptance_by_position", "acceptance_by_rate", "num_accepted", "first_token"})
    CHECK(rejects(audit, name));
  CHECK_FALSE(rejects(audit, "recovered_ks"));
}

TEST_CASE("a fault at the second position is found by the string and not by the first token") {
  const ChainEngine engine = [](std::span<const Token> draft, TreeRows& p, TreeRows& q, TreeChance& chance) {
    const ChainOutcome right = verify_chain(draft, p, q, chance);
    if (right.num_accepted == 1) return ChainOutcome{1, chance.draw(p.masses(1), 1, Purpose::target_sample)};
    return right;
  };
  const Audit audit =
      audit_steps(chain_steps(13, {.steps = 12000}, engine), at_suite_level(1, {.verifier = std::nullopt}));
  CHECK_FALSE(rejects(audit, "first_token"));
  CHECK_FALSE(rejects(audit, "first_token_ks"));
  CHECK(rejects(audit, "string"));
  CHECK(rejects(audit, "string_bins"));
}

TEST_CASE("a bonus token from the row before is found by the bonus, and by the strings that it ends") {
  const ChainEngine engine = [](std::span<const Token> draft, TreeRows& p, TreeRows& q, TreeChance& chance) {
    const ChainOutcome right = verify_chain(draft, p, q, chance);
    if (right.num_accepted < draft.size()) return right;
    const auto k = static_cast<std::uint32_t>(draft.size());
    return ChainOutcome{k, chance.draw(p.masses(k - 1), k - 1, Purpose::target_sample)};
  };
  const Audit audit = audit_steps(chain_steps(14, {.steps = 8000}, engine), at_suite_level(1));
  CHECK((rejects(audit, "bonus_ks") || rejects(audit, "bonus_bins")));
  for (const std::string& name : rejecting(audit.tests)) {
    INFO(name);
    // The wrong row may allow what the right one does not, and does not know the draft that the right one follows.
    CHECK((name.starts_with("bonus_") || name == "string_4" || name == "support" || name == "correlation_draft_last"));
  }
}

TEST_CASE("drafts from another distribution than the one stated are found as such") {
  const TreeDrafter argmax = [](const PathDistribution& q, TreeChance&) { return top_k_children(q, chain_shape(3)); };
  const Audit audit = audit_steps(chain_steps(15, {}, chain_engine, argmax), at_suite_level(1));
  CHECK(rejects(audit, "draft_ks"));
  CHECK(rejects(audit, "draft_bins"));
  CHECK(rejects(audit, "first_token_ks"));
  CHECK_FALSE(rejects(audit, "acceptance_by_rate"));  // the verifier did what it could
}

TEST_CASE("probabilities rounded to sixteen bits accuse nobody") {
  for (const bool close_drafts : {false, true}) {
    INFO("close drafts " << close_drafts);
    const TreeStepOptions options{.contexts = 0, .close_drafts = close_drafts, .stored_as_bf16 = true};
    const Audit audit = audit_steps(chain_steps(17, options, chain_engine), at_suite_level(2));
    CHECK(rejecting(audit.tests).empty());
  }
}

TEST_CASE("contexts that only differ later are told apart by their groups or left out of the string") {
  StepSample sample = chain_steps(21, {.contexts = 2, .shared_first_rows = true}, chain_engine);
  const Audit by_content = audit_steps(sample, at_suite_level(2, {.tv_wanted = 0.15}));
  CHECK(by_content.verdict == AuditVerdict::consistent);
  CHECK(by_content.groups == 1);
  CHECK(find(by_content, "string") == nullptr);
  sample.groups.emplace();
  for (std::int64_t b = 0; b < 6000; ++b) sample.groups->push_back(b % 2);
  const Audit by_group = audit_steps(sample, at_suite_level(2, {.tv_wanted = 0.15}));
  CHECK(by_group.verdict == AuditVerdict::consistent);
  CHECK(by_group.groups == 2);
  CHECK(find(by_group, "string") != nullptr);
}

TEST_CASE("a draft of probability zero is found and judged no further") {
  const TreeDrafter one_draft = [](const PathDistribution& q, TreeChance& chance) { return draw_chain(q, 1, chance); };
  StepSample sample = chain_steps(18, {.steps = 300}, chain_engine, one_draft);
  // Claim that the first request's distribution of the draft forbids what was drafted.
  std::vector<float> distribution(12, 0.0f);
  distribution[static_cast<std::size_t>(sample.requests[0].draft.tokens[0] == 0 ? 1 : 0)] = 1.0f;
  sample.requests[0].proposal.data = distribution.data();
  const Audit audit = audit_steps(sample, {});
  CHECK(rejects(audit, "draft_support"));
  CHECK(find(audit, "draft_support")->statistic == 1.0);
  CHECK(find(audit, "draft_support")->worst_cells[0].label() ==
        "request 0, position 0, token " + std::to_string(sample.requests[0].draft.tokens[0]));
  CHECK(audit.positions[0].reached == 299);
}

TEST_CASE("groups that are given must share their first distribution") {
  StepSample sample = chain_steps(19, {.steps = 500, .contexts = 2}, chain_engine);
  sample.groups.emplace();
  for (std::int64_t b = 0; b < 500; ++b) sample.groups->push_back(40 + b % 2);
  CHECK(audit_steps(sample, at_suite_level(1, {.tv_wanted = 1.0})).verdict == AuditVerdict::consistent);
  (*sample.groups)[7] = 40;
  const std::string message = error_of(ErrorKind::input, [&] { audit_steps(sample, {}); });
  CHECK(message.find("requests 0 and 7 are both in group 40") != std::string::npos);
}

TEST_CASE("no result of an audit depends on the number of threads") {
  const StepSample steps = chain_steps(20, {.steps = 400, .contexts = 0}, chain_engine);
  const DrawSample draws = drawn_once_each(20, 500, 1.0f);
  const auto same = [](const Audit& a, const Audit& b) {
    REQUIRE(a.tests.size() == b.tests.size());
    for (std::size_t i = 0; i < a.tests.size(); ++i) {
      CHECK(a.tests[i].statistic == b.tests[i].statistic);
      CHECK(a.tests[i].sentence == b.tests[i].sentence);
    }
  };
  same(audit_steps(steps, {.threads = 1}), audit_steps(steps, {.threads = 3}));
  same(audit_draws(draws, {.threads = 1}), audit_draws(draws, {.threads = 3}));
}

TEST_CASE("an empty file of steps is too few and no crash") {
  const Audit audit = audit_steps(StepSample{{}, {0}, {}, {}, {}, {}, {}, {}, {}, {}}, {});
  CHECK(audit.verdict == AuditVerdict::inconclusive);
  CHECK(audit.tests.empty());
}

TEST_CASE("null batteries are accused as seldom as stated") {
  const SelfTest result = test_null_batteries({.batteries = 60, .alpha = 0.05, .threads = 2});
  CHECK(result.batteries == 60);
  CHECK(result.impossible == 0);
  CHECK(possible_rates(result.accused, result.batteries, 2).low <= 0.05);
  CHECK(result.least_ks_p_value_holm > suite_level(2));
  CHECK(result.tests.size() >= 18);
  CHECK_THROWS_WITH(test_null_batteries({.batteries = 0}), Contains("1 battery"));
}

TEST_CASE(
    "a self-test is a finding by too many accusations, by what is impossible, or by p values that are not uniform") {
  SelfTest sound;
  sound.batteries = 1000;
  sound.accused = 12;
  sound.alpha = 0.01;
  sound.accused_interval = {0.005, 0.023};
  CHECK_FALSE(sound.is_finding());
  CHECK(sound.accused_share() == 0.012);
  SelfTest accuses = sound;
  accuses.accused_interval.low = 0.011;
  SelfTest meets_impossible = sound;
  meets_impossible.impossible = 1;
  SelfTest skewed = sound;
  skewed.least_ks_p_value_holm = 9e-4;
  for (const SelfTest& faulty : {accuses, meets_impossible, skewed}) {
    CHECK(faulty.is_finding());
    CHECK(faulty.sentence() != sound.sentence());
  }
  CHECK(name_of(AuditVerdict::inconclusive) == "inconclusive");
}

}  // namespace
