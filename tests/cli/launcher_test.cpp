// ./draftproof, as far as it can be tried without building: a copy of it in a folder of its own, with a PATH on which
// exactly the named tools are found.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/io/temporary_folder.hpp"
#include "tests/support/run_program.hpp"

namespace {

using draftproof::testing::ProgramResult;
using draftproof::testing::read_whole_file;
using draftproof::testing::run_command;
using draftproof::testing::TemporaryFolder;
using draftproof::testing::write_whole_file;
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
    fs::copy_file(kLauncher, folder_.file("draftproof"));
    for (const char* tool : {"bash", "cat", "dirname", "find", "flock", "grep", "mkdir", "mv", "readlink", "rm", "sed",
                             "tail", "touch", "env"}) {
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
    return run_command(command, {"PATH=" + file("bin")});
  }

  std::string calls() const { return fs::exists(file("calls")) ? read_whole_file(file("calls")) : ""; }
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  TemporaryFolder folder_;
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
  Checkout checkout;
  checkout.add_working_tools();
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
  Checkout checkout;
  checkout.add_working_tools();
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

TEST_CASE("the launcher builds once and then only runs the program") {
  Checkout checkout;
  checkout.add_working_tools();
  const ProgramResult first = checkout.run({"verify", "two words", "", "--json"});
  CHECK(first.exit_code == 7);
  // The arguments arrive as they were given, in the caller's folder.
  CHECK(first.out == "<verify><two words><><--json>" + fs::current_path().string() + "\n");
  CHECK(first.err.empty());
  CHECK(checkout.calls() == "cmake\nninja\n");
  CHECK(checkout.run({"verify"}).exit_code == 7);
  CHECK(checkout.calls() == "cmake\nninja\n");
}

TEST_CASE("the launcher builds again when a source changes or goes away or the presets change") {
  Checkout checkout;
  checkout.add_working_tools();
  checkout.run({"machine"});
  // File times come from a coarse clock, so a change is dated clearly later than the build.
  const auto later = [&](const std::string& name, int seconds) {
    fs::last_write_time(checkout.file(name), fs::file_time_type::clock::now() + std::chrono::seconds(seconds));
  };
  const auto date_build = [&](int seconds) { later("build/release/.built-draftproof_machine", seconds); };
  later("cli/main.cpp", 10);
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\nninja\nninja\n");
  date_build(20);
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\nninja\nninja\n");
  fs::remove(checkout.file("cli/main.cpp"));
  later("cli", 30);
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\n");
  date_build(40);
  later("CMakePresets.json", 50);
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\ncmake\nninja\n");
}

TEST_CASE("a test that changes or goes away makes the launcher build the tests again, and no program") {
  Checkout checkout;
  checkout.add_working_tools();
  fs::create_directories(checkout.file("tests/verify"));
  write_whole_file(checkout.file("tests/verify/chain_test.cpp"), "// a test");
  const auto later = [&](const std::string& name, int seconds) {
    fs::last_write_time(checkout.file(name), fs::file_time_type::clock::now() + std::chrono::seconds(seconds));
  };
  CHECK(checkout.run({"build"}).exit_code == 0);
  CHECK(checkout.run({"machine"}).exit_code == 7);
  CHECK(checkout.calls() == "cmake\nninja\nninja\n");  // all, then the program
  later("tests/verify/chain_test.cpp", 10);
  CHECK(checkout.run({"machine"}).exit_code == 7);
  CHECK(checkout.calls() == "cmake\nninja\nninja\n");
  CHECK(checkout.run({"build"}).exit_code == 0);
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\n");
  later("build/release/.built-all", 20);
  CHECK(checkout.run({"build"}).exit_code == 0);
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\n");
  fs::remove(checkout.file("tests/verify/chain_test.cpp"));
  later("tests/verify", 30);
  CHECK(checkout.run({"build"}).exit_code == 0);
  CHECK(checkout.calls() == "cmake\nninja\nninja\nninja\nninja\n");
}

TEST_CASE("the launcher builds the verb that is asked for and the program that starts it") {
  Checkout checkout;
  checkout.add_working_tools();
  checkout.add_tool("bin/ninja", "echo \"$*\" >> " + checkout.file("calls"));
  const std::string ninja = "-C " + checkout.file("build/release") + " draftproof_program";
  checkout.run({"verify"});
  CHECK(checkout.calls() == "cmake\n" + ninja + " draftproof_verify\n");
  checkout.run({"machine"});
  CHECK(checkout.calls() == "cmake\n" + ninja + " draftproof_verify\n" + ninja + " draftproof_machine\n");
  // What is no verb is for the program to refuse, a path least of all a verb.
  checkout.run({"../cli/verify"});
  CHECK(checkout.calls().ends_with(ninja + "\n"));
}

TEST_CASE("the launcher says in one line that it cannot write where it would build") {
  Checkout checkout;
  checkout.add_working_tools();
  fs::remove_all(checkout.file("build"));
  write_whole_file(checkout.file("build"), "a file in the way, since permissions mean nothing to root");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"verify"}, {"test"}, {"build"}, {"lint"}, {"--help"}}) {
    const ProgramResult result = checkout.run(arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.find("draftproof: error: " + checkout.file("build")) == 0);
    CHECK(result.err.find("cannot be written") != std::string::npos);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  }
}

TEST_CASE("the launcher shows the output of a build that fails and does not run the program") {
  Checkout checkout;
  checkout.add_working_tools();
  checkout.add_tool("bin/ninja", "echo 'main.cpp:1: no good'; exit 1");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ProgramResult result = checkout.run({"machine"});
    CHECK(result.exit_code == 3);
    CHECK(result.out.empty());
    CHECK(result.err.find("main.cpp:1: no good") != std::string::npos);
    CHECK(result.err.find("draftproof: error: the build failed") != std::string::npos);
  }
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

}  // namespace
