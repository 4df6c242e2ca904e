// draftproof_fuzz [READER|all [COUNT [SEED [FIRST]]]]: damaged files for every reader, to be built with sanitizers.
//
//   cmake --preset asan && ninja -C build/asan draftproof_fuzz && build/asan/draftproof_fuzz all 20000
//
// Prints one line a reader, and exits with 1 where an input was a failure. A crash leaves its input in the folder that
// the first line names; a failure's is made again with its number as FIRST and a COUNT of 1.
#include <filesystem>
#include <iostream>

#include "tests/fuzz/readers.hpp"

int main(int argc, char** argv) {
  using namespace draftproof::testing;
  const std::string name = argc > 1 ? argv[1] : "all";
  const std::int64_t count = argc > 2 ? std::stoll(argv[2]) : 1000;
  const std::uint64_t seed = argc > 3 ? std::stoull(argv[3]) : 1;
  const std::int64_t first = argc > 4 ? std::stoll(argv[4]) : 0;
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "draftproof-fuzz" / name;
  std::filesystem::create_directories(folder);
  std::cout << "inputs in " << folder.string() << std::endl;
  bool failed = false;
  bool found = false;
  for (const FuzzedReader& reader : fuzzed_readers(folder.string())) {
    if (name != "all" && name != reader.name) continue;
    found = true;
    const FuzzResult result = fuzz(reader, first, count, seed, folder.string());
    std::cout << reader.name << ": " << count << " inputs, " << result.taken << " taken, " << result.refused
              << " refused, " << result.failures.size() << " failures, slowest " << result.slowest_s << " s"
              << std::endl;
    for (const std::string& failure : result.failures) std::cout << "  " << failure << std::endl;
    failed |= !result.failures.empty();
  }
  if (!found) std::cerr << "no reader '" << name << "'\n";
  return failed || !found ? 1 : 0;
}
