#include "engine/transformer/attention.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a path's tiles are the blocks of its context, then what the slots of its tokens make") {
  // A context of 18 tokens in blocks 5 and 2; the chain of 15 tokens goes on in block 2 and fills 7 from its start.
  const std::vector<std::int32_t> blocks = {5, 2, 7};
  const std::vector<StreamContext> contexts = {{blocks, 18}};
  std::vector<Token> tokens;
  std::vector<std::int32_t> positions, streams, parents;
  std::vector<std::int64_t> slots;
  for (std::int32_t i = 0; i < 15; ++i) {
    tokens.push_back(1);
    positions.push_back(18 + i);
    streams.push_back(0);
    parents.push_back(i - 1);
    slots.push_back(i < 14 ? 2 * 16 + 2 + i : 7 * 16);
  }
  // Two drafts: after token 2 of the chain and after the last one.
  tokens.insert(tokens.end(), {1, 1});
  positions.insert(positions.end(), {21, 33});
  streams.insert(streams.end(), {0, 0});
  parents.insert(parents.end(), {2, 14});
  slots.insert(slots.end(), {100, 101});
  AttentionPaths paths;
  for (int repeat = 0; repeat < 2; ++repeat) {  // what the batch before left does not matter
    paths.build({tokens, positions, streams, parents, slots, contexts, {}, {}});
    CHECK(paths.tiles(0) == std::vector<PathTile>{{5, -1}, {2, -1}});
    CHECK(paths.tiles(13) == std::vector<PathTile>{{5, -1}, {2, -1}});
    CHECK(paths.tiles(14) == std::vector<PathTile>{{5, -1}, {2, -1}, {7, -1}});
    const std::vector<PathTile>& draft = paths.tiles(15);
    REQUIRE(draft.size() == 2);
    CHECK(draft[0] == PathTile{5, -1});
    CHECK(draft[1].block == -1);
    const TileSlots& gathered = paths.gathered(draft[1]);
    CHECK(std::vector<std::int64_t>(gathered.begin(), gathered.begin() + 7) ==
          std::vector<std::int64_t>{32, 33, 34, 35, 36, 100, -1});
    REQUIRE(paths.tiles(16).size() == 3);
    CHECK(paths.tiles(16)[1] == PathTile{2, -1});
    CHECK(paths.gathered(paths.tiles(16)[2])[0] == 112);
    CHECK(paths.gathered(paths.tiles(16)[2])[1] == 101);
  }
}

TEST_CASE("a first token, and one that begins a tile, are paths of their own") {
  const std::vector<std::int32_t> blocks = {3};
  const std::vector<StreamContext> contexts = {{blocks, 0}, {blocks, 16}};
  const std::vector<Token> tokens = {1, 1, 1};
  const std::vector<std::int32_t> positions = {0, 16, 17}, streams = {0, 1, 1}, parents = {-1, -1, 1};
  const std::vector<std::int64_t> slots = {64, 85, 86};
  AttentionPaths paths;
  paths.build({tokens, positions, streams, parents, slots, contexts, {}, {}});
  CHECK(paths.tiles(0) == std::vector<PathTile>{{4, -1}});
  REQUIRE(paths.tiles(1).size() == 2);
  CHECK(paths.tiles(1)[0] == PathTile{3, -1});
  CHECK(paths.gathered(paths.tiles(1)[1])[0] == 85);
  CHECK(paths.gathered(paths.tiles(2)[1])[1] == 86);
}
