#include "engine/draft/tree_builders/dynamic_trees.hpp"

#include "tests/support/test.hpp"
#include "tests/support/tree_distribution.hpp"

TEST_CASE("a small EAGLE-2 tree is the one built by hand") {
  // Context: 0 (.6), 1 (.3). After 0: 2 (.5), 3 (.4). After 1: 4 (.9), 5 (.1). After anything else: 6 (.5), 7 (.25).
  const DraftCandidates draft = [](std::span<const Token> path, std::int32_t count) {
    std::vector<DraftCandidate> all{{6, 0.5}, {7, 0.25}};
    if (path.empty()) all = {{0, 0.6}, {1, 0.3}};
    if (path.size() == 1 && path[0] == 0) all = {{2, 0.5}, {3, 0.4}};
    if (path.size() == 1 && path[0] == 1) all = {{4, 0.9}, {5, 0.1}};
    all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
    return all;
  };
  // Layer 2: 02 .30, 03 .24, 14 .27, 15 .03; frontier 02 and 14. Layer 3: 026 .15, 027 .075, 146 .135, 147 .0675.
  const ValuedTree tree = eagle2_tree({2, 2, 7}, draft);
  CHECK(tree.tree.tokens == std::vector<Token>{0, 1, 2, 3, 4, 6, 6});
  CHECK(tree.tree.parents == std::vector<std::int32_t>{-1, -1, 0, 0, 1, 2, 4});
  CHECK(tree.values[6] == Approx(0.135));
  CHECK(eagle2_tree({2, 2, 100}, draft).tree.size() == 2 + 2 * 4);  // the whole pool, 03 and 15 without children
  CHECK(eagle2_tree({2, 0, 100}, draft).tree.size() == 2);
}

TEST_CASE("EAGLE-2 agrees with a second implementation that ranks whole paths") {
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (const std::int32_t top_k : {1, 2, 3}) {
      const std::int32_t depth = 3;
      // The pool by path, in the order of the definition.
      struct Scored {
        std::vector<Token> path;
        double score;
      };
      const auto better = [](const Scored& a, const Scored& b) { return a.score > b.score; };
      const auto children = [&](const Scored& parent, std::vector<Scored>& out) {
        for (const DraftCandidate& c : candidates_of(tree_distribution(seed, 4, parent.path), top_k)) {
          Scored child = parent;
          child.path.push_back(c.token);
          child.score *= c.probability;
          out.push_back(child);
        }
      };
      std::vector<Scored> layer;
      children({{}, 1.0}, layer);
      std::vector<Scored> pool = layer;
      for (std::int32_t e = 0; e < depth; ++e) {
        // Cut the layer to its top_k, in the order in which it was proposed.
        std::vector<Scored> ranked = layer;
        std::stable_sort(ranked.begin(), ranked.end(), better);
        ranked.resize(std::min(ranked.size(), static_cast<std::size_t>(top_k)));
        std::vector<Scored> next;
        for (const Scored& node : layer)
          if (std::any_of(ranked.begin(), ranked.end(), [&](const Scored& r) { return r.path == node.path; }))
            children(node, next);
        pool.insert(pool.end(), next.begin(), next.end());
        layer = std::move(next);
      }
      for (const std::int32_t n : {1, 4, 9}) {
        std::vector<Scored> ranked = pool;
        std::stable_sort(ranked.begin(), ranked.end(), better);
        ranked.resize(std::min(ranked.size(), static_cast<std::size_t>(n)));
        std::set<std::vector<Token>> expected;
        for (const Scored& node : ranked) expected.insert(node.path);
        const ValuedTree tree = eagle2_tree({top_k, depth, n}, tree_candidates(seed, 4));
        std::set<std::vector<Token>> found;
        for (std::int32_t i = 0; i < tree.tree.size(); ++i) found.insert(tree.tree.path(i));
        INFO("seed " << seed << ", top_k " << top_k << ", " << n << " nodes");
        CHECK(found == expected);
        CHECK_NOTHROW(validate(tree.tree, 4, "tree"));
      }
    }
}

TEST_CASE("values that tie by certainty or by underflow leave the tree closed") {
  for (const double probability : {1.0, 1e-200}) {
    const DraftCandidates draft = [=](std::span<const Token>, std::int32_t count) {
      std::vector<DraftCandidate> all{{0, probability}, {1, probability}, {2, probability}};
      all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
      return all;
    };
    for (const std::int32_t n : {5, 10, 16, 30}) {
      const ValuedTree tree = eagle2_tree({3, 4, n}, draft);
      CHECK(tree.tree.size() == n);
      CHECK_NOTHROW(validate(tree.tree, 3, "tree"));
    }
    // Ties go to what was scored first: layer by layer.
    CHECK(eagle2_tree({3, 4, 5}, draft).tree.parents == std::vector<std::int32_t>{-1, -1, -1, 0, 0});
  }
}

TEST_CASE("EAGLE-2 names a wrong option") {
  const DraftCandidates good = tree_candidates(1, 3);
  CHECK(error_of(ErrorKind::usage, [&] { eagle2_tree({0, 3, 5}, good); }).find("top_k is 0") != std::string::npos);
  CHECK(error_of(ErrorKind::usage, [&] { eagle2_tree({3, -1, 5}, good); }).find("depth is -1") != std::string::npos);
  CHECK(error_of(ErrorKind::usage, [&] { eagle2_tree({3, 3, 0}, good); }).find("num_nodes is 0") != std::string::npos);
}
