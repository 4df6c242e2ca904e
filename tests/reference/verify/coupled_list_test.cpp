#include "reference/verify/coupled_list.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "exactness/model_pair.hpp"
#include "exactness/proof/output_distribution.hpp"
#include "exactness/rational.hpp"
#include "reference/random/audit.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/coupled.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "tests/support/race_decoding.hpp"
#include "tests/support/statistical.hpp"

using namespace draftproof;

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

TEST_CASE("coupled lists are exact whatever the drafts are") {
  using Rows = DenseMasses<Rational>;
  // Two steps over trees of fixed drafts: on every path of the enumeration the output is plain decoding.
  for (const ModelKind kind : {ModelKind::dense, ModelKind::zeros, ModelKind::one_hot_target}) {
    const ModelPair<Rational> models(3, 2, kind);
    for (const auto& paths : std::vector<std::vector<std::vector<Token>>>{
             {{0, 1}, {0, 2}}, {{0, 0}, {1, 1}, {2, 2}}, {{1}, {1}}, {{kPaddingToken, 0}, {2, kPaddingToken}}, {}}) {
      const DraftTree drafts = merge_paths(paths, Duplicates::merged);
      OutputDistribution distribution;
      EnumeratingChance<Rational> chance;
      do {
        TokenString text;
        for (int s = 0; s < 2; ++s) {
          DenseRows<Rational> target;
          for (std::int32_t node = kRootNode; node < drafts.size(); ++node) {
            TokenString prefix = text;
            for (const Token token : drafts.path(node)) prefix.push_back(token);
            target.rows.push_back(models.target(prefix));
          }
          const auto position = static_cast<std::uint32_t>(text.size());
          const TreeOutcome outcome = verify_coupled_list(drafts, 2, target, position, chance);
          for (const std::int32_t node : outcome.path) text.push_back(drafts.tokens[static_cast<std::size_t>(node)]);
          text.push_back(outcome.last_token);
        }
        TokenString plain;
        while (plain.size() < text.size()) {
          const auto position = static_cast<std::uint32_t>(plain.size());
          plain.push_back(chance.coupled_list_race(models.target(plain), position, 2));
        }
        if (plain != text) FAIL("the drafts changed the output");
        distribution[text] += chance.probability();
      } while (chance.next());
      CHECK_FALSE(first_difference(
          distribution, [&](const TokenString& s) -> const Rows& { return models.target(s); }, 3));
    }
  }
}

TEST_CASE("coupled lists equal plain decoding over the same lists bit for bit") {
  PhiloxSource source;
  std::size_t accepted = 0;
  for (const RowParameters& parameters : race_decoding_parameters())
    for (std::uint32_t num_lists = 1; num_lists <= 4; ++num_lists) {
      const std::uint64_t seed = 40 + num_lists;
      const ToyDecoder decoder(37, seed, parameters);
      const std::vector<Token> plain = decoder.decode_plainly(source, 20, num_lists);
      for (const ToyDrafter drafter : kToyDrafters) {
        std::vector<Token> text;
        while (text.size() < plain.size()) {
          AddressedChance<PhiloxSource> chance(source, seed, 0);
          std::vector<std::vector<Token>> paths;
          for (std::uint32_t list = 0; list < num_lists; ++list)
            paths.push_back(decoder.draft(drafter, text, 3, list, chance));
          const DraftTree drafts = merge_paths(paths, Duplicates::merged);
          struct NodeRows {
            const ToyDecoder& decoder;
            const std::vector<Token>& text;
            const DraftTree& drafts;
            std::vector<Token> path;
            ToyRows rows{decoder, text, path};
            DistributionMasses masses(std::uint32_t row) {
              path = drafts.path(static_cast<std::int32_t>(row) - 1);
              return rows.masses(static_cast<std::uint32_t>(path.size()));
            }
          } target{decoder, text, drafts, {}};
          const auto position = static_cast<std::uint32_t>(text.size());
          const TreeOutcome outcome = verify_coupled_list(drafts, num_lists, target, position, chance);
          if (num_lists == 1) {  // one list is the chain
            ToyRows rows(decoder, text, paths[0]);
            const ChainOutcome chain = verify_coupled(paths[0], rows, position, chance);
            CHECK(chain.num_accepted == outcome.path.size());
            CHECK(chain.last_token == outcome.last_token);
          }
          accepted += outcome.path.size();
          for (const std::int32_t node : outcome.path) text.push_back(drafts.tokens[static_cast<std::size_t>(node)]);
          text.push_back(outcome.last_token);
        }
        text.resize(plain.size());
        if (text != plain) FAIL(num_lists << " lists: the output differs");
      }
    }
  CHECK(accepted > 100);
}

TEST_CASE("every list of every position is raced by the target once") {
  AuditedSource<> source;
  DenseRows<double> target{{kListTarget, kListTarget, kListTarget, kListTarget, kListTarget}};
  const DraftTree drafts = merge_paths({{0, 1}, {1, 1}}, Duplicates::merged);
  std::uint32_t position = 0;
  for (int step = 0; step < 20; ++step) {
    AddressedChance<AuditedSource<>> chance(source, 1, 0);
    position += 1 + static_cast<std::uint32_t>(verify_coupled_list(drafts, 2, target, position, chance).path.size());
  }
  CHECK(source.used() == 2 * position);
}

TEST_CASE("the enumeration refuses lists raced singly and together at one position") {
  const DenseMasses<Rational> p{Rational(1, 2), Rational(1, 2)};
  EnumeratingChance<Rational> chance;
  chance.coupled_race(p, 4, 1);
  CHECK_THROWS_AS(chance.coupled_list_race(p, 4, 2), std::logic_error);
  CHECK_NOTHROW(chance.coupled_list_race(p, 5, 2));
  CHECK_THROWS_AS(chance.coupled_race(p, 5, 0), std::logic_error);
}
