// Comments that tools leave alone: clang-format does not break them (ReflowComments), so that tables and ladders keep
// their form; how long a line is and what a ladder lists is looked at here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path kRoot = DRAFTPROOF_SOURCE_DIR;

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

TEST_CASE("no line of a comment is longer than 120 columns", "[style]") {
  const std::regex comment("^\\s*(//|/?\\*)");
  int looked_at = 0;
  for (const char* folder : {"cli", "gpu", "reference", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".cpp" && ending != ".hpp" && ending != ".cuh" && ending != ".cu" && ending != ".h") continue;
      const std::vector<std::string> lines = lines_of(entry.path());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (columns(lines[i]) > 120 && std::regex_search(lines[i], comment))
          FAIL_CHECK(entry.path().string() << ", line " << i + 1 << ": " << columns(lines[i]) << " columns");
      }
      ++looked_at;
    }
  }
  CHECK(looked_at > 100);
}

TEST_CASE("the ladder of a kernel lists the rung that runs, and what the next would be", "[style]") {
  const std::regex rung("^//   v[0-9]+ ");
  const std::regex running("^//   v[0-9]+ \\(this\\)  \\S");
  int ladders = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "gpu/kernels")) {
    const std::vector<std::string> lines = lines_of(entry.path());
    const auto count = [&](const auto& is) { return std::count_if(lines.begin(), lines.end(), is); };
    if (count([](const std::string& line) { return line.starts_with("// Ladder"); }) == 0) continue;
    INFO(entry.path());
    CHECK(count([&](const std::string& line) { return std::regex_search(line, running); }) == 1);
    CHECK(count([&](const std::string& line) { return std::regex_search(line, rung); }) == 1);
    CHECK(count([](const std::string& line) { return line.starts_with("//   next: "); }) == 1);
    ++ladders;
  }
  CHECK(ladders >= 12);
}

}  // namespace
