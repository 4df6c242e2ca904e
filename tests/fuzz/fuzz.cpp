#include "tests/fuzz/fuzz.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "tests/fuzz/damage.hpp"

namespace draftproof::testing {
namespace {

constexpr std::size_t kFailuresMax = 10;

// How a file was read: "" where it was taken or refused as it should be.
std::string outcome_of(const FuzzedReader& reader, const std::string& path, FuzzResult& result) {
  try {
    reader.read(path);
    ++result.taken;
    return "";
  } catch (const Error& error) {
    ++result.refused;
    const std::string text = error.what();  // which is made one printable line where it is printed
    if (error.kind() == ErrorKind::internal) return "internal error: " + in_quotes(text);
    return text.empty() ? "an error without text" : "";
  } catch (const std::exception& error) {
    return "not an error of the project: " + in_quotes(error.what());
  }
}

}  // namespace

FuzzResult fuzz(const FuzzedReader& reader, std::int64_t first, std::int64_t count, std::uint64_t seed,
                const std::string& folder) {
  FuzzResult result;
  const std::string path = (std::filesystem::path(folder) / reader.file_name).string();
  for (std::int64_t number = first; number < first + count; ++number) {
    Damage damage(seed ^ (static_cast<std::uint64_t>(number) << 20));
    {
      std::filesystem::remove(path);  // a file that is truncated and written again waits for the disk
      std::ofstream file(path, std::ios::binary | std::ios::trunc);
      file << damage.of(reader.sound);
    }
    const std::clock_t start = std::clock();
    std::string failure = outcome_of(reader, path, result);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    result.slowest_s = std::max(result.slowest_s, seconds);
    if (failure.empty() && seconds > kSecondsMax) failure = "took " + std::to_string(seconds) + " s";
    if (failure.empty() || result.failures.size() == kFailuresMax) continue;
    result.failures.push_back("input " + std::to_string(number) + ": " + failure);
  }
  return result;
}

}  // namespace draftproof::testing
