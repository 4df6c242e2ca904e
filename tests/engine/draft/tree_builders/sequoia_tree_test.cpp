#include "engine/draft/tree_builders/sequoia_tree.hpp"

#include "reference/verify/tree_attention.hpp"
#include "tests/support/test.hpp"

namespace {

const std::vector<double> kAcceptance{0.6, 0.25, 0.1, 0.03};

// F of a shape by its definition: a product along each path, the b-th child of a node having rank b.
double expected_tokens_of(const TreeShape& shape, const std::vector<double>& acceptance) {
  double sum = 1.0;
  std::vector<double> value;
  std::map<std::int32_t, std::size_t> children;
  for (std::int32_t i = 0; i < shape.size(); ++i) {
    const std::int32_t parent = shape.parents[static_cast<std::size_t>(i)];
    value.push_back((parent == kRootNode ? 1.0 : value[static_cast<std::size_t>(parent)]) *
                    acceptance[children[parent]++]);
    sum += value.back();
  }
  return sum;
}

// The best of all shapes of n drafts, grown node by node in every possible way.
double best_by_trying_all(std::int32_t n, std::int32_t depth, const std::vector<double>& acceptance) {
  using Ranks = std::vector<std::size_t>;
  std::set<std::set<Ranks>> trees{{Ranks{}}};
  for (std::int32_t size = 0; size < n; ++size) {
    std::set<std::set<Ranks>> larger;
    for (const std::set<Ranks>& tree : trees)
      for (const Ranks& parent : tree) {
        if (parent.size() == static_cast<std::size_t>(depth)) continue;
        Ranks child = parent;
        child.push_back(0);
        while (tree.contains(child)) ++child.back();
        if (child.back() == acceptance.size()) continue;
        std::set<Ranks> next = tree;
        next.insert(child);
        larger.insert(next);
      }
    trees = std::move(larger);
  }
  double best = -1.0;
  for (const std::set<Ranks>& tree : trees) {
    double sum = 0.0;
    for (const Ranks& node : tree) {
      double product = 1.0;
      for (const std::size_t rank : node) product *= acceptance[rank];
      sum += product;
    }
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace

TEST_CASE("Sequoia's programme gives the golden numbers") {
  const std::vector<double> golden{1, 1.6, 1.96, 2.21, 2.426, 2.576, 2.726, 2.8556, 2.9556, 3.0456};
  const SequoiaTrees trees(kAcceptance, 9, 5);
  for (std::int32_t n = 1; n <= 10; ++n) {
    CHECK(trees.expected_tokens(n - 1, 5) == Approx(golden[static_cast<std::size_t>(n - 1)]).epsilon(1e-13));
    CHECK(expected_tokens_of(trees.shape(n - 1, 5), kAcceptance) == Approx(trees.expected_tokens(n - 1, 5)));
  }
  CHECK(trees.shape(3, 5).parents == std::vector<std::int32_t>{-1, -1, 0});  // 1 + .6 + .25 + .36
}

TEST_CASE("Sequoia's trees are the best of all of their size and depth and arity") {
  TestRandom random(4);
  for (int instance = 0; instance < 6; ++instance) {
    std::vector<double> acceptance;
    double left = 1.0;
    const auto arity = 1 + random.below(3);
    for (std::int64_t b = 0; b < arity; ++b) {
      acceptance.push_back(instance == 0 ? 0.25 : left * 0.8 * random.uniform());  // instance 0: ties
      left -= acceptance.back();
    }
    const SequoiaTrees trees(acceptance, 6, 4);
    for (std::int32_t depth = 0; depth <= 4; ++depth)
      for (std::int32_t n = 0; n <= 6; ++n) {
        const double best = best_by_trying_all(n, depth, acceptance);
        INFO("instance " << instance << ", " << n << " drafts, depth " << depth);
        REQUIRE(trees.fits(n, depth) == (best > 0.0));
        if (best < 0.0) continue;
        CHECK(trees.expected_tokens(n, depth) == Approx(best).epsilon(1e-13));
        const TreeShape shape = trees.shape(n, depth);
        CHECK(shape.size() == n);
        CHECK(expected_tokens_of(shape, acceptance) == Approx(best).epsilon(1e-13));
        const std::vector<std::int32_t> depths = tree_depths(shape.parents);
        CHECK(std::is_sorted(depths.begin(), depths.end()));
        CHECK(depths.back() <= depth);
      }
  }
}

TEST_CASE("Sequoia names a wrong option") {
  const auto message = [](auto body) { return error_of(ErrorKind::usage, body); };
  CHECK(message([] { SequoiaTrees({{0.5, 1.5}}, 3, 3); }).find("child 2 is 1.5") != std::string::npos);
  CHECK(message([] { SequoiaTrees({{0.5, 0.6}}, 3, 3); }).find("sum to 1.1") != std::string::npos);
  CHECK(message([] { SequoiaTrees({{0.5}}, -1, 3); }).find("num_drafts_max is -1") != std::string::npos);
  CHECK(message([] { SequoiaTrees({{0.5}}, 3, -1); }).find("depth_max is -1") != std::string::npos);
  const SequoiaTrees chain(std::vector<double>{0.5}, 5, 3);
  CHECK(chain.expected_tokens(3, 3) == 1.875);
  CHECK(message([&] { chain.shape(4, 3); }).find("4 drafts and depth 3") != std::string::npos);
  CHECK(message([&] { chain.expected_tokens(6, 3); }).find("at most 5 drafts") != std::string::npos);
}
