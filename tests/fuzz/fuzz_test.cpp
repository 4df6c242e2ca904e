// Damaged files of every reader that draftproof_fuzz has: few here, so that it stays true; many under sanitizers by
// hand.
#include "tests/fuzz/fuzz.hpp"

#include "tests/fuzz/damage.hpp"
#include "tests/fuzz/readers.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

TEST_CASE("readers take the sound inputs of the fuzzer, and take damaged ones or refuse them in an error") {
  const TemporaryFolder folder;
  for (const FuzzedReader& reader : fuzzed_readers(folder.path())) {
    INFO(reader.name);
    for (const std::string& sound : reader.sound) {
      write_whole_file(folder.file(reader.file_name), sound);
      CHECK_NOTHROW(reader.read(folder.file(reader.file_name)));
    }
    const FuzzResult result = fuzz(reader, 0, 150, 1, folder.path());
    CHECK(result.failures == std::vector<std::string>{});
    CHECK(result.taken > 0);
    CHECK(result.refused > 0);
    CHECK(result.taken + result.refused == 150);
  }
}

TEST_CASE("the fuzzer finds exceptions that are no refusals, internal errors, and errors without text") {
  const TemporaryFolder folder;
  const auto failures = [&](const std::function<void(const std::string&)>& read) {
    const FuzzedReader reader{
        "r", "r.txt", {"a = 1\n", "b = 2\n"}, [&](const std::string& path) { read(read_whole_file(path)); }};
    return fuzz(reader, 0, 300, 1, folder.path()).failures;
  };
  CHECK(failures([](const std::string&) {}).empty());
  CHECK(failures([](const std::string&) { throw input_error("r.txt", "is refused"); }).empty());
  CHECK(failures([](const std::string& text) {
          if (text.find("9223372036854775807") != text.npos) throw std::out_of_range("far");
        })
            .front()
            .ends_with("not an error of the project: 'far'"));
  CHECK(failures([](const std::string&) { throw Error(ErrorKind::internal, "r", "x"); }).front() ==
        "input 0: internal error: 'r: x'");
  CHECK(failures([](const std::string&) { throw input_error("", ""); }).size() == 10);
}

TEST_CASE("a damaged input depends on its number and the seed alone, and numbers give different ones") {
  const std::vector<std::string> sound{"[a]\nb = 1\nc = \"text\"\n", "[a]\nb = 2.5\n"};
  std::set<std::string> damaged;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::string text = Damage(seed).of(sound);
    CHECK(text == Damage(seed).of(sound));
    damaged.insert(text);
  }
  CHECK(damaged.size() > 400);
}

}  // namespace
}  // namespace draftproof::testing
