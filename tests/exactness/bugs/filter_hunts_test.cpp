#include "exactness/bugs/filter/hunts.hpp"

#include "reference/numerics/natural_log.hpp"
#include "tests/support/test.hpp"

namespace {

Logits logits_of(std::initializer_list<double> masses) {
  Logits logits;
  for (const double mass : masses) logits.push_back(static_cast<float>(natural_log(mass)));
  return logits;
}

KeptTokens kept(const Logits& logits, const RowParameters& parameters) {
  return kept_by_definition(TemperedRow(logits, parameters.temperature).distribution, parameters.filters);
}

}  // namespace

TEST_CASE("filters by definition keep what their formulas say") {
  const Logits row = logits_of({4, 3, 3, 1});
  CHECK(kept(row, with_top_k(2)) == KeptTokens{true, true, false, false});
  CHECK(kept(row, with_top_k(0)) == KeptTokens{true, true, true, true});
  CHECK(kept(row, with_top_p(0.5f)) == KeptTokens{true, true, false, false});
  CHECK(kept(row, with_top_p(0.7f)) == KeptTokens{true, true, true, false});
  RowParameters parameters;
  parameters.filters.min_p = 0.5f;
  CHECK(kept(row, parameters) == KeptTokens{true, true, true, false});
  parameters.filters.top_k = 2;
  parameters.filters.top_p = 0.5f;
  CHECK(kept(row, parameters) == KeptTokens{true, true, false, false});
  parameters.filters.order = FilterOrder::top_k_first;
  CHECK(kept(row, parameters) == KeptTokens{true, false, false, false});
}

TEST_CASE("a greedy row has the first of the greatest values") {
  CHECK(distribution_by_definition(logits_of({1, 3, 3}), with_temperature(0.0f)) ==
        ExactDistribution{Rational(0), Rational(1), Rational(0)});
}

TEST_CASE("small rows are all rows with some mass") {
  CHECK(small_rows(3, 2).size() == 26);
}

TEST_CASE("a batch whose rows depend on their number is found and others are not") {
  const std::vector<int> items{1, 2, 3};
  const auto alone = [](const std::vector<int>& batch) { return batch; };
  const auto with_size = [](std::vector<int> batch) {
    if (batch.size() == 3) batch[2] += 1;
    return batch;
  };
  CHECK_FALSE(find_batch_dependence(items, alone).caught);
  CHECK(find_batch_dependence(items, with_size).caught);
}

TEST_CASE("impossible tokens are found and refusals are not") {
  const std::vector<bool> support{true, false};
  const auto finding = [&](std::function<Token()> draw) {
    return find_impossible_token(std::vector<SupportCase>{{"a row", support, std::move(draw)}});
  };
  CHECK_FALSE(finding([] { return 0; }).caught);
  CHECK_FALSE(finding([]() -> Token { throw input_error("row 0", "refused"); }).caught);
  CHECK(finding([] { return 1; }).caught);
  CHECK(finding([] { return 2; }).caught);
  CHECK(finding([] { return -1; }).caught);
}
