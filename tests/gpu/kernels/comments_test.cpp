// What a kernel's ladder lists.
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
