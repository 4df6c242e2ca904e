#include "reference/verify/coupled_list.hpp"

#include "exactness/rational.hpp"
#include "reference/random/audit.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/coupled.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

using Row = DenseMasses<double>;

const Row kListTarget{0.5, 0.3, 0.2};
const Row kListDraft{0.2, 0.3, 0.5};

// sum_x K / sum_y (max(p_y/p_x, q_y/q_x) + (K - 1) p_y/p_x)
template <class Number>
Number lower_bound(const DenseMasses<Number>& p, const DenseMasses<Number>& q, int num_lists) {
  Number sum(0);
  for (std::size_t x = 0; x < p.size(); ++x) {
    if (p[x] == 0 || q[x] == 0) continue;
    Number races(0);
    for (std::size_t y = 0; y < p.size(); ++y)
      races += std::max(Number(p[y] / p[x]), Number(q[y] / q[x])) + Number(num_lists - 1) * p[y] / p[x];
    sum += Number(num_lists) / races;
  }
  return sum;
}

// The probability itself, by quadrature. Let list 1 hold the winning noise s = E^1_x, so that E^j_z >= s p_z/p_x for
// all j and z: density exp(-K s / p_x). List 1 drafts x with probability exp(-s sum_z (q_z/q_x - p_z/p_x)_+), another
// list with the probability `other`, where E_z = s p_z/p_x + an exponential; given s the lists are independent.
double match_probability(const Row& p, const Row& q, int num_lists) {
  constexpr int kCells = 500;
  // Midpoints of cells that are equal in u, for integrals of exp(-t) f(t): t = -log(1 - u).
  const auto integrate = [](double rate, auto f) {
    double sum = 0;
    for (int i = 0; i < kCells; ++i) sum += f(-std::log1p(-(i + 0.5) / kCells) / rate);
    return sum / kCells / rate;
  };
  double probability = 0;
  for (std::size_t x = 0; x < p.size(); ++x) {
    if (p[x] == 0 || q[x] == 0) continue;
    const auto excess = [&](double own, double s) {
      double sum = 0;
      for (std::size_t z = 0; z < p.size(); ++z)
        if (z != x) sum += std::max(0.0, own * q[z] / q[x] - s * p[z] / p[x]);
      return sum;
    };
    probability += num_lists * integrate(num_lists / p[x], [&](double s) {
                     const double winner = std::exp(-excess(s, s));
                     const double other = integrate(1.0, [&](double t) { return std::exp(-excess(s + t, s)); });
                     return 1.0 - (1.0 - winner) * std::pow(1.0 - other, num_lists - 1);
                   });
  }
  return probability;
}

}  // namespace

TEST_CASE("the list bound is the golden number and for one list the closed form") {
  const DenseMasses<Rational> p{Rational(1, 2), Rational(3, 10), Rational(1, 5)};
  const DenseMasses<Rational> q{Rational(1, 5), Rational(3, 10), Rational(1, 2)};
  CHECK(lower_bound(p, q, 2) == Rational(601, 805));
  CHECK(lower_bound(p, q, 1) == Rational(41, 65));
  CHECK(match_probability(kListTarget, kListDraft, 1) == Approx(41.0 / 65.0).margin(1e-3));
}

TEST_CASE("one position of coupled lists is accepted as often as the integral says and never below the bound") {
  constexpr std::int64_t kRequests = 40'000;
  constexpr int kDecisions = 2 * 3 * 3;
  constexpr double kErrorOfIntegral = 1e-3;
  const std::vector<std::pair<Row, Row>> pairs{{kListTarget, kListDraft}, {{0.0, 0.6, 0.4}, {0.5, 0.1, 0.4}}};
  for (const auto& [p, q] : pairs)
    for (const std::uint32_t num_lists : {1u, 2u, 4u}) {
      const auto distribution = [&q = q](std::span<const Token>) -> const Row& { return q; };
      DenseRows<double> target{std::vector<Row>(num_lists + 1, p)};
      PhiloxSource source;
      std::vector<std::int64_t> counts(3, 0);
      std::int64_t accepted = 0;
      for (std::int64_t i = 0; i < kRequests; ++i) {
        AddressedChance<PhiloxSource> chance(source, derive_seed(23, static_cast<std::uint64_t>(i)), 0);
        const auto paths = draw_coupled_lists(distribution, num_lists, 1, 0, chance);
        const DraftTree drafts = merge_paths(paths, Duplicates::merged);
        const TreeOutcome outcome = verify_coupled_list(drafts, num_lists, target, 0, chance);
        const bool matched = !outcome.path.empty();
        if (num_lists == 1) {  // one list is the chain
          const ChainOutcome chain = verify_coupled(paths[0], target, 0, chance);
          REQUIRE((chain.num_accepted == 1) == matched);
          REQUIRE(chain.last_token == outcome.last_token);
        }
        accepted += matched;
        const Token token = matched ? drafts.tokens[static_cast<std::size_t>(outcome.path[0])] : outcome.last_token;
        ++counts[static_cast<std::size_t>(token)];
      }
      INFO(num_lists << " lists, p(0) = " << p[0]);
      CHECK(follows(counts, p, kDecisions));
      const int lists = static_cast<int>(num_lists);
      const Interval rates = possible_rates(accepted, kRequests, kDecisions);
      const double rate = match_probability(p, q, lists);
      CHECK(rates.low <= rate + kErrorOfIntegral);
      CHECK(rates.high >= rate - kErrorOfIntegral);
      CHECK(rates.high >= lower_bound(p, q, lists));
    }
}

TEST_CASE("every list of every position is raced by the target once") {
  const DenseRows<double> target{std::vector<Row>(5, kListTarget)};
  const DraftTree drafts = merge_paths({{0, 1}, {1, 1}}, Duplicates::merged);
  const std::vector<Token> chain{0, 1};
  const auto words_a_position = [&](auto accepted_of_step) {
    AuditedSource<> source;
    std::uint32_t position = 0;
    for (int step = 0; step < 20; ++step) {
      AddressedChance<AuditedSource<>> chance(source, 1, 0);
      position += 1 + static_cast<std::uint32_t>(accepted_of_step(position, chance));
    }
    CHECK(source.used() % position == 0);
    return source.used() / position;
  };
  CHECK(words_a_position([&](std::uint32_t position, auto& chance) {
          return verify_coupled_list(drafts, 2, target, position, chance).path.size();
        }) == 2);
  CHECK(words_a_position([&](std::uint32_t position, auto& chance) {
          return verify_coupled(chain, target, position, chance).num_accepted;
        }) == 1);
}

TEST_CASE("the enumeration refuses lists raced singly and together at one position") {
  const DenseMasses<Rational> p{Rational(1, 2), Rational(1, 2)};
  EnumeratingChance<Rational> chance;
  chance.coupled_race(p, 4, 1);
  CHECK_THROWS_AS(chance.coupled_list_race(p, 4, 2), std::logic_error);
  CHECK_NOTHROW(chance.coupled_list_race(p, 5, 2));
  CHECK_THROWS_AS(chance.coupled_race(p, 5, 0), std::logic_error);
}
