#include "engine/scheduler/kv_blocks.hpp"

#include "tests/support/test.hpp"

namespace {

TEST_CASE("blocks are taken lowest first and come back when their last holder lets go", "[kv_blocks]") {
  KvBlockPool pool(3);
  CHECK(pool.allocate() == 0);
  CHECK(pool.allocate() == 1);
  pool.publish(1, 77);
  pool.retain(1);
  CHECK(pool.num_held() == 2);
  pool.release(1);
  CHECK(pool.references(1) == 1);
  pool.release(1);
  CHECK(pool.num_held() == 1);
  CHECK(pool.num_free() == 2);
  CHECK(pool.find(77) == 1);  // findable, though nobody holds it
  pool.retain(1);
  CHECK(pool.num_held() == 2);
}

TEST_CASE("of those who claimed a tail all but the last copy it, and the last writes where nobody finds it",
          "[kv_blocks]") {
  KvBlockPool pool(3);
  const std::int32_t tail = pool.allocate();
  pool.publish(tail, 5);
  pool.release(tail);
  pool.claim(tail);
  pool.claim(tail);
  pool.retain(tail);
  CHECK(pool.wanted_by_others(tail));
  pool.take_over(tail);
  pool.release(tail);
  CHECK(pool.find(5) == tail);
  pool.retain(tail);
  CHECK(!pool.wanted_by_others(tail));
  pool.take_over(tail);
  CHECK(pool.find(5) == kNoBlock);
  CHECK(pool.num_held() == 1);
  pool.release(tail);
  CHECK(pool.num_free() == 3);
  BlockKeys keys;
  const std::vector<Token> tokens(19, 4);
  const auto full = keys.keys_of(tokens);
  CHECK(keys.tail_key(full, std::span(tokens).first(16)) == 0);
  CHECK(keys.tail_key(full, tokens) == keys.key_after(full[0], std::span(tokens).first(3)));
  CHECK(keys.tail_key(full, tokens) != keys.tail_key(full, std::span(tokens).first(18)));
}

TEST_CASE("a table grows by whole blocks and is trimmed from its end", "[kv_blocks]") {
  KvBlockPool pool(4);
  BlockTable table;
  CHECK(table.missing_for(16) == 1);
  CHECK(table.missing_for(17) == 2);
  table.grow_to(pool, 33);
  CHECK(table.blocks == std::vector<std::int32_t>{0, 1, 2});
  table.trim_to(pool, 32);
  CHECK(table.blocks == std::vector<std::int32_t>{0, 1});
  CHECK(pool.num_held() == 2);
  table.trim_to(pool, 0);
  CHECK(pool.num_held() == 0);
}

// 20 keys; of odd seeds such that all have one home in the table of the pool.
std::uint64_t key_at(std::uint64_t i, std::uint64_t seed) {
  constexpr std::uint64_t kInverse = 0xF1DE83E19937733Du;  // of the multiplier of KvBlockPool::home(), modulo 2^64
  static_assert(kInverse * 0x9E3779B97F4A7C15u == 1);
  return seed % 2 == 0 ? i : i * kInverse;
}

TEST_CASE("a pool agrees with a map of references, keys and ages under random use", "[kv_blocks]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    TestRandom random(seed);
    const auto num_blocks = static_cast<std::int32_t>(1 + random.below(12));
    KvBlockPool pool(num_blocks);
    std::map<std::int32_t, int> references;
    std::map<std::uint64_t, std::int32_t> block_of;  // key -> block
    std::map<std::int32_t, std::uint64_t> key_of;
    std::map<std::int32_t, int> released;  // when a findable block lost its last holder
    for (int now = 0; now < 600; ++now) {
      INFO("seed " << seed << ", operation " << now);
      const auto any = static_cast<std::int32_t>(random.below(num_blocks));
      const std::int64_t what = random.below(4);
      if (what == 0 && static_cast<std::int32_t>(references.size()) < num_blocks) {
        const std::int32_t block = pool.allocate();
        REQUIRE(references[block]++ == 0);
        const bool has_blank = static_cast<std::size_t>(num_blocks) >= references.size() + released.size();
        if (key_of.contains(block)) {  // only where no blank one was left, and the oldest
          REQUIRE_FALSE(static_cast<std::size_t>(num_blocks) > references.size() - 1 + released.size());
          for (const auto& [other, when] : released) REQUIRE(when >= released.at(block));
          block_of.erase(key_of.at(block));
          key_of.erase(block);
          released.erase(block);
        } else {
          REQUIRE(has_blank);
        }
      } else if (what == 1 && references.contains(any)) {
        pool.release(any);
        if (--references[any] == 0) {
          references.erase(any);
          if (key_of.contains(any)) released[any] = now;
        }
      } else if (what == 2 && references.contains(any)) {
        // Few keys, so that some are taken; they lie close together, so that searches meet.
        const std::uint64_t key = key_at(static_cast<std::uint64_t>(random.below(20)), seed);
        pool.publish(any, key);
        if (!block_of.contains(key) && !key_of.contains(any)) {
          block_of[key] = any;
          key_of[any] = key;
        }
      } else if (what == 3 && key_of.contains(any)) {
        REQUIRE(pool.find(key_of.at(any)) == any);
        pool.retain(any);
        ++references[any];
        released.erase(any);
      }
      REQUIRE(pool.num_held() == static_cast<std::int32_t>(references.size()));
      for (std::int32_t block = 0; block < num_blocks; ++block)
        REQUIRE(pool.references(block) == (references.contains(block) ? references[block] : 0));
      for (std::uint64_t i = 0; i < 20; ++i) {
        const std::uint64_t key = key_at(i, seed);
        REQUIRE(pool.find(key) == (block_of.contains(key) ? block_of[key] : kNoBlock));
      }
    }
  }
}

TEST_CASE("a negative number of blocks is refused", "[kv_blocks]") {
  CHECK(error_of(ErrorKind::usage, [] { KvBlockPool(-1); }) == "number of KV blocks: it is -1; expected 0 or more");
}

}  // namespace
