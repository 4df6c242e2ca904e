#include "sim/acceptance/replay.hpp"

#include "sim/acceptance/rates.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr const char* kLines =
    "{\"id\": \"a\", \"prompt_token_ids\": [5, 6], \"generated_token_ids\": [1, 2, 3, 4, 5, 6], "
    "\"acc_eagle\": {\"acc_len\": [1, 3, 2, 1, 4, 3]}, \"acc_ngram\": {\"acc_len\": [1, 1, 1, 1, 1, 1]}}\r\n"
    "\n"
    "{\"id\": 7, \"acc_eagle\": {\"acc_len\": [1, 2]}, \"acc_ngram\": {\"acc_len\": [1, 21]}}\n";

}  // namespace

TEST_CASE("a recording is read with its tokens and the drafter that is asked for") {
  const AcceptanceRecording eagle = parse_recording(kLines, "test");
  CHECK(eagle.drafter == "eagle");
  REQUIRE(eagle.requests.size() == 2);
  CHECK(eagle.requests[0].prompt == std::vector<Token>{5, 6});
  CHECK(eagle.requests[0].accepted == std::vector<std::uint8_t>{0, 2, 1, 0, 3, 2});
  CHECK(eagle.requests[1].id == "7");
  CHECK(parse_recording(kLines, "test", "ngram").requests[1].accepted == std::vector<std::uint8_t>{0, 20});
}

TEST_CASE("a replay accepts what was recorded at the place, up to the draft, and nothing behind the end") {
  const Replay model(parse_recording(kLines, "test"));
  AcceptanceState first = model.begin(0);
  CHECK(model.accepted(first, {1, 9}, 5, 5) == 2);
  CHECK(model.accepted(first, {4, 9}, 5, 5) == 3);
  CHECK(model.accepted(first, {4, 9}, 2, 2) == 2);
  CHECK(model.accepted(first, {6, 9}, 5, 5) == 0);
  AcceptanceState third = model.begin(2);  // the first one again
  CHECK(model.accepted(third, {1, 9}, 5, 5) == 2);
  AcceptanceState second = model.begin(1);
  CHECK(model.accepted(second, {1, 9}, 5, 5) == 1);
  const Replay delayed(parse_recording(kLines, "test"), 1);
  CHECK(delayed.accepted(first, {2, 9}, 5, 5) == 2);
}

TEST_CASE("the survival of a replay is counted over places, and in a run over steps") {
  const Replay model(parse_recording(kLines, "test"));
  // Accepted: 0 2 1 0 3 2 and 0 1.
  CHECK(model.survival(2, 2) == std::vector<double>{5.0 / 8, 3.0 / 8});
  // Steps with two drafts: places 1 (2 accepted), 4 (2 of 3) and, of the other request, 1 (1).
  CHECK(model.survival_in_run(2, 2) == std::vector<double>{1.0, 2.0 / 3});
  // With one: places 1, 3, 4, and 1.
  CHECK(model.survival_in_run(1, 1) == std::vector<double>{3.0 / 4});
}

TEST_CASE("a malformed recording is refused with its line") {
  const auto message = [](const std::string& text, const std::string& drafter = "") {
    return error_of(ErrorKind::input, [&] { parse_recording(text, "r.jsonl", drafter); });
  };
  CHECK(message("{\"acc_eagle\": {\"acc_len\": [1]}}\n[1]\n") ==
        "r.jsonl, line 2: is not a JSON object; expected one request");
  CHECK(message("{\"acc_eagle\": {\"acc_len\": [1, 0]}}\n") ==
        "r.jsonl, line 1: acc_len has 0; expected whole numbers from 1 (nothing accepted) to 256");
  CHECK(message("{\"id\": 1}") ==
        "r.jsonl, line 1: has no key acc_...; expected the acceptances of a drafter, as acc_eagle");
  CHECK(message("{\"acc_eagle\": {\"acc_len\": [1]}}", "ngram") ==
        "r.jsonl, line 1: has no key acc_ngram; expected the acceptances of that drafter");
  CHECK(message("\n\n") == "r.jsonl: has no request; expected one JSON object a line");
}
