// The device mutants: kernels with one fault each (gpu/mutants/*.mutant), of which the regression must find every one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/support/run_program.hpp"

namespace {

using draftproof::testing::ProgramResult;
using draftproof::testing::run_command;

std::vector<std::string> mutant_ids() {
  std::vector<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator(DRAFTPROOF_SOURCE_DIR "/gpu/mutants"))
    if (entry.path().extension() == ".mutant") ids.push_back(entry.path().stem().string());
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  REQUIRE(in);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the regression kills every device mutant") {
#if defined(__SANITIZE_ADDRESS__)
  WARN("SKIPPED: device mutants are not built with the sanitizers");
  return;
#endif
  for (const std::string& id : mutant_ids()) {
    const ProgramResult run = run_command({DRAFTPROOF_MUTANTS "/" + id + ".run"});
    INFO(id << ": " << run.out << run.err);
    CHECK(run.exit_code == 0);
    CHECK_FALSE(run.out.empty());
  }
}

TEST_CASE("every kernel bug of the catalogue has a device mutant, and gpu/mutants/README.md names it") {
  const std::vector<std::string> ids = mutant_ids();
  const std::string readme = text_of(DRAFTPROOF_SOURCE_DIR "/gpu/mutants/README.md");
  for (const char* bug : {"B06", "B08", "B12", "B14", "B43", "B54", "B56", "B58", "B60", "B61"}) {
    INFO(bug);
    CHECK(std::any_of(ids.begin(), ids.end(), [&](const std::string& id) { return id.rfind(bug, 0) == 0; }));
  }
  for (const std::string& id : ids) {
    INFO(id);
    CHECK(readme.find("`" + id + "`") != std::string::npos);
  }
}
