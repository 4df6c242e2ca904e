// Draws whose every marginal is right and that share their randomness: found, as a correlation. Independent ones are
// not accused.
#include "exactness/audit/independence.hpp"
#include "exactness/audit/audit.hpp"
#include "exactness/statistics/battery.hpp"
#include "tests/exactness/audit/found_tests.hpp"
#include "tests/exactness/audit/samples.hpp"
#include "tests/exactness/audit/tree_samples.hpp"
#include "tests/support/test.hpp"

namespace {

std::set<std::string> rejected(std::vector<TestResult> tests, double alpha) {
  judge(tests, alpha);
  return rejecting(tests);
}

// `steps` steps of `rows` rows; u_of(step, row) is the number that draws there.
template <class UniformOf>
std::pair<std::vector<double>, DrawCoordinates> drawn_at(std::int64_t steps, std::int64_t rows, const UniformOf& u_of) {
  std::pair<std::vector<double>, DrawCoordinates> drawn;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::int64_t row = 0; row < rows; ++row) {
      drawn.first.push_back(u_of(step, row));
      drawn.second.step.push_back(step);
      drawn.second.row.push_back(row);
    }
  }
  return drawn;
}

double number(std::uint64_t seed, std::int64_t a, std::int64_t b) {
  return TestRandom(derive_seed(derive_seed(seed, static_cast<std::uint64_t>(a)), static_cast<std::uint64_t>(b)))
      .uniform();
}

TEST_CASE("independent draws are not accused, however they are placed") {
  const auto [u, at] = drawn_at(400, 64, [](std::int64_t step, std::int64_t row) { return number(1, step, row); });
  const std::vector<TestResult> tests = independence_tests(u, at);
  CHECK(tests.size() == 4 + 6);  // steps; rows 1, 2, ..., 32 apart
  CHECK(rejected(tests, suite_level(1)).empty());
  DrawCoordinates seeds;
  for (std::size_t i = 0; i < u.size(); ++i) seeds.seed.push_back((i % 2 << 40) + i / 2);
  CHECK(rejected(independence_tests(u, seeds), suite_level(1)).empty());
}

TEST_CASE("places at the ends of their range have no partner") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  auto [u, at] = drawn_at(50, 4, [](std::int64_t step, std::int64_t row) { return number(3, step, row); });
  for (std::size_t i = 0; i < u.size(); ++i) at.step[i] = i % 2 == 0 ? kMost - at.step[i] : kLeast + at.step[i];
  at.row = at.step;
  for (const TestResult& test : independence_tests(u, at)) CHECK(test.n < 200);
}

TEST_CASE("B79, one row of noise for all rows of a batch, is found in 200 steps") {
  const auto [u, at] = drawn_at(200, 16, [](std::int64_t step, std::int64_t) { return number(2, step, 0); });
  CHECK(rejected(independence_tests(u, at), suite_level(1)).count("correlation_rows_1") == 1);
}

TEST_CASE("B77, a step that reuses the number of half its number, is found although neighbours are independent") {
  const auto whole = [](std::int64_t step, std::int64_t row) {
    while (step > 0 && step % 2 == 0) step /= 2;
    return number(6, step, row);
  };
  const auto [v, placed] = drawn_at(4000, 4, whole);
  const std::set<std::string> found = rejected(independence_tests(v, placed), suite_level(1));
  CHECK(found.count("correlation_double_step") == 1);
  CHECK(found.count("correlation_next_step") == 0);
}

TEST_CASE("seeds that a cast made equal are found by what they share") {
  std::vector<double> low, high, floats;
  DrawCoordinates by_low, by_float;
  for (std::uint64_t i = 0; i < 6000; ++i) {
    by_low.seed.push_back((i % 2 << 33) + i / 2);
    low.push_back(number(7, static_cast<std::int64_t>(i / 2), 0));
    by_float.seed.push_back((std::uint64_t{1} << 40) + i * (1 << 16));
    floats.push_back(number(8, static_cast<std::int64_t>(static_cast<float>(by_float.seed.back())), 0));
  }
  CHECK(rejected(independence_tests(low, by_low), suite_level(1)).count("correlation_low_seed_bits") == 1);
  CHECK(rejected(independence_tests(floats, by_float), suite_level(1)).count("correlation_seed_as_float") == 1);
}

TEST_CASE("a marginal that is biased is no correlation") {
  const auto [u, at] = drawn_at(2000, 8, [](std::int64_t step, std::int64_t row) {
    const double x = number(9, step, row);
    return x * x;
  });
  CHECK(rejected(independence_tests(u, at), suite_level(1)).empty());
}

// Draws of `rows` rows over `steps` steps; of_row(row) says which row's numbers a row draws with.
template <class OfRow>
Audit audit_of_rows(std::int64_t steps, std::int64_t rows, const OfRow& of_row) {
  const std::vector<double> p = {0.4, 0.3, 0.2, 0.1};
  DrawSample sample = drawn(10, 0, p, p);
  OrderedDraws ordered;
  std::vector<std::int64_t> counts(4, 0);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::int64_t row = 0; row < rows; ++row) {
      TestRandom random(
          derive_seed(derive_seed(12, static_cast<std::uint64_t>(step)), static_cast<std::uint64_t>(of_row(row))));
      const std::size_t token = random.draw(p);
      ++counts[token];
      ordered.tokens.push_back(static_cast<Token>(token));
      ordered.groups.push_back(0);
      ordered.at.step.push_back(step);
      ordered.at.row.push_back(row);
    }
  }
  for (std::size_t token = 0; token < 4; ++token) sample.counts.push_back({static_cast<Token>(token), counts[token]});
  sample.begins = {0, 4};
  sample.ordered = std::move(ordered);
  AuditOptions options;
  options.alpha = suite_level(2);
  return audit_draws(sample, options);
}

TEST_CASE("an audit of draws reports a correlation as one, and says nothing of the distribution") {
  const Audit audit = audit_of_rows(10'000, 2, [](std::int64_t) { return 0; });
  CHECK(audit.verdict == AuditVerdict::biased);
  CHECK_THAT(audit.sentence, Contains("correlation_rows_1") && Contains("away from independence"));
  for (const TestResult& test : audit.tests)
    if (test.is_correlation)
      CHECK(test.rejects == (test.name == "correlation_rows_1" || test.name == "duplicate_streams"));
}

TEST_CASE("a row that repeats another one is found, however far from it, and named") {
  const Audit audit = audit_of_rows(60, 48, [](std::int64_t row) { return row == 41 ? 4 : row; });
  const TestResult* const test = find(audit, "duplicate_streams");
  REQUIRE(test != nullptr);
  INFO(test->sentence);
  CHECK(test->rejects);
  CHECK(test->statistic == 1.0);
  CHECK(test->n == 48 * 47 / 2);
  // 60 equal tokens of (0.4, 0.3, 0.2, 0.1), whose squares sum to 0.3, in any of 1128 pairs.
  CHECK(test->p_value == Approx(1128.0 * std::pow(0.3, 60.0)).epsilon(1e-6));
  CHECK(test->worst_cells.at(0).label() == "row 4, other_row 41");
  CHECK(audit.verdict == AuditVerdict::biased);
  const Audit sound = audit_of_rows(60, 48, [](std::int64_t row) { return row; });
  REQUIRE(find(sound, "duplicate_streams") != nullptr);
  CHECK(find(sound, "duplicate_streams")->p_value == 1.0);
  // Rows that are equal by chance: few steps of few tokens.
  const Audit few = audit_of_rows(4, 48, [](std::int64_t row) { return row; });
  CHECK(find(few, "duplicate_streams")->statistic > 0.0);
  CHECK_FALSE(find(few, "duplicate_streams")->rejects);
}

TEST_CASE("a recovered token that is drawn with its draft's number is found, and the next step's draft likewise") {
  // One number draws the draft of a row and the token that is recovered there; or the last token of a step and the
  // first draft of the next.
  const auto sample_of = [](bool shares_row, bool shares_next) {
    const auto u_of = [](std::int64_t step, std::int64_t use) { return number(13, step, use); };
    auto step = std::make_shared<std::int64_t>(-1);
    const TreeDrafter drafter = [=](const PathDistribution& q, TreeChance&) {
      ++*step;
      DraftTree tree;
      for (std::int32_t i = 0; i < 2; ++i) {
        const double u = shares_next && i == 0 ? u_of(*step - 1, 9) : u_of(*step, i);
        tree.add(drawn_by(u, q(tree.path(i - 1))), i - 1);
      }
      return tree;
    };
    const TreeEngine engine = [=](const DraftTree& tree, TreeRows& p, TreeRows& q, TreeChance& chance) {
      TreeOutcome outcome{{}, 0};
      for (std::uint32_t row = 0; row < 2; ++row) {
        const Token x = tree.tokens[row];
        if (!chance.accept(p.probability(row, x), q.probability(row, x), row)) {
          outcome.last_token =
              drawn_by(shares_row ? u_of(*step, row) : u_of(*step, 9), positive_difference(p.row(row), q.row(row)));
          return outcome;
        }
        outcome.path.push_back(static_cast<std::int32_t>(row));
      }
      outcome.last_token = drawn_by(u_of(*step, 9), p.row(2));
      return outcome;
    };
    StepSample sample = tree_steps(55, {.steps = 8000}, Verifier::chain, drafter, engine);
    sample.at.emplace();
    for (std::int64_t b = 0; b < 8000; ++b) sample.at->step.push_back(b);
    return sample;
  };
  AuditOptions options;
  options.alpha = suite_level(6);
  for (const auto& [shares_row, shares_next] : {std::pair(false, false), {true, false}, {false, true}}) {
    const Audit audit = audit_steps(sample_of(shares_row, shares_next), options);
    INFO(audit.sentence);
    REQUIRE(find(audit, "correlation_draft_last") != nullptr);
    REQUIRE(find(audit, "correlation_last_next_draft") != nullptr);
    CHECK(find(audit, "correlation_draft_last")->rejects == shares_row);
    CHECK(find(audit, "correlation_last_next_draft")->rejects == shares_next);
  }
}

TEST_CASE("B80, block verification with an unscaled residual, is found by 64,000 completed strings of any verifier") {
  if (kSanitized) {
    WARN("SKIPPED: under sanitizers the tests beside it run the same code on fewer steps");
    return;
  }
  AuditOptions options;
  options.alpha = suite_level(1);
  options.verifier = std::nullopt;
  const auto steps_of = [](const TreeEngine& engine) {
    return tree_steps(38, {.steps = 64'000}, Verifier::block, drafter_for(info_of(Verifier::block)), engine);
  };
  const Audit sound = audit_steps(steps_of({}), options);
  INFO(sound.sentence);
  CHECK(sound.verdict == AuditVerdict::consistent);
  CHECK(sound.string_tokens == 4);
  CHECK(sound.string_tokens_max == 4);
  CHECK_THAT(sound.sentence, Contains("of completed strings of 4 tokens"));
  const Audit faulty = audit_steps(steps_of(unscaled_block), options);
  INFO(faulty.sentence);
  CHECK(faulty.verdict == AuditVerdict::biased);
  CHECK(rejects(faulty, "string_3"));
}

TEST_CASE("what cannot be counted to the full depth is said") {
  AuditOptions options;
  options.alpha = suite_level(1);
  options.verifier = std::nullopt;
  const Audit audit =
      audit_steps(steps_of("block", {.steps = 20'000, .contexts = 0, .reports_path = false}, 42), options);
  INFO(audit.sentence);
  CHECK(audit.string_tokens == 1);
  CHECK_THAT(audit.sentence, Contains("of the first token") && Contains("were not counted"));
}

}  // namespace
