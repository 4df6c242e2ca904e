// The folders of reference/ include what the map in README.md lets them, and nothing below includes what stands above.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = DRAFTPROOF_SOURCE_DIR;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

using Map = std::map<std::string, std::set<std::string>>;  // folder of reference/ -> those that it may use

std::set<std::string> words_of(const std::string& list) {
  std::set<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) {
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    if (word != "nothing") words.insert(word);
  }
  return words;
}

// What the rows of the map name, and what those may use.
Map allowed_by(const std::string& readme) {
  Map map;
  const std::regex row("\\| `reference/([a-z_]+)` \\|.*\\| ([a-z_, ]+) \\|");
  std::istringstream lines(readme);
  std::smatch found;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, found, row)) map[found[1]] = words_of(found[2]);
  for (std::size_t round = 0; round < map.size(); ++round)
    for (auto& [folder, uses] : map)
      for (const std::string& used : std::set<std::string>(uses)) uses.insert(map[used].begin(), map[used].end());
  return map;
}

std::vector<std::string> includes_of(const std::string& source) {
  const std::regex include("#include \"([^\"]+)\"");
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(source.begin(), source.end(), include); at != std::sregex_iterator(); ++at)
    found.push_back((*at)[1]);
  return found;
}

// Why a file of a folder of reference/ must not include this; empty where it may.
std::string objection(const Map& map, const std::string& folder, const std::string& include) {
  if (!include.starts_with("reference/")) return "it is not in reference/";
  const std::string inside = include.substr(std::string("reference/").size());
  const std::size_t slash = inside.find('/');
  if (slash == std::string::npos) return "";  // a header of everybody's
  const std::string used = inside.substr(0, slash);
  return used == folder || map.at(folder).contains(used) ? "" : "the map does not let " + folder + " use " + used;
}

template <class Visit>
void visit_sources(const fs::path& folder, Visit visit) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".hpp" && extension != ".cpp" && extension != ".cuh" && extension != ".h" && extension != ".cu")
      continue;
    for (const std::string& include : includes_of(text_of(entry.path())))
      visit(fs::relative(entry.path(), kRoot).generic_string(), include);
  }
}

}  // namespace

TEST_CASE("the map of README.md names every folder of reference and has no cycle") {
  const Map map = allowed_by(text_of(kRoot / "README.md"));
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(kRoot / "reference"))
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
  std::set<std::string> named;
  for (const auto& [folder, uses] : map) {
    INFO(folder);
    named.insert(folder);
    CHECK_FALSE(uses.contains(folder));
    for (const std::string& used : uses) CHECK(folders.contains(used));
  }
  CHECK(named == folders);
}

TEST_CASE("no file of reference includes what the map does not let it use") {
  const Map map = allowed_by(text_of(kRoot / "README.md"));
  int includes = 0;
  for (const auto& [folder, uses] : map) {
    visit_sources(kRoot / "reference" / folder,
                  [&, name = folder](const std::string& file, const std::string& include) {
                    INFO(file << " includes " << include << ": " << objection(map, name, include));
                    CHECK(objection(map, name, include).empty());
                    ++includes;
                  });
  }
  CHECK(includes > 500);
  // The checker can fail.
  CHECK_FALSE(objection(map, "numerics", "reference/random/philox.hpp").empty());
  CHECK_FALSE(objection(map, "verify", "reference/verify/tree_shape.hpp").empty());
  CHECK_FALSE(objection(map, "io", "exactness/audit/audit.hpp").empty());
  CHECK_FALSE(objection(map, "engine", "cli/shared/options.hpp").empty());
}

TEST_CASE("the simulator includes itself and the reference, and nothing of reference includes it") {
  visit_sources(kRoot / "sim", [](const std::string& file, const std::string& include) {
    INFO(file << " includes " << include);
    CHECK((include.starts_with("sim/") || include.starts_with("reference/")));
  });
}

TEST_CASE("kernels include the leaves alone, and gpu does not include cli") {
  visit_sources(kRoot / "gpu", [](const std::string& file, const std::string& include) {
    INFO(file << " includes " << include);
    const bool is_standalone = file.starts_with("gpu/standalone/");  // a program
    CHECK((is_standalone || !include.starts_with("cli/")));
    if (!file.starts_with("gpu/kernels/") && !file.starts_with("gpu/operations/")) return;
    const bool is_leaf = include.starts_with("reference/numerics/") || include.starts_with("reference/random/") ||
                         include == "base/token.hpp" || include == "reference/verify/convention.hpp";
    CHECK((include.starts_with("gpu/") || is_leaf));
  });
}

TEST_CASE("what the dashboard shows is computed without a window, and panels know nothing of theirs") {
  visit_sources(kRoot / "viz", [](const std::string& file, const std::string& include) {
    INFO(file << " includes " << include);
    CHECK_FALSE(include.starts_with("cli/"));
    if (file.starts_with("studies/")) CHECK((include.starts_with("studies/") || !include.starts_with("viz/")));
    if (file.starts_with("viz/panels/")) CHECK_FALSE(include.starts_with("viz/app/"));
  });
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "studies")) {
    INFO(entry.path());
    CHECK(text_of(entry.path()).find("#include <im") == std::string::npos);  // imgui.h, implot.h
  }
}

// Two definitions of one class name in one namespace are undefined behaviour once both are linked into one program, and
// no linker says so: the members of vectors of them are shared.
TEST_CASE("no two headers define a type of one name in namespace draftproof") {
  const std::regex type("^(?:class|struct|enum class) ([A-Za-z0-9_]+)( final)?( :[^;]*)? \\{.*");
  std::map<std::string, std::set<std::string>> headers_of;
  for (const char* const folder : {"reference", "sim", "viz", "cli", "gpu"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".hpp" && extension != ".cuh") continue;
      std::istringstream lines(text_of(entry.path()));
      bool inside = false;
      std::smatch found;
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("namespace ")) inside = line == "namespace draftproof {";
        if (inside && std::regex_match(line, found, type))
          headers_of[found[1]].insert(fs::relative(entry.path(), kRoot).generic_string());
      }
    }
  }
  CHECK(headers_of.size() > 300);
  for (const auto& [name, headers] : headers_of) {
    std::string list;
    for (const std::string& header : headers) list += "\n  " + header;
    INFO(name << " is defined in" << list);
    CHECK(headers.size() == 1);
  }
}
