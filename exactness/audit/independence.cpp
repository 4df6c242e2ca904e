#include "exactness/audit/independence.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "exactness/audit/tests.hpp"
#include "exactness/statistics/chi_squared.hpp"
#include "exactness/statistics/pooling.hpp"

namespace draftproof {
namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

constexpr std::size_t kSideMax = 8;

struct PairTable {
  std::int64_t n = 0;
  std::int64_t df = 0;
  double pearson = 0.0;
  double distance = 0.0;
  std::vector<CountedCell> worst_cells = {};
};

// Independence in a table of pairs, given its margins: df = (side - 1)^2.
PairTable table_of(std::span<const double> u, const Pairs& pairs) {
  PairTable table;
  table.n = std::ssize(pairs);
  std::size_t side = kSideMax;
  while (side > 1 && static_cast<double>(table.n) < kExpectedCountMinOfAudits * static_cast<double>(side * side))
    side /= 2;
  if (side == 1) return table;
  const auto bin = [&](std::size_t draw) {
    return std::min(side - 1, static_cast<std::size_t>(u[draw] * static_cast<double>(side)));
  };
  std::vector<double> counts(side * side, 0.0), first(side, 0.0), second(side, 0.0);
  for (const auto& [a, b] : pairs) {
    counts[bin(a) * side + bin(b)] += 1.0;
    first[bin(a)] += 1.0;
    second[bin(b)] += 1.0;
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = first[i / side] * second[i % side] / static_cast<double>(table.n);
    // Margins that are far from even would leave cells too small for the chi-squared distribution.
    if (expected < kExpectedCountMinOfAudits / 2.0) return {.n = table.n};
    const double off = counts[i] - expected;
    table.pearson += off * off / expected;
    table.distance += (std::abs(off) - mean_absolute_deviation(expected)) / 2.0;
    table.worst_cells.push_back(
        {{{"bin", static_cast<std::int64_t>(i / side)}, {"bin_of_the_other", static_cast<std::int64_t>(i % side)}},
         counts[i],
         expected});
  }
  keep_worst(table.worst_cells);
  table.df = static_cast<std::int64_t>((side - 1) * (side - 1));
  return table;
}

// The two tables of one kind of pairs, as one test; nothing where neither is large enough.
void add_test(std::vector<TestResult>& tests, const std::string& name, std::span<const double> u,
              const std::array<Pairs, 2>& classes) {
  TestResult best;
  int tables = 0;
  for (const Pairs& pairs : classes) {
    PairTable table = table_of(u, pairs);
    if (table.df == 0) continue;
    ++tables;
    const double p_value = chi_squared_p_value(table.pearson, table.df);
    if (tables > 1 && p_value >= best.p_value) continue;
    best.n = table.n;
    best.df = table.df;
    best.statistic = table.pearson;
    best.p_value = p_value;
    best.estimated_tv = std::max(0.0, table.distance / static_cast<double>(table.n));
    best.worst_cells = std::move(table.worst_cells);
  }
  if (tables == 0) return;
  best.name = "correlation_" + name;
  best.statistic_name = "Pearson X^2 of independence";
  best.unit = "pairs";
  best.is_correlation = true;
  best.p_value = std::min(1.0, static_cast<double>(tables) * best.p_value);
  tests.push_back(std::move(best));
}

bool is_even(std::int64_t value) {
  return value % 2 == 0;
}

class PairFinder {
 public:
  PairFinder(std::span<const double> u, const DrawCoordinates& at) : u_(u), at_(at) {}

  std::vector<TestResult> run() {
    std::vector<TestResult> tests;
    if (!at_.step.empty()) find_steps(tests);
    if (!at_.position.empty())
      add_test(tests, "next_position", u_, pairs_of([&](std::size_t i) { return key(i, 'p'); }, 1));
    if (!at_.row.empty()) find_rows(tests);
    if (!at_.seed.empty()) find_seeds(tests);
    return tests;
  }

 private:
  std::uint64_t seed(std::size_t i) const { return at_.seed.empty() ? 0 : at_.seed[i]; }
  std::int64_t step(std::size_t i) const { return at_.step.empty() ? 0 : at_.step[i]; }
  std::int64_t row(std::size_t i) const { return at_.row.empty() ? 0 : at_.row[i]; }
  std::int64_t position(std::size_t i) const { return at_.position.empty() ? 0 : at_.position[i]; }

  // The other coordinates, and the one that is looked along.
  using Key = std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::pair<Key, std::int64_t> key(std::size_t i, char along) const {
    switch (along) {
      case 's':
        return {{seed(i), 0, at_.seed.empty() ? row(i) : 0, position(i)}, step(i)};
      case 'p':
        return {{seed(i), step(i), row(i), 0}, position(i)};
      default:
        return {{0, step(i), 0, position(i)}, row(i)};
    }
  }

  // Places beyond it have no partner: its number would overflow.
  static constexpr std::int64_t kFarthest = std::numeric_limits<std::int64_t>::max() / 2 - 1;

  using Index = std::map<std::pair<Key, std::int64_t>, std::size_t>;
  template <class KeyOf>
  Index index_of(const KeyOf& key_of) const {
    Index index;
    for (std::size_t i = 0; i < u_.size(); ++i)
      if (u_[i] >= 0.0) index.try_emplace(key_of(i), i);
    return index;
  }

  // Pairs a place apart, in two classes: floor(place / apart) even, and odd.
  template <class KeyOf>
  std::array<Pairs, 2> pairs_of(const KeyOf& key_of, std::int64_t apart) const {
    return pairs_in(index_of(key_of), apart);
  }
  static std::array<Pairs, 2> pairs_in(const Index& index, std::int64_t apart) {
    std::array<Pairs, 2> classes;
    for (const auto& [at, draw] : index) {
      if (at.second > kFarthest) continue;
      const auto other = index.find({at.first, at.second + apart});
      if (other != index.end()) classes[is_even(at.second / apart) ? 0 : 1].emplace_back(draw, other->second);
    }
    return classes;
  }

  void find_steps(std::vector<TestResult>& tests) const {
    const Index index = index_of([&](std::size_t i) { return key(i, 's'); });
    add_test(tests, "next_step", u_, pairs_in(index, 1));
    for (const auto& [name, more] : {std::pair("double_step", 0), {"double_step_plus", 1}, {"double_step_minus", -1}}) {
      std::array<Pairs, 2> classes;
      for (const auto& [at, draw] : index) {
        if (at.second < 0 || at.second > kFarthest) continue;
        const std::int64_t other_step = 2 * at.second + more;
        if (other_step <= at.second) continue;
        const auto other = index.find({at.first, other_step});
        // t + more doubles from pair to pair: how often 2 divides it alternates along such a chain.
        const auto doubled = static_cast<std::uint64_t>(at.second + more);
        if (other != index.end() && doubled > 0)
          classes[static_cast<std::size_t>(std::countr_zero(doubled)) % 2].emplace_back(draw, other->second);
      }
      add_test(tests, name, u_, classes);
    }
  }

  void find_rows(std::vector<TestResult>& tests) const {
    const Index index = index_of([&](std::size_t i) { return key(i, 'r'); });
    for (std::int64_t apart = 1; apart <= 64; apart *= 2)
      add_test(tests, "rows_" + std::to_string(apart), u_, pairs_in(index, apart));
  }

  // Draws at the same place, ordered by a feature of their seeds; neighbours make pairs where `matches`.
  void find_seeds(std::vector<TestResult>& tests) const {
    const auto add = [&](const char* name, const auto& order_of, const auto& matches) {
      std::vector<std::size_t> draws;
      for (std::size_t i = 0; i < u_.size(); ++i)
        if (u_[i] >= 0.0) draws.push_back(i);
      const auto sort_key = [&](std::size_t i) {
        return std::tuple(step(i), position(i), order_of(seed(i)), seed(i), row(i));
      };
      std::stable_sort(draws.begin(), draws.end(),
                       [&](std::size_t a, std::size_t b) { return sort_key(a) < sort_key(b); });
      std::array<Pairs, 2> classes;
      std::size_t run = 0;  // places since the last draw that makes no pair with the one before it
      for (std::size_t i = 1; i < draws.size(); ++i) {
        const std::size_t a = draws[i - 1], b = draws[i];
        const bool pair =
            step(a) == step(b) && position(a) == position(b) && seed(a) != seed(b) && matches(seed(a), seed(b));
        if (pair) classes[run % 2].emplace_back(a, b);
        run = pair ? run + 1 : 0;
      }
      add_test(tests, name, u_, classes);
    };
    const auto itself = [](std::uint64_t s) { return s; };
    const auto low = [](std::uint64_t s) { return s & 0xffffffffu; };
    const auto high = [](std::uint64_t s) { return s >> 32; };
    const auto as_float = [](std::uint64_t s) { return static_cast<float>(s); };
    add("next_seed", itself, [](std::uint64_t, std::uint64_t) { return true; });
    add("low_seed_bits", low, [&](std::uint64_t a, std::uint64_t b) { return low(a) == low(b); });
    add("high_seed_bits", high, [&](std::uint64_t a, std::uint64_t b) { return high(a) == high(b) && high(a) != 0; });
    add("seed_as_float", as_float,
        [&](std::uint64_t a, std::uint64_t b) { return as_float(a) == as_float(b) && a >> 24 != 0; });
  }

  std::span<const double> u_;
  const DrawCoordinates& at_;
};

}  // namespace

std::vector<TestResult> correlation_of_pairs(const std::string& name, std::span<const double> first,
                                             std::span<const double> second) {
  std::vector<double> both(first.begin(), first.end());
  both.insert(both.end(), second.begin(), second.end());
  Pairs pairs;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i] >= 0.0 && second[i] >= 0.0) pairs.emplace_back(i, first.size() + i);
  std::vector<TestResult> tests;
  add_test(tests, name, both, {std::move(pairs), Pairs{}});
  return tests;
}

std::vector<TestResult> independence_tests(std::span<const double> transforms, const DrawCoordinates& coordinates) {
  return PairFinder(transforms, coordinates).run();
}

}  // namespace draftproof
