// Acceptance metrics of steps small enough to count by hand.
#include "engine/metrics/acceptance.hpp"

#include "tests/support/test.hpp"

namespace {

TEST_CASE("the metrics of four steps are those counted by hand") {
  AcceptanceCounts counts(3);
  counts.add_step({3, 3, false, 4});  // all accepted and a bonus token
  counts.add_step({3, 1, true, 2});
  counts.add_step({3, 0, true, 1});
  counts.add_step({1, 1, false, 1});  // a short draft, clipped after one of two tokens
  counts.add_step({0, 0, false, 1});  // no draft
  const AcceptanceMetrics metrics = acceptance_metrics(std::vector{counts});
  CHECK(metrics.counts.steps == 5);
  CHECK(metrics.counts.drafts == 4);
  CHECK(metrics.counts.draft_tokens == 10);
  CHECK(metrics.counts.accepted_tokens == 5);
  CHECK(metrics.counts.received_tokens == 9);
  CHECK(metrics.counts.discarded_tokens == 1);
  CHECK(metrics.acceptance_length == 1.0 + 5.0 / 4.0);
  CHECK(metrics.tokens_per_step == 9.0 / 5.0);
  REQUIRE(metrics.conditional.size() == 3);
  CHECK(metrics.conditional[0]->rate == 3.0 / 4.0);
  CHECK(metrics.conditional[1]->rate == 1.0 / 2.0);
  CHECK(metrics.conditional[2]->rate == 1.0);
  CHECK(metrics.unconditional[0]->rate == 3.0 / 5.0);
  CHECK(metrics.unconditional[1]->rate == 1.0 / 5.0);
  CHECK(metrics.unconditional[2]->rate == 1.0 / 5.0);
  CHECK(*metrics.tokens_per_step_formula == Approx(1.0 + 3.0 / 4.0 + 3.0 / 8.0 + 3.0 / 8.0));
  CHECK_FALSE(metrics.conditional[0]->standard_error);
}

TEST_CASE("what never happened has no rate") {
  AcceptanceCounts never(2);
  never.add_step({2, 0, true, 1});
  AcceptanceMetrics metrics = acceptance_metrics(std::vector{never});
  CHECK(metrics.conditional[0]->rate == 0.0);
  CHECK_FALSE(metrics.conditional[1]);
  CHECK(*metrics.tokens_per_step_formula == 1.0);

  AcceptanceCounts short_drafts(2);
  short_drafts.add_step({1, 1, false, 2});
  metrics = acceptance_metrics(std::vector{short_drafts});
  CHECK(*metrics.tokens_per_step_formula == 2.0);
  CHECK(metrics.acceptance_length == 2.0);

  metrics = acceptance_metrics(std::vector{AcceptanceCounts(0)});
  CHECK(metrics.acceptance_length == 1.0);
  CHECK(metrics.tokens_per_step == 0.0);
  CHECK_FALSE(metrics.tokens_per_step_formula);

  AcceptanceCounts no_speculation(0);
  no_speculation.add_step({0, 0, false, 1});
  CHECK(*acceptance_metrics(std::vector{no_speculation}).tokens_per_step_formula == 1.0);
}

TEST_CASE("drafts of any length are counted by position, and clusters of different lengths add up") {
  AcceptanceCounts adaptive(0);
  adaptive.add_step({2, 2, false, 3});
  adaptive.add_step({5, 3, true, 4});
  adaptive.add_step({7, 1, true, 2});  // a tree of seven nodes whose walk ended one deep, above more drafts
  CHECK(adaptive.reached == std::vector<std::int64_t>{3, 3, 1, 1});
  CHECK(adaptive.accepted == std::vector<std::int64_t>{3, 2, 1, 0});
  AcceptanceCounts short_one(1);
  short_one.add_step({1, 0, true, 1});
  AcceptanceCounts sum = short_one;
  sum += adaptive;
  CHECK(sum.reached == std::vector<std::int64_t>{4, 3, 1, 1});
  CHECK(acceptance_metrics(std::vector{short_one, adaptive}).counts == sum);
  CHECK(acceptance_metrics(std::vector{adaptive, short_one}).conditional[1]->rate == 2.0 / 3.0);
}

TEST_CASE("clusters add up and their standard error is the one worked out by hand") {
  // Rates 3/4 and 1/4 of 4 each: r = 1/2, residuals 1 and -1, se^2 = 2 / 1 * 2 / 64.
  const std::vector<std::int64_t> numerators{3, 1};
  const std::vector<std::int64_t> denominators{4, 4};
  const auto estimate = estimate_rate(numerators, denominators);
  CHECK(estimate->rate == 0.5);
  CHECK(*estimate->standard_error == Approx(std::sqrt(2.0 * 2.0 / 64.0)));
  // Equal clusters have no scatter between them.
  const std::vector<std::int64_t> twos{2, 2};
  CHECK(*estimate_rate(twos, denominators)->standard_error == 0.0);
  CHECK_FALSE(estimate_rate(std::vector<std::int64_t>{0, 0}, std::vector<std::int64_t>{0, 0}));

  AcceptanceCounts a(2);
  a.add_step({2, 2, false, 3});
  AcceptanceCounts b(2);
  b.add_step({2, 0, true, 1});
  AcceptanceCounts both(2);
  both.add_step({2, 0, true, 1});
  both.add_step({2, 2, false, 3});
  const AcceptanceMetrics metrics = acceptance_metrics(std::vector{a, b});
  CHECK(metrics.counts == both);
  CHECK(*metrics.tokens_per_step_standard_error == Approx(std::sqrt(2.0 * 2.0 / 4.0)));
}

}  // namespace
