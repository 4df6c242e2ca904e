#include "studies/tree/tree_explorer.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a tree is laid out by hand: a level a column, leaves a row each, parents between their children") {
  //  0 -> 2, 3;  1 -> 4
  const std::vector<std::int32_t> parents{-1, -1, 0, 0, 1};
  const std::vector<TreePlace> places = tree_layout(parents);
  REQUIRE(places.size() == 6);
  CHECK(places[3].x == 2.0);
  CHECK(places[3].y == 0.0);
  CHECK(places[4].y == 1.0);
  CHECK(places[1].y == 0.5);
  CHECK(places[5].y == 2.0);
  CHECK(places[2].y == 2.0);
  CHECK(places[0].x == 0.0);
  CHECK(places[0].y == 1.25);
  CHECK(tree_layout({}).size() == 1);
}

TEST_CASE("no two nodes of a level come together, whatever the tree, and subtrees do not mix") {
  TestRandom random(7);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::int32_t> parents;
    const std::int32_t size = static_cast<std::int32_t>(1 + random.below(60));
    for (std::int32_t i = 0; i < size; ++i) parents.push_back(static_cast<std::int32_t>(random.below(i + 1)) - 1);
    const std::vector<TreePlace> places = tree_layout(parents);
    for (std::size_t a = 1; a < places.size(); ++a) {
      const TreePlace& parent = places[static_cast<std::size_t>(parents[a - 1] + 1)];
      CHECK(places[a].x == parent.x + 1.0);
      for (std::size_t b = 1; b < a; ++b) {
        if (places[a].x == places[b].x) CHECK(std::abs(places[a].y - places[b].y) >= 1.0);
        // Edges between the same levels do not cross.
        if (places[a].x != places[b].x) continue;
        const TreePlace& other = places[static_cast<std::size_t>(parents[b - 1] + 1)];
        CHECK((places[a].y - places[b].y) * (parent.y - other.y) >= 0.0);
      }
    }
  }
}
