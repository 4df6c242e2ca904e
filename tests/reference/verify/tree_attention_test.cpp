#include "reference/verify/tree_attention.hpp"

#include "tests/support/test.hpp"

namespace {

std::vector<std::int32_t> random_parents(TestRandom& random, std::int32_t size) {
  std::vector<std::int32_t> parents;
  for (std::int32_t i = 0; i < size; ++i) parents.push_back(static_cast<std::int32_t>(random.below(i + 1)) - 1);
  return parents;
}

// Walks up from the node.
bool is_ancestor_or_self(const std::vector<std::int32_t>& parents, std::int32_t ancestor, std::int32_t node) {
  while (node != kRootNode && node != ancestor) node = parents[static_cast<std::size_t>(node)];
  return node == ancestor;
}

}  // namespace

TEST_CASE("tree masks and depths of a small tree are those written by hand") {
  //  root - 0 - 2
  //       |   \ 3 - 4
  //       \ 1
  const std::vector<std::int32_t> parents{-1, -1, 0, 0, 3};
  CHECK(tree_depths(parents) == std::vector<std::int32_t>{0, 1, 1, 2, 2, 3});
  const PackedTreeMask mask = packed_tree_mask(parents);
  CHECK(mask.rows == 6);
  CHECK(mask.words_per_row == 1);
  CHECK(mask.words == std::vector<std::uint32_t>{0b000001, 0b000011, 0b000101, 0b001011, 0b010011, 0b110011});
}

TEST_CASE("tree masks hold ancestors and nothing else") {
  TestRandom random(8);
  for (const std::int32_t size : {0, 1, 7, 30, 31, 32, 63, 64, 100}) {
    const std::vector<std::int32_t> parents = random_parents(random, size);
    const std::vector<bool> dense = tree_mask(parents);
    const PackedTreeMask packed = packed_tree_mask(parents);
    REQUIRE(dense.size() == static_cast<std::size_t>((size + 1) * (size + 1)));
    REQUIRE(packed.words_per_row == (size + 32) / 32);
    std::size_t wrong = 0;
    for (std::int32_t r = 0; r <= size; ++r)
      for (std::int32_t c = 0; c < 32 * packed.words_per_row; ++c) {
        const bool attends = c <= size && is_ancestor_or_self(parents, c - 1, r - 1);
        const std::uint32_t word = packed.words[static_cast<std::size_t>(r * packed.words_per_row + c / 32)];
        wrong += (((word >> c % 32) & 1u) != 0) != attends;
        if (c <= size) wrong += dense[static_cast<std::size_t>(r * (size + 1) + c)] != attends;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the breadth-first order flattens a tree and keeps paths and sibling order") {
  TestRandom random(10);
  for (int instance = 0; instance < 20; ++instance) {
    const DraftTree tree{random.tokens(15, 50), random_parents(random, 15)};
    const std::vector<std::int32_t> order = breadth_first_order(tree.parents);
    const DraftTree flat = reordered(tree, order);
    CHECK_NOTHROW(validate(flat, 50, "flat"));
    const std::vector<std::int32_t> depths = tree_depths(flat.parents);
    CHECK(std::is_sorted(depths.begin(), depths.end()));
    for (std::size_t i = 1; i < flat.parents.size(); ++i)
      if (depths[i] == depths[i + 1]) CHECK(flat.parents[i - 1] <= flat.parents[i]);
    for (std::int32_t i = 0; i < flat.size(); ++i) CHECK(flat.path(i) == tree.path(order[static_cast<std::size_t>(i)]));
    for (std::int32_t i = kRootNode; i < flat.size(); ++i) {
      const std::vector<std::int32_t> children = flat.children(i);
      const std::int32_t old = i == kRootNode ? kRootNode : order[static_cast<std::size_t>(i)];
      std::vector<std::int32_t> old_children;
      for (const std::int32_t child : children) old_children.push_back(order[static_cast<std::size_t>(child)]);
      CHECK(old_children == tree.children(old));
    }
  }
}

TEST_CASE("a parent after its child is an error that names the node") {
  CHECK(error_of(ErrorKind::input, [] {
          tree_depths(std::vector<std::int32_t>{-1, 1});
        }).find("the parent of node 1 is 1") != std::string::npos);
  CHECK(error_of(ErrorKind::input, [] {
          packed_tree_mask(std::vector<std::int32_t>{-2});
        }).find("the parent of node 0 is -2") != std::string::npos);
}
