#include "exactness/soak/chain_trials.hpp"

#include "exactness/proof/grid_chance.hpp"
#include "exactness/proof/output_distribution.hpp"
#include "reference/verify/chain.hpp"
#include "tests/support/test.hpp"

namespace {

std::vector<std::uint64_t> counts_of(ChainTrials run, const ChainTables& tables, std::uint64_t seed,
                                     std::uint32_t first, std::uint64_t count) {
  std::vector<std::uint64_t> counts(tables.model().cell_count(), 0);
  run(tables, seed, first, count, counts);
  return counts;
}

// The probabilities of the model as fractions, each row divided by its sum.
DenseMasses<Rational> fractions_of(const Distribution& distribution) {
  DenseMasses<Rational> masses;
  for (Token token = 0; token < distribution.vocab_size(); ++token)
    masses.emplace_back(static_cast<double>(distribution.probability(token)));
  return normalised(masses);
}

}  // namespace

TEST_CASE("Vectors of trials emit what the templates of production emit trial by trial") {
  const std::vector<ChainTrialKernel> kernels = available_chain_trials();
  CHECK(kernels.front().run == run_chain_trials_one_by_one);
  // The kernel in use is among them, so it is compared.
  CHECK(std::any_of(kernels.begin(), kernels.end(),
                    [](const ChainTrialKernel& kernel) { return kernel.run == chain_trials(); }));
  int differing = 0;
  for (const ModelKind kind : kModelKinds) {
    for (const std::int32_t vocab_size : {1, 2, 5, 8}) {
      for (const std::int32_t draft_len : {0, 1, 4}) {
        const ChainModel model(vocab_size, draft_len, kind, 7);
        const ChainTables tables(model);
        const auto expected = counts_of(run_chain_trials_one_by_one, tables, 11, 0xfffffd00u, 203);
        std::uint64_t total = 0;
        for (const std::uint64_t n : expected) total += n;
        CHECK(total == 203);
        for (const ChainTrialKernel& kernel : kernels)
          differing += counts_of(kernel.run, tables, 11, 0xfffffd00u, 203) != expected;
      }
    }
  }
  CHECK(differing == 0);
}

TEST_CASE("Vectors of trials agree with production cell by cell over many trials") {
  const ChainModel model(8, 4, ModelKind::zeros, 3);
  const ChainTables tables(model);
  CHECK(counts_of(chain_trials(), tables, 5, 0, 30'000) ==
        counts_of(run_chain_trials_one_by_one, tables, 5, 0, 30'000));
}

TEST_CASE("The distribution of the cells is that of the chain verifier over fractions") {
  const std::int32_t draft_len = 2;
  for (const ModelKind kind : kModelKinds) {
    const ChainModel model(3, draft_len, kind, 1);
    std::vector<Rational> enumerated(model.cell_count(), Rational(0));
    EnumeratingChance<Rational> chance;
    do {
      DenseRows<Rational> target, proposal;
      std::vector<Token> draft;
      Token previous = 0;
      for (std::int32_t i = 0; i <= draft_len; ++i) {
        target.rows.push_back(fractions_of(model.target(i, previous)));
        if (i == draft_len) break;
        proposal.rows.push_back(fractions_of(model.draft(i, previous)));
        previous = chance.draw(proposal.rows.back(), static_cast<std::uint32_t>(i), Purpose::draft_sample);
        draft.push_back(previous);
      }
      const ChainOutcome outcome = verify_chain(std::span<const Token>(draft), target, proposal, chance);
      draft.resize(outcome.num_accepted);
      draft.push_back(outcome.last_token);
      enumerated[model.cell_of(draft)] += chance.probability();
    } while (chance.next());
    const std::vector<double> distribution = model.emitted_distribution();
    double worst = 0.0;
    for (std::size_t cell = 0; cell < distribution.size(); ++cell)
      worst = std::max(worst, std::abs(distribution[cell] - static_cast<double>(enumerated[cell])));
    CHECK(worst < 1e-15);
  }
}

TEST_CASE("Every cell of a soak is one string") {
  const ChainModel model(3, 2, ModelKind::dense, 0);
  CHECK(model.cell_count() == 3 + 9 + 27);
  for (std::size_t cell = 0; cell < model.cell_count(); ++cell) CHECK(model.cell_of(model.tokens_of(cell)) == cell);
  CHECK(model.tokens_of(3 + 5) == std::vector<Token>{1, 2});
}

TEST_CASE("A soak of a vocabulary or draft that is too large is refused") {
  CHECK_THROWS_WITH(ChainModel(9, 4, ModelKind::dense, 0), Contains("--vocab: 9 is not from 1 to 8"));
  CHECK_THROWS_WITH(ChainModel(8, 6, ModelKind::dense, 0), Contains("--num-speculative-tokens: 6 is not from 0 to 5"));
}
