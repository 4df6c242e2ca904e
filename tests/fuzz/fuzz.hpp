// Reads damaged files: each is taken, or refused in one clear error, in little time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace draftproof::testing {

struct FuzzedReader {
  std::string name;
  std::string file_name;           // of what is read
  std::vector<std::string> sound;  // inputs that it takes
  // Reads the file and does with it what a program does first.
  std::function<void(const std::string& path)> read;
};

struct FuzzResult {
  std::int64_t taken = 0;
  std::int64_t refused = 0;
  double slowest_s = 0.0;  // of processor time
  // Inputs that threw another exception than an input or usage error, threw one without text, or took more than
  // kSecondsMax, each with its failure. At most ten.
  std::vector<std::string> failures;
};

inline constexpr double kSecondsMax = 5.0;

// Inputs [first, first + count) of a seed, each of which depends on its number and the seed alone. They are written
// into `folder`, where a crash leaves the one that caused it.
FuzzResult fuzz(const FuzzedReader& reader, std::int64_t first, std::int64_t count, std::uint64_t seed,
                const std::string& folder);

}  // namespace draftproof::testing
