#include "exactness/soak/soak.hpp"

#include "exactness/soak/chain_trials.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

TEST_CASE("A soak of the chain verifier finds its distribution on every kind of model") {
  constexpr int kDecisions = 2 * static_cast<int>(kModelKinds.size());
  for (const ModelKind kind : kModelKinds) {
    SoakOptions options;
    options.trials = 300'000;
    options.kind = kind;
    options.alpha = suite_level(kDecisions);
    const SoakResult result = soak(options);
    CHECK(result.consistent());
    CHECK(result.trials == options.trials);
    // From 1 to draft_len + 1, so with no deviation above half the span.
    CHECK(has_mean(result.acceptance_length, result.acceptance_length_expected, 0.5 * options.draft_len, options.trials,
                   kDecisions));
    CHECK(result.looks.size() == 1);
  }
}

TEST_CASE("A soak has the same counts whatever the number of threads") {
  SoakOptions options;
  options.trials = 3'000'001;
  options.vocab_size = 4;
  options.draft_len = 2;
  SoakOptions two = options;
  two.threads = 2;
  const SoakResult a = soak(options);
  const SoakResult b = soak(two);
  CHECK(a.acceptance_length == b.acceptance_length);
  REQUIRE(a.tests.size() == b.tests.size());
  for (std::size_t i = 0; i < a.tests.size(); ++i) CHECK(a.tests[i].statistic == b.tests[i].statistic);
}

TEST_CASE("Trials of one model are refuted by the distribution of another") {
  const ChainModel model(8, 4, ModelKind::dense, 1);
  const ChainModel other(8, 4, ModelKind::dense, 2);
  std::vector<std::uint64_t> counts(model.cell_count(), 0);
  chain_trials()(ChainTables(model), 0, 0, 100'000, counts);
  const std::vector<std::int64_t> observed(counts.begin(), counts.end());
  CHECK_FALSE(follows(observed, other.emitted_distribution()));
  CHECK(follows(observed, model.emitted_distribution()));
}

TEST_CASE("The counted strings of a soak are named by their tokens, each once") {
  SoakOptions options;
  options.trials = 300'000;
  options.kind = ModelKind::dense;
  std::set<std::string> strings;
  for (const TestResult& test : soak(options).tests) {
    for (const auto& cell : test.worst_cells) {
      std::string text;
      for (const auto& [name, token] : cell.keys) text += name + "=" + std::to_string(token) + " ";
      INFO(text);
      CHECK(cell.keys.size() >= 1);
      CHECK(cell.keys.size() <= static_cast<std::size_t>(options.draft_len) + 1);
      CHECK(strings.insert(test.name + " " + text).second);
    }
  }
  CHECK(strings.size() > 1);
}

TEST_CASE("A soak of one trial is one, and of none is refused") {
  SoakOptions options;
  options.trials = 1;
  CHECK(soak(options).trials == 1);
  options.trials = 0;
  CHECK_THROWS_WITH(soak(options), Contains("--trials: 0; there must be 1 or more"));
}
