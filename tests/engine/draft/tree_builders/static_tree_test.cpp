#include "engine/draft/tree_builders/static_tree.hpp"

#include <catch2/catch.hpp>

#include "tests/support/error_of.hpp"

using namespace draftproof;

TEST_CASE("a static tree is sorted by length and then by ranks") {
  // Tree worked out by hand: three children of the context, two below the first, one below the second, one at depth 3.
  const StaticTree tree = make_static_tree({{0, 1}, {0}, {0, 0, 0}, {2}, {1, 0}, {1}, {0, 0}}, "tree");
  CHECK(tree.paths == std::vector<IndexPath>{{0}, {1}, {2}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}});
  CHECK(tree.shape.parents == std::vector<std::int32_t>{-1, -1, -1, 0, 0, 1, 3});
  CHECK(tree.depth(6) == 3);
  CHECK(tree.rank(4) == 1);
  // The flat list [root, 10 of depth 1, 10 of depth 2, 10 of depth 3].
  std::vector<std::int64_t> indices;
  for (std::int32_t node = 0; node < 7; ++node) indices.push_back(tree.candidate_index(node, 10));
  CHECK(indices == std::vector<std::int64_t>{1, 2, 3, 11, 12, 11, 21});
}

TEST_CASE("a static tree takes its tokens from the candidates of each depth") {
  const StaticTree tree = make_static_tree({{0}, {1}, {0, 1}, {1, 0}}, "tree");
  const std::vector<std::vector<Token>> candidates{{50, 51}, {60, 61}};
  const DraftTree filled = fill_static_tree(tree, candidates, "heads");
  CHECK(filled.tokens == std::vector<Token>{50, 51, 61, 60});
  CHECK(filled.parents == std::vector<std::int32_t>{-1, -1, 0, 1});
}

TEST_CASE("a static tree without paths is the bare context and chains and gaps in ranks are fine") {
  CHECK(make_static_tree({}, "tree").shape.size() == 0);
  CHECK(make_static_tree({{0}, {0, 0}, {0, 0, 0}}, "tree").shape.parents == chain_shape(3).parents);
  CHECK(make_static_tree({{4}}, "tree").rank(0) == 4);
}

TEST_CASE("wrong paths and missing candidates are named") {
  const auto of_paths = [](std::vector<IndexPath> paths) {
    return error_of(ErrorKind::input, [&] { make_static_tree(paths, "tree.json"); });
  };
  CHECK(of_paths({{0}, {}}) == "tree.json: path 1 is empty; the context itself is not listed");
  CHECK(of_paths({{0}, {0, -1}}).find("path 1, [0, -1], has a negative rank") != std::string::npos);
  CHECK(of_paths({{0}, {1, 2}}).find("path [1, 2] has no parent; [1] must be given too") != std::string::npos);
  CHECK(of_paths({{0}, {1}, {0}}).find("path [0] is given twice") != std::string::npos);

  const StaticTree tree = make_static_tree({{0}, {0, 2}}, "tree");
  const auto of_candidates = [&](std::vector<std::vector<Token>> candidates) {
    return error_of(ErrorKind::input, [&] { fill_static_tree(tree, candidates, "heads"); });
  };
  CHECK(of_candidates({{5}, {6, 7}}) == "heads: path [0, 2] needs 3 candidates of depth 2, and there are 2");
  CHECK(of_candidates({{5}}) == "heads: path [0, 2] needs 3 candidates of depth 2, and there are 0");
  CHECK(of_candidates({{5}, {6, 7, 6}}).find("candidates of depth 2 hold token 6 twice") != std::string::npos);
}
