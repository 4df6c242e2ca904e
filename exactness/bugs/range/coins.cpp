// B17 to B20 and B103: the acceptance coin at the ends of its range. Chain verification of one draft, as production has
// it, over coins of other rules.
#include <array>
#include <span>
#include <string>
#include <utility>

#include "exactness/bugs/engine_numbers.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/hunting.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "exactness/proof/prove.hpp"
#include "exactness/statistics/battery.hpp"
#include "reference/random/injected.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

using Rows = DenseRows<double>;

// u = word / 2^32 in binary32; the top 128 words round to 1.
bool coin_that_can_be_one(double p, double q, const RandomBlock& coin) {
  return static_cast<float>(coin.word[0]) * 0x1p-32f * static_cast<float>(q) < static_cast<float>(p);
}

// `<=` where `<` is meant: u = 0 accepts p = 0.
bool coin_with_equality(double p, double q, const RandomBlock& coin) {
  return uniform_24(coin.word[0]) * static_cast<float>(q) <= static_cast<float>(p);
}

// p / q >= u over a binary32 uniform that is 0 once in 2^24 draws; the rule of the convention of that name.
bool ratio_that_can_meet_zero(double p, double q, const RandomBlock& coin) {
  return accepts(Convention::huggingface, p, q, coin);
}

bool coin_of_zero_bits(double p, double q, const RandomBlock&) {
  return sound_coin(p, q, InjectedSource::kZeros);
}

// alpha = 1 where q = 0: a ratio with nothing below the line taken for an infinite one.
bool coin_that_takes_the_unproposed(double p, double q, const RandomBlock& coin) {
  return accepts(Convention::textbook, p, q, coin);
}

// The same over fractions, and production's draws.
struct UnproposedChance {
  ExactChance& chance;
  bool accept(const Rational& p, const Rational& q, std::uint32_t row) const {
    return q == 0 || chance.accept(p, q, row);
  }
  Token draw(const DenseMasses<Rational>& masses, std::uint32_t row, Purpose purpose) const {
    return chance.draw(masses, row, purpose);
  }
};

// E: drafts are drawn from q = (1/2, 2/5, 1/10); the verifier receives q, in which the rule of q = 0 is not met, or
// what top-k 2 leaves of it.
Finding find_unproposed_drafts(bool faulty) {
  const DenseMasses<Rational> p{Rational(1) / 10, Rational(9) / 10, 0};
  const DenseMasses<Rational> q{Rational(1) / 2, Rational(2) / 5, Rational(1) / 10};
  const DenseMasses<Rational> told{Rational(5) / 9, Rational(4) / 9, 0};
  return find_wrong_token_distribution(p, [&](ExactChance& chance) {
    DenseRows<Rational> target{{p, p}};
    DenseRows<Rational> proposal{{faulty ? told : q}};
    UnproposedChance rule{chance};
    const std::array<Token, 1> draft{chance.draw(q, 0, Purpose::draft_sample)};
    const ChainOutcome outcome = verify_chain(std::span<const Token>(draft), target, proposal, rule);
    return outcome.num_accepted == 1 ? draft.front() : outcome.last_token;
  });
}

// Production's chance but for its coin.
template <class Source>
class CoinChance : public AddressedChance<Source> {
 public:
  CoinChance(Source& source, std::uint64_t seed, CoinRule rule)
      : AddressedChance<Source>(source, seed, 0), source_(source), seed_(seed), rule_(std::move(rule)) {}

  bool accept(double p, double q, std::uint32_t row) {
    return rule_(p, q, source_.block(seed_, {0, row, 0, Purpose::accept}));
  }

 private:
  Source& source_;
  std::uint64_t seed_;
  CoinRule rule_;
};

// One draft with a certain outcome or none: p = 0, p = q, p > q, p < q.
struct CoinCase {
  DenseMasses<double> p, q;
  Token draft;
};

const std::vector<CoinCase>& coin_cases() {
  static const std::vector<CoinCase> cases{
      {{0.5, 0.5, 0.0}, {0.25, 0.25, 0.5}, 2}, {{0.5, 0.25, 0.25}, {0.5, 0.25, 0.25}, 0},
      {{0.5, 0.5, 0.0}, {0.25, 0.25, 0.5}, 0}, {{0.25, 0.25, 0.5}, {0.5, 0.5, 0.0}, 1},
      {{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}, 0},   {{0.5, 0.5, 0.0}, {0.5, 0.5, 0.0}, 2},
  };
  return cases;
}

std::string text_of_case(const CoinCase& c) {
  const auto x = static_cast<std::size_t>(c.draft);
  return "p = " + short_number(c.p[x]) + ", q = " + short_number(c.q[x]);
}

// Verifies every case with every word as its coin. What has probability 0 must not happen, and with `certain` also what
// has probability 1 must. Cases are coins.
Finding find_broken_certainty(std::span<const std::uint32_t> words, bool certain, const CoinRule& rule) {
  Finding finding{false, 0, "coins", {}};
  for (const CoinCase& c : coin_cases()) {
    for (const std::uint32_t word : words) {
      ++finding.cases;
      InjectedSource source;
      source.inject(Purpose::accept, block_of(word));
      CoinChance<InjectedSource> chance(source, 0, rule);
      Rows target{{c.p, c.p}};
      Rows proposal{{c.q}};
      const std::array<Token, 1> draft{c.draft};
      const ChainOutcome outcome = verify_chain(std::span<const Token>(draft), target, proposal, chance);
      const auto x = static_cast<std::size_t>(c.draft);
      const bool accepted = outcome.num_accepted == 1;
      const Token emitted = accepted ? c.draft : outcome.last_token;
      const bool impossible = !(c.p[static_cast<std::size_t>(emitted)] > 0.0);
      if (!impossible && !(certain && !accepted && c.q[x] > 0.0 && c.p[x] >= c.q[x])) continue;
      finding.caught = true;
      finding.evidence = "coin word " + std::to_string(word) + ", " + text_of_case(c) + ": " +
                         (impossible ? "token " + std::to_string(emitted) + " was emitted and has probability 0"
                                     : "rejected, where acceptance is certain");
      return finding;
    }
  }
  return finding;
}

Hunt end_words_hunt(CoinRule fault) {
  return {Detector::injection, [fault = std::move(fault)](bool faulty) {
            return find_broken_certainty(kEndWords, true, faulty ? fault : sound_coin);
          }};
}

// Words over the whole range, evenly.
Hunt support_hunt(CoinRule fault) {
  return {Detector::support, [fault = std::move(fault)](bool faulty) {
            constexpr std::uint32_t kStride = 1u << 20;
            std::vector<std::uint32_t> words;
            for (std::uint32_t i = 0; i < (1u << 12); ++i) words.push_back(i * kStride);
            return find_broken_certainty(words, false, faulty ? fault : sound_coin);
          }};
}

// A: how many drafts of p = (.1, .6, .3), q = (.5, .4, .1) stand; 6/10 should.
Finding find_wrong_acceptance(bool constant_coin) {
  InjectedSource source;
  if (constant_coin) source.inject(Purpose::accept, InjectedSource::kZeros);
  Rows target{{{0.1, 0.6, 0.3}, {0.1, 0.6, 0.3}}};
  Rows proposal{{{0.5, 0.4, 0.1}}};
  const auto accepted = [&](std::uint64_t draw) {
    AddressedChance<InjectedSource> chance(source, derive_seed(0, draw), 0);
    const std::array<Token, 1> draft{chance.draw(proposal.masses(0), 0, Purpose::draft_sample)};
    return verify_chain(std::span<const Token>(draft), target, proposal, chance).num_accepted == 1;
  };
  return find_wrong_rate(0.6, accepted, 1 << 12, "accepted drafts");
}

}  // namespace

std::vector<Bug> coin_bugs() {
  return {
      {.id = "B17",
       .source = "sglang #30822",
       .fault = "the coin is a 32-bit hash divided by 2^32 in binary32: its top words are the coin 1, which "
                "rejects what is certain",
       .hunts = {end_words_hunt(coin_that_can_be_one)},
       .rows_sampler = sampler_with_coin(coin_that_can_be_one)},
      {.id = "B18",
       .source = "sglang #35771, #35798",
       .fault = "the coin is compared by `<=`: a coin of 0 accepts a draft of probability 0",
       .hunts = {end_words_hunt(coin_with_equality), support_hunt(coin_with_equality)},
       .rows_sampler = sampler_with_coin(coin_with_equality)},
      {.id = "B19",
       .source = "vLLM V1 (cites pytorch #16706)",
       .fault = "p / q >= u over a binary32 u that can be exactly 0: a draft of probability 0 is accepted",
       .hunts = {end_words_hunt(ratio_that_can_meet_zero)},
       .rows_sampler = sampler_with_coin(ratio_that_can_meet_zero)},
      {.id = "B20",
       .source = "vllm-ascend #13730",
       .fault = "every acceptance coin is 0, so that every possible draft is accepted",
       .hunts = {{Detector::acceptance, find_wrong_acceptance}},
       .rows_sampler = sampler_with_coin(coin_of_zero_bits)},
      {.id = "B103",
       .source = "a division guarded by alpha = 1 where q = 0, as texts on rejection samplers have it",
       .fault = "a draft with q = 0 is accepted for certain: with a q that was filtered, masked or cut after drafting, "
                "impossible drafts are emitted",
       .hunts = {{Detector::enumeration, find_unproposed_drafts}, support_hunt(coin_that_takes_the_unproposed)}}};
}

}  // namespace draftproof
