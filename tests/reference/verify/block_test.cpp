// Beside the proof of block verification (exactness/proof): its numbers at their limits, padding, and the ends of the
// coins in doubles.
#include "reference/verify/block.hpp"

#include "reference/random/injected.hpp"
#include "reference/verify/chance.hpp"
#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

ChainOutcome with_coins(const RandomBlock& coin, const std::vector<Token>& draft, DenseRows<double> target,
                        DenseRows<double> proposal) {
  InjectedSource source;
  source.inject(Purpose::accept, coin);
  AddressedChance<InjectedSource> chance(source, 1, 0);
  return verify_block(std::span<const Token>(draft), target, proposal, chance);
}

}  // namespace

TEST_CASE("block weights and acceptances have their limits") {
  using R = Rational;
  CHECK(block_weight(R(1, 2), R(1, 2), R(1, 3)) == R(3, 4));
  CHECK(block_weight(R(1, 2), R(1, 2), R(1, 8)) == 1);
  CHECK(block_weight(R(1), R(0), R(1, 2)) == 0);     // the target forbids the draft
  CHECK(block_weight(R(0), R(1, 2), R(1, 4)) == 0);  // once 0, always 0
  CHECK(block_weight(R(1), R(0), R(0)) == 0);        // not 0 times infinity
  CHECK(block_weight(R(0), R(1, 2), R(0)) == 0);
  CHECK(block_weight(R(1, 9), R(1, 2), R(0)) == 1);  // a draft that q cannot produce: an infinite ratio
  CHECK(block_acceptance(R(0), R(1)) == 1);          // p = q: 0/0
  CHECK(block_acceptance(R(0), R(0)) == 0);
  CHECK(block_acceptance(R(1, 4), R(1, 2)) == R(1, 3));
  CHECK(block_weight(1.0, 0.0, 0.0) == 0.0);
  CHECK(block_acceptance(0.0, 1.0) == 1.0);
}

TEST_CASE("padding ends the drafts and the last valid one has its own acceptance") {
  // The drafts 1, -1, -1 are the one draft 1; rows after it are not looked at, so they need not exist.
  const ProofSteps padded = proof_steps::chain_step([](std::span<const Token> draft, auto&&... rows_and_chance) {
    std::vector<Token> longer(draft.begin(), draft.end());
    longer.insert(longer.end(), 2, kPaddingToken);
    return verify_block(std::span<const Token>(longer), rows_and_chance...);
  });
  const ProofSteps plain = proof_steps::chain_step(proof_steps::block);
  const Models models(3, 110, ModelKind::dense);
  for (std::int32_t draft_len = 0; draft_len <= 2; ++draft_len)
    CHECK(step_distribution(padded, models, {}, draft_len).distribution ==
          step_distribution(plain, models, {}, draft_len).distribution);
}

TEST_CASE("an empty residual after rounding draws from the target") {
  // p and q differ by less than the fixed point resolves, p_1 < 1, and the injected coins reject everything.
  const ChainOutcome outcome =
      with_coins(InjectedSource::kOnes, {0}, {{{0x1p-70, 1.0}, {0.0, 1.0}}}, {{{0x1p-69, 1.0}}});
  CHECK(outcome.num_accepted == 0);
  CHECK(outcome.last_token == 1);
}

TEST_CASE("equal rows are accepted whatever the coins say") {
  const DenseRows<double> rows{{{0.1, 0.2, 0.7}, {0.3, 0.3, 0.4}, {0.6, 0.3, 0.1}}};
  for (const RandomBlock& word : {InjectedSource::kZeros, InjectedSource::kSmallest, InjectedSource::kOnes})
    CHECK(with_coins(word, {0, 2}, rows, rows).num_accepted == 2);
}

TEST_CASE("a draft that the target forbids is never accepted even by a coin of zero") {
  const ChainOutcome outcome =
      with_coins(InjectedSource::kZeros, {0, 0}, {{{0.0, 1.0}, {0.5, 0.5}, {0.5, 0.5}}}, {{{0.5, 0.5}, {0.25, 0.75}}});
  CHECK(outcome.num_accepted == 0);
  CHECK(outcome.last_token == 1);
}
