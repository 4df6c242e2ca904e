#include "sim/acceptance/tree_survival.hpp"

#include "engine/draft/tree_builders/sequoia_tree.hpp"
#include "sim/acceptance/position_rates.hpp"
#include "tests/sim/acceptance/sampled_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

using Rates = std::vector<std::vector<double>>;  // [level][rank]
using Path = std::vector<std::size_t>;           // ranks
using Tree = std::set<Path>;

double value_of(const Path& path, const Rates& rates) {
  double value = 1.0;
  for (std::size_t level = 0; level < path.size(); ++level) value *= rates[level][path[level]];
  return value;
}

// The largest expected number of accepted drafts of any tree of n nodes, by trying all trees: each grows by a node
// whose parent and whose sibling before it are there.
double best_of_all(const Rates& rates, int n) {
  std::set<Tree> trees{{}};
  for (int i = 0; i < n; ++i) {
    std::set<Tree> larger;
    for (const Tree& tree : trees) {
      std::vector<Path> parents{{}};
      parents.insert(parents.end(), tree.begin(), tree.end());
      for (const Path& parent : parents) {
        if (parent.size() == rates.size()) continue;
        Path child = parent;
        child.push_back(0);
        while (child.back() < rates[parent.size()].size() && tree.contains(child)) ++child.back();
        if (child.back() == rates[parent.size()].size()) continue;
        Tree grown = tree;
        grown.insert(child);
        larger.insert(grown);
      }
    }
    if (larger.empty()) break;
    trees = larger;
  }
  double best = 0.0;
  for (const Tree& tree : trees) {
    double sum = 0.0;
    for (const Path& path : tree) sum += value_of(path, rates);
    best = std::max(best, sum);
  }
  return best;
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Sequoia's published acceptance vector (Infini-AI-Lab/Sequoia, acceptance-rate-vector.pt), its first entries.
const std::vector<double> kSequoiaVector{0.6342, 0.1079, 0.057, 0.0225, 0.0195, 0.015, 0.0045, 0.003};

}  // namespace

TEST_CASE("trees from rates by position are the best of all trees") {
  const std::vector<double> conditional{0.82, 0.55, 0.71};
  for (const int depth : {1, 2, 3}) {
    Rates rates;
    for (int level = 0; level < depth; ++level) {
      rates.push_back(sibling_rates(conditional[static_cast<std::size_t>(level)]));
      rates.back().resize(4);  // of six nodes none has a fifth child that pays; see the check of depth 1
    }
    const TreeSurvivals survivals = position_survivals(conditional, depth);
    for (int n = 0; n <= (depth == 1 ? 4 : 6); ++n)
      CHECK(sum_of(survivals[static_cast<std::size_t>(n)]) == Approx(best_of_all(rates, n)).epsilon(1e-12));
  }
}

TEST_CASE("trees from Sequoia's vector are the best of all trees, and worth what its dynamic programme says") {
  const std::vector<double> vector(kSequoiaVector.begin(), kSequoiaVector.begin() + 3);
  const Rates rates(3, vector);
  const TreeSurvivals survivals = sequoia_survivals(vector, 3);
  for (int n = 0; n <= 6; ++n)
    CHECK(sum_of(survivals[static_cast<std::size_t>(n)]) == Approx(best_of_all(rates, n)).epsilon(1e-12));
  const SequoiaTrees trees(kSequoiaVector, 64, 8);
  const TreeSurvivals large = sequoia_survivals(kSequoiaVector, 8);
  for (const int n : {8, 17, 64})
    CHECK(1.0 + sum_of(large[static_cast<std::size_t>(n)]) == Approx(trees.expected_tokens(n, 8)).epsilon(1e-12));
  // A full tree of 2 children and 1 level has 2 nodes; more are of no use.
  const TreeSurvivals narrow = sequoia_survivals(std::vector<double>{0.5, 0.25}, 1);
  CHECK(narrow[2] == std::vector<double>{0.75});
  CHECK(narrow[9] == narrow[2]);
}

TEST_CASE("a chain is the tree of one node a level, and trees are worth more than chains of their depth") {
  const std::vector<double> conditional{0.8, 0.7, 0.6, 0.5};
  const PositionRates model(conditional, 0, "test");
  const std::vector<double> chain = model.survival(4, 4);
  double before = sum_of(chain);
  for (const int nodes : {5, 8, 20, 60, 256}) {
    const double of_tree = sum_of(model.survival(nodes, 4));
    CHECK(of_tree > before);
    before = of_tree;
  }
  CHECK(model.survival(60, 4).front() < 1.0);
  // Rate of all children together, with a first rate of 1/2: 1 - (1/2)(3/4)(5/6)... up to sixteen of them.
  double left = 1.0;
  for (int b = 1; b <= 16; ++b) left *= 1.0 - 0.5 / b;
  CHECK(sum_of(sibling_rates(0.5)) == Approx(1.0 - left));
}

TEST_CASE("accepted paths of trees are sampled from their survival") {
  const PositionRates by_position(std::vector<double>{0.7, 0.6, 0.8}, 4, "test");
  CHECK(follows(accepted_counts(by_position, 20, 3, 50'000), lengths_of(by_position.survival(20, 3)), 3));
  const auto by_rank = PositionRates::of_ranks(kSequoiaVector, 4, "test");
  CHECK(follows(accepted_counts(*by_rank, 32, 6, 50'000), lengths_of(by_rank->survival(32, 6)), 3));
  CHECK(follows(accepted_counts(*by_rank, 6, 6, 50'000),
                lengths_of(std::vector<double>{0.6342, 0.4022, 0.2551, 0.1618, 0.1026, 0.0651}), 3));
}
