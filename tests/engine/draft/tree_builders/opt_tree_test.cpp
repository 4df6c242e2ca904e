#include "engine/draft/tree_builders/dynamic_trees.hpp"

#include "tests/support/test.hpp"
#include "tests/support/tree_distribution.hpp"

TEST_CASE("OPT-Tree has the largest sum of all closed trees of its size") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::map<std::vector<Token>, double> nodes;
    std::vector<Token> path;
    add_all_nodes(seed, 3, 3, path, 1.0, nodes);
    for (const std::int32_t n : {1, 2, 3, 4, 5}) {
      if (static_cast<std::size_t>(n) > nodes.size()) continue;
      const ValuedTree tree = opt_tree({n, 3, 0.0}, tree_candidates(seed, 3));
      INFO("seed " << seed << ", " << n << " nodes");
      CHECK(tree.tree.size() == n);
      CHECK(total_value(tree) == best_closed_sum(nodes, static_cast<std::size_t>(n)));  // eighths: sums are exact
    }
  }
}

TEST_CASE("OPT-Tree keeps parents before children with their products as values under ties") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::map<std::vector<Token>, double> nodes;
    std::vector<Token> path;
    add_all_nodes(seed, 4, 4, path, 1.0, nodes);
    const ValuedTree tree = opt_tree({12, 4, 0.0}, tree_candidates(seed, 4));
    CHECK_NOTHROW(validate(tree.tree, 4, "tree"));
    std::set<std::vector<Token>> seen;
    for (std::int32_t i = 0; i < tree.tree.size(); ++i) {
      const std::vector<Token> node = tree.tree.path(i);
      CHECK(seen.insert(node).second);
      CHECK(tree.values[static_cast<std::size_t>(i)] == nodes.at(node));
    }
  }
}

TEST_CASE("certain continuations make a chain although every value ties") {
  const DraftCandidates certain = [](std::span<const Token> path, std::int32_t) {
    return std::vector<DraftCandidate>{{static_cast<Token>(path.size()), 1.0}};
  };
  const ValuedTree tree = opt_tree({4, 10, 0.0}, certain);
  CHECK(tree.tree.tokens == std::vector<Token>{0, 1, 2, 3});
  CHECK(tree.tree.parents == std::vector<std::int32_t>{-1, 0, 1, 2});
}

TEST_CASE("the threshold of OPT-Tree stops where one more layer adds too little") {
  // One token of probability 1/2 a layer: the sum grows by 1/2, 1/4, 1/8, ...
  std::size_t deepest = 0;
  const DraftCandidates halves = [&](std::span<const Token> path, std::int32_t) {
    deepest = std::max(deepest, path.size());
    return std::vector<DraftCandidate>{{7, 0.5}};
  };
  const ValuedTree tree = opt_tree({9, 9, 0.2}, halves);
  CHECK(tree.tree.size() == 3);  // the layer that added 1/8 was drawn, and is kept
  CHECK(total_value(tree) == 0.875);
  CHECK(deepest == 2);
  CHECK(opt_tree({9, 9, 0.0}, halves).tree.size() == 9);
}

TEST_CASE("OPT-Tree names a wrong option or candidate") {
  const DraftCandidates good = tree_candidates(1, 3);
  CHECK(error_of(ErrorKind::usage, [&] { opt_tree({0, 3, 0.0}, good); }).find("num_nodes is 0") != std::string::npos);
  CHECK(error_of(ErrorKind::usage, [&] { opt_tree({3, 0, 0.0}, good); }).find("depth_max is 0") != std::string::npos);
  CHECK(error_of(ErrorKind::usage, [&] { opt_tree({3, 3, -1.0}, good); }).find("threshold") != std::string::npos);
  const auto with = [](std::vector<DraftCandidate> candidates) {
    return error_of(ErrorKind::input, [&] {
      opt_tree({3, 3, 0.0}, [&](std::span<const Token> path, std::int32_t) {
        return path.size() == 1 ? candidates : std::vector<DraftCandidate>{{5, 0.5}};
      });
    });
  };
  CHECK(with({{1, 1.5}}).find("draft path [5]: candidate token 1 has probability 1.5") != std::string::npos);
  CHECK(with({{1, 0.0}}).find("candidate token 1 has probability 0") != std::string::npos);
  CHECK(with({{1, 0.2}, {2, 0.3}}).find("token 2 stands after token 1") != std::string::npos);
  CHECK(with({{2, 0.2}, {1, 0.2}}).find("token 1 stands after token 2") != std::string::npos);
  CHECK(with({{1, 0.2}, {1, 0.2}}).find("given twice") != std::string::npos);
  CHECK(with({{1, .2}, {2, .2}, {3, .2}, {4, .2}}).find("at most 3 were asked for") != std::string::npos);
}
