// The table of docs/verifiers.md is the registry, and the files that docs/adding_a_verifier.md lists are there.
#include <charconv>
#include <regex>

#include "reference/step/verifiers.hpp"
#include "tests/support/test.hpp"

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

}  // namespace

TEST_CASE("the table of docs/verifiers.md is the registry, row by row", "[release]") {
  const std::string page = read_whole_file(DRAFTPROOF_SOURCE_DIR "/docs/verifiers.md");
  const std::size_t rule = page.find("\n|---");
  REQUIRE(rule != std::string::npos);
  const std::size_t begin = page.find('\n', rule + 1) + 1;
  const std::string found = page.substr(begin, page.find("\n\n", begin) + 1 - begin);
  CHECK(found == table_of_registry());
}

TEST_CASE("the files that docs/adding_a_verifier.md lists are there", "[release]") {
  const std::string page = read_whole_file(DRAFTPROOF_SOURCE_DIR "/docs/adding_a_verifier.md");
  const std::regex row("\\n\\| `([^`]+)` \\|");
  int files = 0;
  for (auto at = std::sregex_iterator(page.begin(), page.end(), row); at != std::sregex_iterator(); ++at) {
    const std::string file = (*at)[1];
    if (file.find("NAME") != std::string::npos || file.find('*') != std::string::npos) continue;
    INFO(file);
    CHECK(std::filesystem::exists(DRAFTPROOF_SOURCE_DIR "/" + file));
    ++files;
  }
  CHECK(files >= 6);
}
