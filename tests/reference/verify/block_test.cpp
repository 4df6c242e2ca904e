// Proofs by enumeration over exact rationals, the A-recursion as a second code path for the acceptance, the published
// numbers, and the faults of shipped engines as negative controls.
#include "reference/verify/block.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "reference/random/injected.hpp"
#include "tests/reference/verify/chain_rules.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

using Rows = DenseRows<Rational>;

constexpr auto kBlock = [](Draft draft, auto& target, auto& proposal, auto& chance) {
  return verify_block(draft, target, proposal, chance);
};

// The joint distribution of (drafts, tau, last token), in this order in one string.
template <class Verify>
OutputDistribution outcome_distribution(const Models& models, std::uint32_t draft_len, const Verify& verify) {
  return enumerate([&](auto& chance) {
           DraftedChain<Rational> chain = draft_chain(models, {}, draft_len, chance);
           const ChainOutcome outcome = verify(Draft(chain.draft), chain.target, chain.proposal, chance);
           TokenString key = chain.draft;
           key.push_back(static_cast<Token>(outcome.num_accepted));
           key.push_back(outcome.last_token);
           return key;
         })
      .distribution;
}

template <class Verify>
Rational mean_accepted(const Models& models, std::uint32_t draft_len, const Verify& verify) {
  Rational mean(0);
  for (const auto& [key, probability] : outcome_distribution(models, draft_len, verify))
    mean += key[draft_len] * probability;
  return mean;
}

// sum over all paths of up to draft_len tokens of value(path), value built along the path by `next`.
template <class Next>
Rational sum_over_paths(const Models& models, std::uint32_t draft_len, const TokenString& prefix, const Rational& p,
                        const Rational& q, const Rational& value, const Next& next) {
  if (prefix.size() == draft_len) return 0;
  Rational sum(0);
  for (Token token = 0; token < models.vocab_size(); ++token) {
    const auto x = static_cast<std::size_t>(token);
    const Rational px = models.target(prefix)[x];
    const Rational qx = models.draft(prefix)[x];
    const Rational child = next(value, px, qx, Rational(p * px), Rational(q * qx));
    sum += child +
           sum_over_paths(models, draft_len, joined(prefix, std::vector<Token>{token}), p * px, q * qx, child, next);
  }
  return sum;
}
template <class Next>
Rational sum_over_paths(const Models& models, std::uint32_t draft_len, const Next& next) {
  return sum_over_paths(models, draft_len, {}, Rational(1), Rational(1), Rational(1), next);
}

// E[tau] without any verifier: A(v x) = min(A(v) p(x), q(v x)).
Rational a_recursion(const Models& models, std::uint32_t draft_len) {
  return sum_over_paths(models, draft_len,
                        [](const Rational& a, const Rational& p, const Rational&, const Rational&,
                           const Rational& q_path) { return std::min(Rational(a * p), q_path); });
}
Rational tokenwise_mean(const Models& models, std::uint32_t draft_len) {
  return sum_over_paths(models, draft_len,
                        [](const Rational& a, const Rational& p, const Rational& q, const Rational&, const Rational&) {
                          return Rational(a * std::min(p, q));
                        });
}
Rational joint_minimum(const Models& models, std::uint32_t draft_len) {
  return sum_over_paths(models, draft_len,
                        [](const Rational&, const Rational&, const Rational&, const Rational& p_path,
                           const Rational& q_path) { return std::min(p_path, q_path); });
}

// The distribution of the rows at hand, whatever the prefix: constant models.
struct ConstantChain {
  DenseMasses<Rational> p, q;
  std::uint32_t draft_len;
};

template <class Verify>
std::vector<Rational> tau_distribution(const ConstantChain& chain, const Verify& verify) {
  std::vector<Rational> distribution(chain.draft_len + 1);
  EnumeratingChance<Rational> chance;
  do {
    std::vector<Token> draft;
    for (std::uint32_t row = 0; row < chain.draft_len; ++row)
      draft.push_back(chance.draw(chain.q, row, Purpose::draft_sample));
    Rows target{{chain.draft_len + 1, chain.p}};
    Rows proposal{{chain.draft_len, chain.q}};
    distribution[verify(Draft(draft), target, proposal, chance).num_accepted] += chance.probability();
  } while (chance.next());
  return distribution;
}

Rational mean_of(const std::vector<Rational>& tau_distribution) {
  Rational mean(0);
  for (std::size_t tau = 0; tau < tau_distribution.size(); ++tau) mean += static_cast<int>(tau) * tau_distribution[tau];
  return mean;
}

// Block verification with one thing wrong, written out again: what an engine's code would do.
struct Fault {
  bool break_at_first_failure = false;
  bool residual_without_weight = false;
  bool ratio_acceptance = false;  // cumulative ratio p_i as the acceptance rate, and the token rule's residual
};

auto faulty(Fault fault) {
  return [fault](Draft draft, Rows& target, Rows& proposal, auto& chance) -> ChainOutcome {
    const auto draft_len = static_cast<std::uint32_t>(draft.size());
    const auto residual = [&](std::uint32_t row, const Rational& weight) {
      return positive_difference(scaled(target.masses(row), weight), proposal.masses(row));
    };
    std::uint32_t num_accepted = 0;
    std::vector<Rational> weights{1};
    for (std::uint32_t row = 0; row < draft_len; ++row) {
      const auto x = draft[row];
      weights.push_back(block_weight(weights.back(), target.probability(row, x), proposal.probability(row, x)));
      const Rational weight = weights.back();
      const bool is_last = row + 1 == draft_len;
      const Rational rate =
          is_last || fault.ratio_acceptance ? weight : block_acceptance(total_of(residual(row + 1, weight)), weight);
      if (chance.accept(rate, 1, row))
        num_accepted = row + 1;
      else if (fault.break_at_first_failure)
        break;
    }
    if (num_accepted == draft_len)
      return {draft_len, chance.draw(target.masses(draft_len), draft_len, Purpose::target_sample)};
    const bool unscaled = fault.residual_without_weight || fault.ratio_acceptance;
    const DenseMasses<Rational> recovered = residual(num_accepted, unscaled ? Rational(1) : weights[num_accepted]);
    return {num_accepted, chance.draw(total_of(recovered) > 0 ? recovered : target.masses(num_accepted), num_accepted,
                                      Purpose::residual)};
  };
}

// Keys by absolute position instead of (row, step): what the next step draws again.
template <class Chance>
struct PositionKeyed {
  Chance& chance;
  std::uint32_t position;
  bool accept(const Rational& p, const Rational& q, std::uint32_t row) {
    return chance.accept_at({0, position + row, 0, Purpose::accept}, p, q);
  }
  Token draw(const DenseMasses<Rational>& masses, std::uint32_t row, Purpose purpose) {
    return chance.draw_at({0, position + row, 0, purpose}, masses);
  }
};

}  // namespace

TEST_CASE("block verification is exact over two steps on every kind of model") {
  for (const ModelKind kind : kModelKinds) {
    for (std::uint32_t draft_len = 0; draft_len <= 3; ++draft_len) {
      for (std::uint64_t seed = 40; seed < (draft_len < 3 ? 43 : 41); ++seed) {
        const Models models(3, seed, kind);
        CAPTURE(name_of(kind), draft_len, seed);
        const auto step = [&](const TokenString& prefix) {
          return step_distribution(models, prefix, draft_len, kBlock);
        };
        CHECK_FALSE(first_difference(compose(step({}), step), target_of(models), 3).has_value());
      }
    }
  }
}

TEST_CASE("two steps of block verification enumerated together share no random word") {
  for (const ModelKind kind : {ModelKind::dense, ModelKind::zeros}) {
    CAPTURE(name_of(kind));
    check_two_steps(Models(2, 60, kind), kBlock);
  }
}

TEST_CASE("a path of drafts is accepted with its weight") {
  // Pr(tau >= l | x^l) = p_l(x^l), by the definition's recursion written out in fractions.
  const Models models(3, 70, ModelKind::zeros);
  constexpr std::uint32_t kDraftLen = 3;
  std::map<TokenString, Rational> drafted;
  std::map<TokenString, Rational> accepted;
  for (const auto& [key, probability] : outcome_distribution(models, kDraftLen, kBlock)) {
    for (Token l = 1; l <= static_cast<Token>(kDraftLen); ++l) {
      const TokenString path(key.begin(), key.begin() + l);
      drafted[path] += probability;
      if (key[kDraftLen] >= l) accepted[path] += probability;
    }
  }
  for (const auto& [path, probability] : drafted) {
    Rational weight(1);
    for (std::size_t i = 0; i < path.size(); ++i) {
      const TokenString prefix(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i));
      const auto x = static_cast<std::size_t>(path[i]);
      weight = std::min(Rational(1), Rational(weight * models.target(prefix)[x] / models.draft(prefix)[x]));
    }
    CHECK(accepted[path] == weight * probability);
  }
}

TEST_CASE("the mean accepted length is that of the A-recursion and lies between tokenwise and joint minimum") {
  int better = 0;
  for (const ModelKind kind : kModelKinds) {
    for (std::uint32_t draft_len = 1; draft_len <= 3; ++draft_len) {
      const Models models(3, 80 + draft_len, kind);
      CAPTURE(name_of(kind), draft_len);
      const Rational block = mean_accepted(models, draft_len, kBlock);
      CHECK(block == a_recursion(models, draft_len));
      CHECK(tokenwise_mean(models, draft_len) <= block);
      CHECK(block <= joint_minimum(models, draft_len));
      better += tokenwise_mean(models, draft_len) < block;
    }
  }
  CHECK(better >= 4);  // from two drafts on, it is strictly better on most models that leave room
}

TEST_CASE("block verification gives the published acceptance lengths") {
  // The toy pair of the paper (11/9, against 10/9 tokenwise and 12/9 for the joint minimum), then the golden pair.
  const ConstantChain toy{{Rational(1, 3), Rational(2, 3)}, {Rational(2, 3), Rational(1, 3)}, 2};
  CHECK(mean_of(tau_distribution(toy, kTokenwise)) == Rational(10, 9));
  CHECK(mean_of(tau_distribution(toy, kBlock)) == Rational(11, 9));
  const ConstantChain two{golden_p(), golden_q(), 2};
  CHECK(mean_of(tau_distribution(two, kTokenwise)) == Rational(119, 100));
  CHECK(mean_of(tau_distribution(two, kBlock)) == Rational(5, 4));
  const ConstantChain three{golden_p(), golden_q(), 3};
  CHECK(tau_distribution(three, kTokenwise) ==
        std::vector<Rational>{Rational(3, 10), Rational(21, 100), Rational(147, 1000), Rational(343, 1000)});
  CHECK(tau_distribution(three, kBlock) ==
        std::vector<Rational>{Rational(3, 10), Rational(3, 20), Rational(21, 200), Rational(89, 200)});
  CHECK(mean_of(tau_distribution(three, kTokenwise)) == Rational(1533, 1000));
  CHECK(mean_of(tau_distribution(three, kBlock)) == Rational(339, 200));
}

TEST_CASE("block verification is the chain rule for one draft and for one-hot targets and proposals") {
  for (const ModelKind kind : kModelKinds) {
    const Models models(3, 90, kind);
    CAPTURE(name_of(kind));
    CHECK(outcome_distribution(models, 1, kBlock) == outcome_distribution(models, 1, kTokenwise));
  }
  for (const ModelKind kind : {ModelKind::one_hot_target, ModelKind::one_hot_draft}) {
    const Models models(3, 91, kind);
    CAPTURE(name_of(kind));
    CHECK(outcome_distribution(models, 3, kBlock) == outcome_distribution(models, 3, kTokenwise));
  }
  // Two drafts already differ where both are random.
  const Models dense(3, 92, ModelKind::dense);
  CHECK(outcome_distribution(dense, 2, kBlock) != outcome_distribution(dense, 2, kTokenwise));
}

TEST_CASE("equal models accept every draft and disjoint ones none") {
  CHECK(mean_accepted(Models(3, 100, ModelKind::equal), 3, kBlock) == 3);
  CHECK(mean_accepted(Models(3, 101, ModelKind::disjoint), 3, kBlock) == 0);
}

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
  const Models models(3, 110, ModelKind::dense);
  const auto padded = [](Draft draft, Rows& target, Rows& proposal, auto& chance) {
    std::vector<Token> longer(draft.begin(), draft.end());
    longer.insert(longer.end(), 2, kPaddingToken);
    return verify_block(Draft(longer), target, proposal, chance);
  };
  for (std::uint32_t draft_len = 0; draft_len <= 2; ++draft_len)
    CHECK(outcome_distribution(models, draft_len, padded) == outcome_distribution(models, draft_len, kBlock));
}

TEST_CASE("an empty residual after rounding draws from the target") {
  // p and q differ by less than the fixed point resolves, p_1 < 1, and the injected coins reject everything.
  InjectedSource source;
  source.inject(Purpose::accept, InjectedSource::kOnes);
  AddressedChance<InjectedSource> chance(source, 1, 0);
  DenseRows<double> target{{{0x1p-70, 1.0}, {0.0, 1.0}}};
  DenseRows<double> proposal{{{0x1p-69, 1.0}}};
  const std::vector<Token> draft{0};
  const ChainOutcome outcome = verify_block(Draft(draft), target, proposal, chance);
  CHECK(outcome.num_accepted == 0);
  CHECK(outcome.last_token == 1);
}

TEST_CASE("equal rows are accepted whatever the coins say") {
  for (const RandomBlock& word : {InjectedSource::kZeros, InjectedSource::kSmallest, InjectedSource::kOnes}) {
    InjectedSource source;
    source.inject(Purpose::accept, word);
    AddressedChance<InjectedSource> chance(source, 2, 0);
    DenseRows<double> rows{{{0.1, 0.2, 0.7}, {0.3, 0.3, 0.4}, {0.6, 0.3, 0.1}}};
    const std::vector<Token> draft{0, 2};
    CHECK(verify_block(Draft(draft), rows, rows, chance).num_accepted == 2);
  }
}

TEST_CASE("a draft that the target forbids is never accepted even by a coin of zero") {
  InjectedSource source;
  source.inject(Purpose::accept, InjectedSource::kZeros);
  AddressedChance<InjectedSource> chance(source, 3, 0);
  DenseRows<double> target{{{0.0, 1.0}, {0.5, 0.5}, {0.5, 0.5}}};
  DenseRows<double> proposal{{{0.5, 0.5}, {0.25, 0.75}}};
  const std::vector<Token> draft{0, 0};
  const ChainOutcome outcome = verify_block(Draft(draft), target, proposal, chance);
  CHECK(outcome.num_accepted == 0);
  CHECK(outcome.last_token == 1);
}

TEST_CASE("faulty block verification is rejected and its distance is what others measured") {
  // Over random models of three tokens and three drafts others enumerated distances, least / mean / largest, of .084 /
  // .158 / .266 (ratio acceptance with the token residual), .109 / .279 / .488 (break at the first failure) and 0 /
  // .0022 / .0099 (residual without the weight, which sampling would hardly see). Our models are other ones.
  struct Control {
    Fault fault;
    int rejected_min;
    double mean_low, mean_high, largest;
  };
  constexpr int kInstances = 12;
  const Control controls[] = {{{.ratio_acceptance = true}, kInstances, 0.1, 0.25, 0.5},
                              {{.break_at_first_failure = true}, kInstances, 0.05, 0.45, 0.6},
                              {{.residual_without_weight = true}, 6, 0.0002, 0.01, 0.04}};
  for (const Control& control : controls) {
    double sum = 0.0;
    double largest = 0.0;
    int rejected = 0;
    for (int i = 0; i < kInstances; ++i) {
      const Models models(3, 120 + static_cast<std::uint64_t>(i), ModelKind::dense);
      const OutputDistribution distribution = step_distribution(models, {}, 3, faulty(control.fault));
      rejected += first_difference(distribution, target_of(models), 3).has_value();
      const double distance = static_cast<double>(total_variation(distribution, target_of(models), 3));
      sum += distance;
      largest = std::max(largest, distance);
    }
    CAPTURE(rejected, sum / kInstances, largest);
    CHECK(rejected >= control.rejected_min);
    CHECK(sum / kInstances > control.mean_low);
    CHECK(sum / kInstances < control.mean_high);
    CHECK(largest < control.largest);
  }
}

TEST_CASE("the replica without a fault is block verification") {
  // Otherwise the controls above would say nothing.
  const Models models(3, 123, ModelKind::zeros);
  CHECK(outcome_distribution(models, 2, faulty({})) == outcome_distribution(models, 2, kBlock));
}

TEST_CASE("keys by position couple consecutive steps of block verification") {
  // All coins are drawn in a step that accepts little; the next step starts at a position whose coins are known by
  // then. Chain verification would survive its coins, since a rejected draft ends its step; here the audit and the
  // distribution see it.
  const Models models(2, 131, ModelKind::dense);
  const EnumeratedDistribution distribution = enumerate_two_steps([&](const TokenString& prefix, auto& chance) {
    PositionKeyed<std::remove_reference_t<decltype(chance)>> keyed{chance, static_cast<std::uint32_t>(prefix.size())};
    DraftedChain<Rational> chain = draft_chain(models, prefix, 2, chance);  // drafting keeps its step
    const Draft draft(chain.draft);
    return emitted_by(draft, verify_block(draft, chain.target, chain.proposal, keyed));
  });
  CHECK(distribution.reused > 0);
  CHECK(first_difference(distribution.distribution, target_of(models), 2).has_value());
  CHECK(total_variation(distribution.distribution, target_of(models), 2) > Rational(1, 1000));
}

TEST_CASE("block verification with doubles and Philox follows the target over three steps") {
  check_production(140, kBlock);
}
