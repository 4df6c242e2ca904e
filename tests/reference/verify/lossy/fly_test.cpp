#include "reference/verify/lossy/fly.hpp"

#include "reference/random/injected.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/lossy/distance.hpp"
#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

using Row = DenseMasses<Rational>;

template <class Gate>
ProofSteps deferring_step(std::uint32_t window, Gate gate) {
  return exact_only(proof_steps::chain_step(
      [window, gate](std::span<const Token> draft, const auto& target, const auto& proposal, auto& chance) {
        return verify_fly(draft, target, proposal, window, gate, chance);
      }));
}
const auto open_always = [](const auto&) { return true; };
const auto open_never = [](const auto&) { return false; };

// Distribution of the first token that a step of `draft_len` drafts emits.
Row first_token(const ProofSteps& step, const Models& models, std::int32_t draft_len) {
  Row row(static_cast<std::size_t>(models.vocab_size()), Rational(0));
  for (const auto& [text, probability] : step_distribution(step, models, {}, draft_len).distribution)
    row[static_cast<std::size_t>(text[0])] += probability;
  return row;
}

// Probability that `window` drafts after a path are accepted one after the other, by a sum over them.
Rational passes(const Models& models, const TokenString& path, std::uint32_t window) {
  if (window == 0) return 1;
  Rational sum(0);
  for (std::size_t x = 0; x < models.target(path).size(); ++x) {
    TokenString next = path;
    next.push_back(static_cast<Token>(x));
    const Rational both = std::min(models.target(path)[x], models.draft(path)[x]);
    if (both > 0) sum += both * passes(models, next, window - 1);
  }
  return sum;
}

}  // namespace

TEST_CASE(
    "a deferred rejection is as far from the target as its formula says, at most TV, and nothing behind a closed "
    "gate") {
  int moved = 0;
  for (const ModelKind kind : kModelKinds)
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      for (const std::uint32_t window : {1U, 2U}) {
        const Models models(3, seed, kind);
        const Row& p = models.target({});
        const Row& q = models.draft({});
        Row after;
        for (Token x = 0; x < 3; ++x) after.push_back(passes(models, {x}, window));
        const Rational distance = total_variation_of(
            p, first_token(deferring_step(window, open_always), models, static_cast<std::int32_t>(window) + 1));
        INFO(name_of(kind) << " seed " << seed << " window " << window);
        CHECK(distance == fly_distance(p, q, after));
        CHECK(distance <= total_variation_of(p, q));
        moved += distance > 0;
        // Too short a draft, a gate that is closed: the chain rule.
        CHECK(first_token(deferring_step(window, open_always), models, static_cast<std::int32_t>(window)) == p);
        CHECK(is_exact(deferring_step(window, open_never), models, 2));
      }
  CHECK(moved > 20);
}

TEST_CASE("a rejected draft stays only where the target may emit it and its whole window passes") {
  InjectedSource source;
  source.inject(Purpose::accept, InjectedSource::kOnes);
  AddressedChance<InjectedSource> chance(source, 1, 0);
  // Row 0 rejects token 1 at the greatest coin, rows 1 and 2 accept token 0 at any.
  DenseRows<double> target{{{0.75, 0.25}, {1.0, 0.0}, {1.0, 0.0}, {0.5, 0.5}}};
  DenseRows<double> proposal{{{0.25, 0.75}, {1.0, 0.0}, {1.0, 0.0}}};
  const auto accepted = [&](std::vector<Token> draft, std::uint32_t window, auto gate) {
    return verify_fly(std::span<const Token>(draft), target, proposal, window, gate, chance).num_accepted;
  };
  CHECK(accepted({1, 0, 0}, 2, open_always) == 3);
  CHECK(accepted({1, 0, 0}, 3, open_always) == 0);  // the window does not fit
  CHECK(accepted({1, 0, 0}, 2, open_never) == 0);
  CHECK(accepted({1, 0, 1}, 2, open_always) == 0);  // row 2 cannot emit 1
  CHECK(accepted({1, 0, 1}, 1, open_always) == 2);
  target.rows[0] = {1.0, 0.0};
  CHECK(accepted({1, 0, 0}, 2, open_always) == 0);  // nor row 0
}

TEST_CASE("the entropy of the most probable tokens is that of three logarithms, and not renormalised") {
  const DenseMasses<double> p{0.1, 0.5, 0.0, 0.2, 0.2};
  CHECK(entropy_of_most_probable(p, 2) == Approx(-0.5 * std::log(0.5) - 0.2 * std::log(0.2)).epsilon(1e-12));
  CHECK(entropy_of_most_probable(p, 9) ==
        Approx(-0.5 * std::log(0.5) - 0.4 * std::log(0.2) - 0.1 * std::log(0.1)).epsilon(1e-12));
  CHECK(entropy_of_most_probable({0.0, 1.0}, 3) == 0.0);
}
