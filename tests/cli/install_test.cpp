// `cmake --install`: the tree works where it was moved to, and serves programs in C by pkg-config and by CMake
// (docs/install.md).
#include "cli/verbs.hpp"
#include "gpu/draftproof.h"
#include "tests/support/test.hpp"

namespace {

namespace fs = std::filesystem;

// Installed into one place, then moved to another.
class InstalledTree {
 public:
  InstalledTree() {
    const std::string build = fs::path(DRAFTPROOF_PROGRAM).parent_path().string();
    const std::string first = folder_.file("first");
    const ProgramResult installed = run_command({"cmake", "--install", build, "--prefix", first, "--strip"});
    INFO(installed.out << installed.err);
    REQUIRE(installed.exit_code == 0);
    fs::create_directories(folder_.file("moved"));
    fs::rename(first, file(""));
  }
  std::string file(const std::string& name) const {
    return folder_.file("moved/here") + (name.empty() ? "" : "/" + name);
  }
  ProgramResult run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), file("bin/draftproof"));
    return run_command(arguments);
  }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

// One for all tests: it takes longer than they do.
const InstalledTree& installed_tree() {
  static const InstalledTree tree;
  return tree;
}

bool has(const std::string& program) {
  if (run_command({"sh", "-c", "command -v " + program}).exit_code == 0) return true;
  WARN("SKIPPED: " << program << " is not installed");
  return false;
}

// The block of docs/install.md in this language.
std::string block(const std::string& language) {
  const std::string text = read_whole_file(DRAFTPROOF_SOURCE_DIR "/docs/install.md");
  const std::string start = "```" + language + "\n";
  const std::size_t begin = text.find(start) + start.size();
  return text.substr(begin, text.find("```", begin) - begin);
}

nlohmann::json document_of(const ProgramResult& result) {
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  return nlohmann::json::parse(result.out, nullptr, false);
}

TEST_CASE("an installed tree works where it was moved to, with its own data and no path of the build") {
  if (kSanitized) return;  // a program in C could not load the library; nobody installs it
  const InstalledTree& tree = installed_tree();
  const std::string build = fs::path(DRAFTPROOF_PROGRAM).parent_path().string();
  const ProgramResult paths =
      run_command({"grep", "-rlF", "-e", build, "-e", DRAFTPROOF_SOURCE_DIR "/sim/", "-e",
                   DRAFTPROOF_SOURCE_DIR "/gpu/", "-e", tree.folder().file("first"), tree.file("")});
  CHECK(paths.exit_code == 1);  // grep found none
  CHECK(paths.out == "");
  CHECK(document_of(tree.run({"presets", "--json"})).is_object());
  const nlohmann::json predicted =
      document_of(tree.run({"predict", "--model", "Llama-3.1-8B", "--gpu", "H100", "--drafter", "EAGLE-3", "--json"}));
  CHECK(predicted.at("best").size() > 2);
  const std::string scenario = tree.file("share/draftproof/experiments/scenarios/chat.toml");
  CHECK(document_of(tree.run({"sim", scenario, "--replications", "1", "--set", "workload.requests=150", "--json"}))
            .at("policies")
            .size() > 2);
  CHECK(tree.run({"regress", "--help"}).out.find(tree.file("share/draftproof/golden/digests.txt")) !=
        std::string::npos);
  CHECK(document_of(tree.run({"experiments", "three_accepted", "--out", tree.folder().file("out"), "--json"}))
            .is_object());

  // Those presets are the ones that are read.
  fs::rename(tree.file("share/draftproof/presets"), tree.folder().file("presets"));
  const ProgramResult without = tree.run({"presets"});
  fs::rename(tree.folder().file("presets"), tree.file("share/draftproof/presets"));
  CHECK(without.exit_code == 2);
  CHECK(without.err.find(tree.file("share/draftproof/presets")) != std::string::npos);
}

TEST_CASE("every verb that is installed has a manual page with the options of its help") {
  if (kSanitized) return;  // a program in C could not load the library; nobody installs it
  const InstalledTree& tree = installed_tree();
  CHECK(read_whole_file(tree.file("share/man/man1/draftproof.1")).find("draftproof\\-predict (1)") !=
        std::string::npos);
  int pages = 0;
  for (const Verb& verb : kVerbs) {
    const std::string path = tree.file(std::string("share/man/man1/draftproof-") + verb.name + ".1");
    INFO(path);
    const ProgramResult help = tree.run({verb.name, "--help"});
    CHECK(fs::exists(path) == (help.exit_code == 0));
    if (help.exit_code != 0) continue;  // the dashboard, where it cannot be built
    ++pages;
    const std::string page = read_whole_file(path);
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t at = line.starts_with("  -") ? line.find("--") : std::string::npos;
      if (at == std::string::npos) continue;
      std::string written;
      for (const char c : line.substr(at, line.find_first_of(" =[", at) - at))
        written += c == '-' ? "\\-" : std::string(1, c);
      INFO(written);
      CHECK(page.find(written) != std::string::npos);
    }
    CHECK(page.find("draftproof " + std::string(verb.name)) != std::string::npos);
  }
  CHECK(pages > 20);
  if (!has("groff")) return;
  const ProgramResult printed =
      run_command({"sh", "-c", "groff -man -ww -Tascii \"$0\"/*.1 2>&1 >/dev/null", tree.file("share/man/man1")});
  CHECK(printed.out == "");
}

TEST_CASE(
    "a program in C builds against the installed library, by pkg-config and by CMake, and needs no other library") {
  if (kSanitized) return;  // a program in C could not load the library; nobody installs it
  const InstalledTree& tree = installed_tree();
  const std::string example = tree.folder().file("main.c");
  write_whole_file(example, block("c"));
  const std::string library = tree.file("lib/libdraftproof.so");
  const std::string needed = run_command({"readelf", "-d", library}).out;
  CHECK(needed.find("[libdraftproof.so.4]") != std::string::npos);
  for (const char* const absent : {"boost", "hwy", "libz", "crypto"}) {
    INFO(absent);
    CHECK(needed.find(absent) == std::string::npos);
  }
  const auto check_runs = [&](const std::string& program) {
    const ProgramResult ran = run_command({program});
    INFO(ran.err);
    CHECK(ran.exit_code == 0);
    CHECK(ran.out.starts_with("tokens "));
    CHECK(ran.out.ends_with(" 2, ABI " + std::to_string(DRAFTPROOF_ABI_VERSION) + "\n"));  // greedy: the largest logit
  };
  if (has("pkg-config")) {
    const std::string program = tree.folder().file("by-pkg-config");
    const ProgramResult built = run_command({"sh", "-c",
                                             "cc -std=c11 -Wall -Wextra -Werror \"$0\" $(pkg-config --cflags --libs "
                                             "draftproof) \"-Wl,-rpath,$2\" -o \"$1\"",
                                             example, program, tree.file("lib")},
                                            {"PKG_CONFIG_PATH=" + tree.file("lib/pkgconfig")});
    INFO(built.err);
    CHECK(built.exit_code == 0);
    check_runs(program);
  }
  write_whole_file(tree.folder().file("CMakeLists.txt"), block("cmake"));
  const std::string build = tree.folder().file("by-cmake");
  const ProgramResult configured = run_command(
      {"cmake", "-G", "Ninja", "-S", tree.folder().path(), "-B", build, "-DCMAKE_PREFIX_PATH=" + tree.file("")});
  INFO(configured.out << configured.err);
  CHECK(configured.exit_code == 0);
  const ProgramResult built = run_command({"cmake", "--build", build});
  INFO(built.out << built.err);
  CHECK(built.exit_code == 0);
  check_runs(build + "/example");
}

}  // namespace
