// The test program: Catch2's, and the choice of tests by folder.
//
//   draftproof_tests --folder engine/draft [--part 2/3]   the tests of tests/engine/draft, or the second third of them
//                    [--without TAG]                       but those with this tag
//   draftproof_tests "A sentence"                          the test of this name; any other argument is Catch2's
//
// It ends with how many passed, failed and were skipped, and names what was skipped.
#define CATCH_CONFIG_RUNNER
#include <algorithm>
#include <catch2/catch.hpp>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Skip {
  std::string test;
  std::string reason;
};

struct Counts {
  std::size_t run = 0;
  std::vector<Skip> skipped;
  std::vector<std::string> slow;
};

Counts& counts() {
  static Counts instance;
  return instance;
}

constexpr double kSlowSeconds = 3;

// Counts; a test says that it is skipped by WARN("SKIPPED: why").
struct Counter : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  std::string test;
  double seconds = 0;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    ++counts().run;
    test = info.name;
    timer_.start();
  }
  bool assertionEnded(const Catch::AssertionStats& stats) override {
    const Catch::AssertionResult& result = stats.assertionResult;
    const std::string message = result.getResultType() == Catch::ResultWas::Warning ? result.getMessage() : "";
    if (message.rfind("SKIPPED: ", 0) == 0) counts().skipped.push_back({test, message.substr(9)});
    return false;
  }
  void testCaseEnded(const Catch::TestCaseStats&) override {
    if (const double took = timer_.getElapsedSeconds(); took > kSlowSeconds) {
      char text[32];
      std::snprintf(text, sizeof text, "%6.1f s  ", took);
      counts().slow.push_back(text + test);
    }
  }

 private:
  Catch::Timer timer_;
};
CATCH_REGISTER_LISTENER(Counter)

// Does the file of a test lie in tests/<folder>, and not below it?
bool lies_in(std::string_view file, const std::string& folder) {
  const std::string place = "/tests/" + folder + "/";
  const std::size_t at = file.rfind(place);
  return at != std::string_view::npos && file.find('/', at + place.size()) == std::string_view::npos;
}

// A name as Catch2 reads names literally.
std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\' || c == ',' || c == '[') text += '\\';
    text += c;
  }
  return text + "\"";
}

int misuse(const std::string& message) {
  std::fprintf(stderr, "draftproof_tests: error: %s\n", message.c_str());
  return 2;
}

bool read_part(const std::string& text, std::size_t& part, std::size_t& parts) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return false;
  const char* const end = text.data() + text.size();
  return std::from_chars(text.data(), text.data() + slash, part).ptr == text.data() + slash &&
         std::from_chars(text.data() + slash + 1, end, parts).ptr == end && part >= 1 && part <= parts;
}

}  // namespace

int main(int argument_count, char** arguments) {
  std::vector<const char*> rest = {arguments[0]};
  std::string folder;
  std::string unwanted;
  std::size_t part = 1;
  std::size_t parts = 1;
  for (int i = 1; i < argument_count; ++i) {
    const std::string argument = arguments[i];
    const bool has_value = i + 1 < argument_count;
    if (argument == "--folder" && has_value) {
      folder = arguments[++i];
    } else if (argument == "--without" && has_value) {
      unwanted = arguments[++i];
    } else if (argument == "--part" && has_value) {
      if (!read_part(arguments[++i], part, parts))
        return misuse(std::string("--part: '") + arguments[i] + "'; expected 1/3, say");
    } else {
      rest.push_back(arguments[i]);
    }
  }
  Catch::Session session;
  if (const int failure = session.applyCommandLine(static_cast<int>(rest.size()), rest.data())) return failure;
  std::size_t chosen = 0;
  if (!folder.empty()) {
    std::string names;
    std::size_t place = 0;
    for (const Catch::TestCase& test : Catch::getAllTestCasesSorted(session.config())) {
      if (!lies_in(test.lineInfo.file, folder)) continue;
      if (std::find(test.tags.begin(), test.tags.end(), unwanted) != test.tags.end()) continue;
      if (place++ % parts != part - 1) continue;
      names += (chosen++ == 0 ? "" : ",") + quoted(test.name);
    }
    if (chosen == 0) return misuse("--folder: no test lies in tests/" + folder);
    session.configData().testsOrTags = {names};
    session.useConfigData(session.configData());
  }
  const int failed = session.run();
  const Counts& all = counts();
  if (session.configData().listTests || session.configData().listTags || session.configData().listReporters ||
      session.configData().showHelp)
    return failed;
  for (const Skip& skip : all.skipped) std::printf("SKIPPED: %s (%s)\n", skip.test.c_str(), skip.reason.c_str());
  for (const std::string& slow : all.slow) std::printf("%s\n", slow.c_str());
  if (!folder.empty() && all.run != chosen)
    return misuse(std::to_string(all.run) + " tests ran of " + std::to_string(chosen) + " chosen");
  if (all.run == 0) return misuse("no test ran");
  std::printf("%zu tests, %d failed, %zu skipped\n", all.run, failed, all.skipped.size());
  return failed == 0 ? 0 : 1;
}
