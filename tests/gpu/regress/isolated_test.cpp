// Work in a child process: its answers, its crashes, its hangs.
#include "gpu/regress/isolated.hpp"

#include <unistd.h>
#include <chrono>
#include <csignal>

#include "tests/support/test.hpp"

namespace {

using draftproof::regress::IsolatedResult;
using draftproof::regress::run_isolated;

struct Outcome {
  std::map<std::size_t, std::string> answers;
  std::map<std::size_t, std::string> lost;
};

Outcome outcome_of(std::size_t count, double seconds_max, const std::function<IsolatedResult(std::size_t)>& item) {
  Outcome found;
  run_isolated(
      count, seconds_max, item, [&](std::size_t i, const std::string& text) { found.answers[i] = text; },
      [&](std::size_t i, const std::string& why) { found.lost[i] = why; });
  return found;
}

}  // namespace

TEST_CASE("items answer from one child process in their order, also with texts longer than a pipe holds") {
  const auto item = [calls = 0](std::size_t i) mutable -> IsolatedResult {
    ++calls;
    return {std::to_string(getpid()) + " " + std::to_string(calls) + std::string(i * 100'000, 'x'), false};
  };
  const Outcome found = outcome_of(3, 20.0, item);
  REQUIRE(found.answers.size() == 3);
  CHECK(found.lost.empty());
  const std::string child = found.answers.at(0).substr(0, found.answers.at(0).find(' '));
  CHECK(child != std::to_string(getpid()));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(found.answers.at(i) == child + " " + std::to_string(i + 1) + std::string(i * 100'000, 'x'));
}

TEST_CASE("an item that crashes, ends the process or throws is lost with its reason, and the others are not") {
  const auto item = [](std::size_t i) -> IsolatedResult {
    if (i == 1) raise(SIGKILL);
    if (i == 2) _exit(0);
    if (i == 4) throw std::runtime_error("an error of the test, which is meant");
    return {"answer " + std::to_string(i), false};
  };
  const Outcome found = outcome_of(6, 20.0, item);
  CHECK(found.answers == std::map<std::size_t, std::string>{{0, "answer 0"}, {3, "answer 3"}, {5, "answer 5"}});
  CHECK(found.lost == std::map<std::size_t, std::string>{{1, "it was ended by signal 9 (Killed)"},
                                                         {2, "it ended the process with exit code 0"},
                                                         {4, "it ended the process with exit code 3"}});
}

TEST_CASE("an item that hangs is ended after its time, and the next one begins at once") {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome found = outcome_of(3, 0.5, [](std::size_t i) -> IsolatedResult {
    if (i == 1) sleep(600);
    return {"answer", false};
  });
  CHECK(found.answers.size() == 2);
  CHECK(found.lost == std::map<std::size_t, std::string>{{1, "it did not end within 0.5 s"}});
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("after an item that may have damaged the process the next one gets another") {
  const Outcome found = outcome_of(3, 20.0, [](std::size_t i) -> IsolatedResult {
    return {std::to_string(getpid()), i == 1};
  });
  REQUIRE(found.answers.size() == 3);
  CHECK(found.lost.empty());
  CHECK(found.answers.at(0) == found.answers.at(1));
  CHECK(found.answers.at(1) != found.answers.at(2));
}

TEST_CASE("an item that writes to every open file, without end or before it is done, or closes all, alters no result") {
  const auto write_to_all = [](int times) {
    const std::string noise(4096, '\x01');  // as a length it would be of 2^56 bytes
    for (int round = 0; times < 0 || round < times; ++round)
      for (int file = 3; file < 64; ++file)
        if (write(file, noise.data(), noise.size()) < 0) continue;
  };
  const auto begin = std::chrono::steady_clock::now();
  const Outcome found = outcome_of(6, 2.0, [&](std::size_t i) -> IsolatedResult {
    if (i == 1) write_to_all(1);
    if (i == 2) write_to_all(-1);
    if (i == 4)
      for (int file = 3; file < 64; ++file) close(file);
    return {"answer " + std::to_string(i), false};
  });
  CHECK(found.answers ==
        std::map<std::size_t, std::string>{{0, "answer 0"}, {3, "answer 3"}, {4, "answer 4"}, {5, "answer 5"}});
  const std::string foreign = "it wrote into a file descriptor that it had not opened";
  CHECK(found.lost == std::map<std::size_t, std::string>{{1, foreign}, {2, foreign}});
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("a child of an item that stays behind with our files keeps nobody waiting") {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome found = outcome_of(2, 20.0, [](std::size_t i) -> IsolatedResult {
    if (i == 0) {
      if (fork() == 0) {
        sleep(5);
        _exit(0);
      }
      _exit(7);
    }
    return {"answer", false};
  });
  CHECK(found.lost == std::map<std::size_t, std::string>{{0, "it ended the process with exit code 7"}});
  CHECK(found.answers.size() == 1);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(4));
}
