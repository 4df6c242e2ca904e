// Files left behind by a process that ends in the middle of its work: none, or none for long.
#include "base/files/temporary.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include "base/files/atomic_file.hpp"
#include "base/files/signal_cleanup.hpp"
#include "tests/support/test.hpp"

namespace {

// How a child that runs `work` ended, as wait() reports it. The child never returns into the test.
int status_of_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(number, SIG_DFL);  // not Catch2's handlers
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// Leaves what a process that is killed in the middle of its work leaves.
void leave_temporaries(const TemporaryFolder& folder, int signal_number) {
  const int status = status_of_child([&] {
    clean_up_on_signals();
    AtomicFile file(folder.file("result"));
    file.stream() << std::string(100'000, 'x');
    const Temporary run(Temporary::Kind::folder, folder.path(), "a run");
    std::ofstream(run.path() + "/a") << "half";
    std::ofstream(run.path() + "/b") << "half";
    ::raise(signal_number);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == signal_number);
}

}  // namespace

TEST_CASE("A signal that ends the process removes its temporary files and folders first") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    const TemporaryFolder folder;
    leave_temporaries(folder, number);
    CHECK(folder.file_names().empty());
  }
}

TEST_CASE("What a killed process left is removed by the next one that writes there") {
  const TemporaryFolder folder;
  leave_temporaries(folder, SIGKILL);
  REQUIRE(folder.file_names().size() == 2);
  AtomicFile file(folder.file("other"));
  file.stream() << "new";
  file.commit();
  CHECK(folder.file_names() == std::vector<std::string>{"other"});
}

TEST_CASE("The temporaries of running processes, and files that only look like ours, stay") {
  const TemporaryFolder folder;
  const std::array others = {".draftproof-1-2.tmp.txt", ".draftproof-1.tmp",  ".draftproof--1.tmp",
                             ".draftproof-a-1.tmp",     "draftproof-1-1.tmp", "result.1.0.tmp"};
  for (const std::string name : others) write_whole_file(folder.file(name), "a user's");
  std::filesystem::create_symlink("result.1.0.tmp", folder.file(".draftproof-7-7.tmp"));
  const Temporary mine(Temporary::Kind::file, folder.path(), "mine");
  // The same question asked by another process.
  CHECK(status_of_child([&] { ::_exit(remove_ownerless_temporaries(folder.path())); }) == 0);
  CHECK(std::filesystem::exists(mine.path()));
  CHECK(folder.file_names().size() == others.size() + 2);
  write_whole_file(folder.file(".draftproof-99999999-0.tmp"), "nobody's");
  CHECK(remove_ownerless_temporaries(folder.path()) == 1);
}

TEST_CASE("A signal that the parent made the process ignore stays ignored") {
  const int status = status_of_child([] {
    std::signal(SIGHUP, SIG_IGN);
    clean_up_on_signals();
    ::raise(SIGHUP);
    ::_exit(7);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("Held signals wait until the change is made") {
  const TemporaryFolder folder;
  const int status = status_of_child([&] {
    clean_up_on_signals();
    const SignalsHeld held;
    ::raise(SIGTERM);
    write_whole_file(folder.file("made"), "whole");
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  CHECK(folder.file_names() == std::vector<std::string>{"made"});
}
