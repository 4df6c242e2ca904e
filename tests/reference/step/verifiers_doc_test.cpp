// The table of docs/verifiers.md is the registry, every section of it that is cited exists, and
// docs/adding_a_verifier.md lists the files that a verifier takes, no more and no fewer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <charconv>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "reference/step/verifiers.hpp"
#include "tests/reference/trace/temporary_folder.hpp"

using namespace draftproof;

namespace {

std::string shortest(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string parameters_of(const VerifierInfo& info) {
  std::string text;
  for (const VerifierParameter& p : info.parameters)
    text += (text.empty() ? "`" : "; `") + std::string(p.name) + "` = " + shortest(p.standard) + " in " +
            (p.above_least ? "(" : "[") + shortest(p.least) + ", " + shortest(p.most) + "]: " + std::string(p.meaning);
  return text;
}

std::string table_of_registry() {
  std::string table;
  for (const VerifierInfo& info : verifiers()) {
    table += "| `" + std::string(info.name) + "`";
    for (const std::string& cell : {std::string(name_of(info.draft)), std::string(name_of(info.proposal)),
                                    std::string(info.lossless ? "yes" : "no"), std::string(info.guarantee),
                                    parameters_of(info), std::string(info.source)})
      table += " | " + cell;
    table += " |\n";
  }
  return table;
}

namespace fs = std::filesystem;
const fs::path kRoot = DRAFTPROOF_SOURCE_DIR;

std::vector<std::string> listed_files() {
  const std::string page = testing::read_whole_file(kRoot / "docs/adding_a_verifier.md");
  const std::regex row("\\n\\| `([^`]+)` \\|");
  std::vector<std::string> files;
  for (auto at = std::sregex_iterator(page.begin(), page.end(), row); at != std::sregex_iterator(); ++at)
    files.push_back((*at)[1]);
  return files;
}

std::set<int> sections_of(const std::string& page) {
  const std::regex heading("\\n### ([0-9]+)[.] ");
  std::set<int> sections;
  for (auto at = std::sregex_iterator(page.begin(), page.end(), heading); at != std::sregex_iterator(); ++at)
    sections.insert(std::stoi((*at)[1]));
  return sections;
}

// Sections of verifiers.md that a text cites: "verifiers.md section 2", "verifiers.md sections 1 to 8", also where a
// comment goes on in the next line. `without_folder` counts citations that leave out docs/.
struct Citations {
  std::vector<int> sections;
  int without_folder = 0;
};
Citations citations_in(const std::string& text) {
  static const std::string between = "(?:[ \n/])+";
  static const std::regex citation("(docs/)?verifiers[.]md" + between + "sections?" + between +
                                   "([0-9]+)(?:" + between + "(?:to|and)" + between + "([0-9]+))?");
  Citations found;
  // Regular expressions are slow, and nearly no file names the page.
  if (text.find("verifiers.md") == std::string::npos) return found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), citation); at != std::sregex_iterator(); ++at) {
    found.without_folder += !(*at)[1].matched;
    found.sections.push_back(std::stoi((*at)[2]));
    if ((*at)[3].matched) found.sections.push_back(std::stoi((*at)[3]));
  }
  return found;
}

// Programs and libraries that name each verifier by its enumerator.
std::map<std::string, std::set<std::string>> naming_files() {
  const std::regex enumerator("\\bVerifier::([a-z_]+)\\b");
  std::map<std::string, std::set<std::string>> files;
  for (const char* floor :
       {"base", "reference", "exactness", "engine", "gpu", "sim", "studies", "viz", "cli", "python"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / floor)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".hpp" && extension != ".cuh") continue;
      const std::string text = testing::read_whole_file(entry.path());
      for (auto at = std::sregex_iterator(text.begin(), text.end(), enumerator); at != std::sregex_iterator(); ++at)
        files[(*at)[1]].insert(fs::relative(entry.path(), kRoot).generic_string());
    }
  return files;
}

}  // namespace

TEST_CASE("the table of docs/verifiers.md is the registry, row by row", "[release]") {
  const std::string page = testing::read_whole_file(kRoot / "docs/verifiers.md");
  const std::size_t rule = page.find("\n|---");
  REQUIRE(rule != std::string::npos);
  const std::size_t begin = page.find('\n', rule + 1) + 1;
  const std::string found = page.substr(begin, page.find("\n\n", begin) + 1 - begin);
  CHECK(found == table_of_registry());
}

TEST_CASE("every section of docs/verifiers.md that code cites exists", "[release]") {
  const std::set<int> sections = sections_of(testing::read_whole_file(kRoot / "docs/verifiers.md"));
  CHECK(sections == std::set<int>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  std::size_t cited = 0;
  for (const char* floor : {"base", "reference", "exactness", "engine", "gpu", "sim", "studies", "cli", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / floor)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".hpp" && extension != ".cuh") continue;
      if (entry.path().filename() == "verifiers_doc_test.cpp") continue;
      const Citations found = citations_in(testing::read_whole_file(entry.path()));
      INFO(entry.path());
      CHECK(found.without_folder == 0);
      for (const int section : found.sections) {
        INFO("section " << section);
        CHECK(sections.contains(section));
      }
      cited += found.sections.size();
    }
  CHECK(cited >= 6);
  // The reader of citations can fail.
  CHECK(citations_in("as verifiers.md section 17 says").sections == std::vector<int>{17});
  CHECK(citations_in("as verifiers.md section 17 says").without_folder == 1);
  CHECK(citations_in("// see docs/verifiers.md\n// sections 1 to 99").sections == std::vector<int>{1, 99});
}

TEST_CASE("docs/adding_a_verifier.md lists exactly the files that a verifier takes", "[release]") {
  CHECK(listed_files() ==
        std::vector<std::string>{
            "reference/verify/NAME.hpp", "reference/step/verifiers.hpp", "reference/step/verifiers.cpp",
            "reference/step/verify_step_of.hpp", "exactness/proof/steps.hpp", "exactness/proof/cases.cpp",
            "exactness/proof/acceptance_oracles.hpp", "exactness/proof/acceptance_of_*.cpp", "docs/verifiers.md",
            "tests/reference/verify/NAME_test.cpp", "tests/reference/step/every_verifier_test.cpp"});
  // Who speaks of one verifier alone: defaults, calls of the C interface that are one verifier's, rules for rows across
  // devices, planted bugs, and rows that are validated without one.
  const std::map<std::string, std::set<std::string>> spoken_of{
      {"chain",
       {"reference/step/verifiers.hpp", "reference/step/request.hpp", "reference/trace/trace_settings.hpp",
        "exactness/audit/audit.hpp", "gpu/reference_executor/verify.cpp", "cli/regress/library_statistics.cpp",
        "reference/shard/sharded_verify.hpp"}},
      {"block",
       {"reference/shard/sharded_verify.hpp", "gpu/reference_executor/verify.cpp", "exactness/bugs/algorithm/block.cpp",
        "cli/regress/library_statistics.cpp"}},
      {"coupled", {"reference/shard/sharded_verify.hpp", "exactness/bugs/processor/replay.cpp"}},
      {"sampler_match", {"reference/shard/sharded_verify.hpp"}},
      {"naive",
       {"exactness/audit/filter_check.cpp", "python/src/audit.cpp", "python/src/sampling.cpp",
        "cli/regress/library_statistics.cpp"}},
      {"target_only",
       {"reference/shard/sharded_verify.hpp", "gpu/reference_executor/verify.cpp",
        "cli/regress/library_statistics.cpp"}},
      {"rrsw", {"gpu/reference_executor/verify.cpp", "cli/regress/library_statistics.cpp"}},
  };
  const std::map<std::string, std::set<std::string>> naming = naming_files();
  std::set<std::string> headers;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "reference/verify"))
    headers.insert(entry.path().stem().string());
  const std::string decisions = testing::read_whole_file(kRoot / "tests/reference/step/every_verifier_test.cpp");
  for (const VerifierInfo& info : verifiers()) {
    const std::string name(info.name);
    INFO(name);
    std::set<std::string> expected{"reference/step/verifiers.cpp", "reference/step/verify_step_of.hpp",
                                   "exactness/proof/cases.cpp"};
    if (spoken_of.contains(name)) expected.insert(spoken_of.at(name).begin(), spoken_of.at(name).end());
    REQUIRE(naming.contains(name));
    CHECK(naming.at(name) == expected);
    CHECK(std::any_of(headers.begin(), headers.end(),
                      [&](const std::string& stem) { return stem.find(name) != std::string::npos; }));
    CHECK(std::regex_search(decisions, std::regex("\\{\"" + name + "[\":]")));
  }
}
