// How large the measured problems are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace draftproof {

struct BenchSizes {
  std::size_t probe_bytes = std::size_t{512} << 20;  // read to measure bandwidth and to empty the caches
  std::int64_t row_vocab_size = 131072;
  std::int64_t batch = 64;
  std::int64_t draft_len = 5;
  std::int64_t verify_vocab_size = 128256;
  std::int64_t chain_trials = 16'000'000;
  std::int64_t sequence_steps = 2'000'000;
  std::int64_t simulated_requests = 5'000;
};

// For tests of the program: every measurement is taken, none means anything.
inline constexpr BenchSizes kQuickSizes{std::size_t{16} << 20, 8192, 4, 3, 8192, 64'000, 10'000, 100};

}  // namespace draftproof
