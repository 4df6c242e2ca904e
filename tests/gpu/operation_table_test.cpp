// The table of operations against what it stands for: draftproof.h, which is plain C, and the nine files of a kernel
// that gpu/README.md lists, no more and no fewer.
#include "gpu/operation_table.hpp"

#include <cctype>
#include <regex>

#include "tests/support/test.hpp"

namespace {

namespace fs = std::filesystem;
const fs::path kRoot = DRAFTPROOF_SOURCE_DIR;

struct Operation {
  std::string name;
  std::string arguments;
  bool has_workspace;
};
#define PLAIN(name, Arguments) Operation{#name, #Arguments, false},
#define WITH_WORKSPACE(name, Arguments) Operation{#name, #Arguments, true},
const std::vector<Operation> kOperations = {DRAFTPROOF_OPERATIONS(PLAIN, WITH_WORKSPACE)};
const std::vector<Operation> kReferenceOperations = {DRAFTPROOF_REFERENCE_OPERATIONS(PLAIN)};

std::string text_of(const std::string& file) {
  return read_whole_file(kRoot / file);
}
bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
// Line breaks and runs of blanks are one blank.
std::string in_one_line(const std::string& text) {
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

// The lines of a Markdown table that begin with `| ` and a name in backticks.
std::vector<std::string> rows_named(const std::string& readme, const std::string& name) {
  std::vector<std::string> rows;
  std::istringstream lines(readme);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("| `" + name + "`")) rows.push_back(line);
  return rows;
}

// The files that gpu/README.md names under "A new kernel", NAME standing for the operation.
std::vector<std::string> listed_files(const std::string& readme) {
  const std::size_t begin = readme.find("\n## A new kernel\n");
  REQUIRE(begin != std::string::npos);
  std::vector<std::string> files;
  std::istringstream lines(readme.substr(begin + 1, readme.find("\n## ", begin + 1) - begin));
  const std::regex file("^\\| `([^`]+)` \\|");
  std::smatch found;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_search(line, found, file)) files.push_back(found[1]);
  return files;
}

bool is_of_a_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
// Does `text` hold `part` where no name goes on before or after it?
bool holds_name(const std::string& text, const std::string& part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    const bool begins = at == 0 || !is_of_a_name(part.front()) || !is_of_a_name(text[at - 1]);
    const bool ends = end == text.size() || !is_of_a_name(part.back()) || !is_of_a_name(text[end]);
    if (begins && ends) return true;
  }
  return false;
}

// The texts of gpu/ and the build by path, but for those that take calls by the kinds of their arguments.
std::map<std::string, std::string> texts_of_kernels() {
  std::map<std::string, std::string> texts;
  std::vector<fs::path> files = {kRoot / "CMakeLists.txt"};
  for (const char* folder : {"gpu", "cmake"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.is_regular_file()) files.push_back(entry.path());
  for (const fs::path& file : files) {
    const std::string relative = fs::relative(file, kRoot).generic_string();
    if (relative.starts_with("gpu/bench/")) continue;  // times some of them
    if (relative == "gpu/CMakeLists.txt") continue;    // compiles some cases alone
    // Random calls and the cases beyond 2^32 elements take all calls.
    if (relative.starts_with("gpu/regress/random_calls") || relative.starts_with("gpu/regress/far_")) continue;
    texts[relative] = text_of(relative);
  }
  return texts;
}

// Those that name the operation as a call.
std::set<std::string> naming_files(const std::map<std::string, std::string>& texts, const std::string& name) {
  const std::vector<std::string> calls = {
      "draftproof_" + name + "(",
      "draftproof_" + name + "_workspace_bytes",
      "check_" + name,
      name + "_cases",
      "operations/" + name + ".hpp",
      name + "_workspace_bytes",
      "device::" + name,
      "executor::" + name,
      "void " + name + "(",
  };
  std::set<std::string> found;
  for (const auto& [file, text] : texts)
    if (std::any_of(calls.begin(), calls.end(), [&](const std::string& call) { return holds_name(text, call); }))
      found.insert(file);
  return found;
}

TEST_CASE("draftproof.h declares the calls of the table and no others", "[operation_table]") {
  const std::string header = in_one_line(text_of("gpu/draftproof.h"));
  std::size_t declared = 0;
  std::vector<Operation> operations = kOperations;
  operations.insert(operations.end(), kReferenceOperations.begin(), kReferenceOperations.end());
  for (const Operation& one : operations) {
    INFO(one.name);
    const std::string call = "draftproof_" + one.name;
    CHECK(holds(header, "DRAFTPROOF_API int " + call + "(const " + one.arguments +
                            "* arguments, const draftproof_settings* settings);"));
    const std::string measure =
        "DRAFTPROOF_API int64_t " + call + "_workspace_bytes(const " + one.arguments + "* arguments);";
    CHECK(holds(header, measure) == one.has_workspace);
    CHECK(holds(header, "} " + one.arguments + ";"));
    declared += one.has_workspace ? 2 : 1;
  }
  const std::regex any_call("DRAFTPROOF_API (int|int64_t) draftproof_\\w+\\(const draftproof_\\w+_arguments\\*");
  const auto all = std::sregex_iterator(header.begin(), header.end(), any_call);
  CHECK(static_cast<std::size_t>(std::distance(all, std::sregex_iterator())) == declared);
}

TEST_CASE("gpu/README.md lists exactly the nine files that a kernel needs", "[operation_table]") {
  const std::string readme = text_of("gpu/README.md");
  const std::vector<std::string> listed = listed_files(readme);
  CHECK(listed == std::vector<std::string>{"operation_table.hpp", "draftproof.h", "argument_checks.cpp",
                                           "kernels/NAME.cuh", "operations/NAME.hpp", "reference_executor/NAME.cpp",
                                           "regress/NAME_cases.cpp", "golden/digests.txt", "README.md"});
  const std::string checks = text_of("gpu/argument_checks.cpp");
  const std::string digests = text_of("gpu/golden/digests.txt");
  const std::map<std::string, std::string> texts = texts_of_kernels();
  const std::regex kernel("`([a-z_]+\\.cuh)`");
  for (const Operation& one : kOperations) {
    INFO(one.name);
    // Checks the entries in files shared by all kernels; table and header are compared above.
    CHECK(holds(checks, "void check_" + one.name + "("));
    CHECK(holds(digests, " " + one.name + "/"));
    const std::vector<std::string> rows = rows_named(readme, one.name);
    REQUIRE_FALSE(rows.empty());
    // Kernels have the names of what they do, which may serve several operations; the row tells them.
    for (auto at = std::sregex_iterator(rows[0].begin(), rows[0].end(), kernel); at != std::sregex_iterator(); ++at)
      CHECK(fs::exists(kRoot / "gpu/kernels" / (*at)[1].str()));
    CHECK(std::regex_search(rows[0], kernel));
    // Its own files, and nobody else who would have to know it. Twins that are one piece of code share a file.
    std::set<std::string> files = naming_files(texts, one.name);
    CHECK(std::erase_if(files, [](const std::string& file) { return file.starts_with("gpu/reference_executor/"); }) ==
          1);
    std::erase_if(files, [](const std::string& file) {  // kernels that others write, whose calls only share a name
      return file.starts_with("gpu/skeleton/") || file.starts_with("gpu/regress/library_");
    });
    CHECK(files == std::set<std::string>{"gpu/draftproof.h", "gpu/argument_checks.cpp",
                                         "gpu/operations/" + one.name + ".hpp",
                                         "gpu/regress/" + one.name + "_cases.cpp"});
  }
}

TEST_CASE("operations and twins that no line of the table names do not exist", "[operation_table]") {
  std::set<std::string> names;
  for (const Operation& one : kOperations) names.insert(one.name);
  for (const auto& entry : fs::directory_iterator(kRoot / "gpu/regress")) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with("_cases.cpp") || file == "verify_shared_cases.cpp" || file.starts_with("far_")) continue;
    INFO(file);
    CHECK(names.count(file.substr(0, file.size() - std::string("_cases.cpp").size())) == 1);
  }
}

}  // namespace
