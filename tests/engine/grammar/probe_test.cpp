#include "engine/grammar/probe.hpp"

#include "tests/support/test.hpp"

TEST_CASE("what takes too long, too much memory or crashes is found in a copy of the process", "[release]") {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  int in_this_process = 0;
  CHECK(ends_within(1, 64 * kMiB, [&] { in_this_process = 1; }));
  CHECK(in_this_process == 0);
  CHECK(ends_within(1, 64 * kMiB, [] { throw std::runtime_error("an error is an end"); }));
  CHECK_FALSE(ends_within(1, 64 * kMiB, [] {
    volatile bool runs = true;
    while (runs) continue;
  }));
  CHECK_FALSE(ends_within(1, 64 * kMiB, [] { std::vector<char> large(1024 * kMiB, 1); }));
  CHECK_FALSE(ends_within(1, 64 * kMiB, [] { std::abort(); }));
}
