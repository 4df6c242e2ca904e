#include "reference/logits/history.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a history counts what was written and remembers what was asked") {
  TestRandom random(31);
  for (int i = 0; i < 50; ++i) {
    const std::int64_t vocab_size = 1 + random.below(10);
    const std::vector<Token> prompt = random.tokens(random.below(8), vocab_size);
    const std::vector<Token> output = random.tokens(random.below(8), vocab_size);
    History history(prompt, output, vocab_size);
    history.append(0);

    std::map<Token, History::Counts> expected;
    for (const Token t : prompt) expected[t].in_prompt = true;
    for (const Token t : output) ++expected[t].in_output;
    ++expected[0].in_output;
    std::vector<Token> tokens = prompt;
    tokens.insert(tokens.end(), output.begin(), output.end());
    tokens.push_back(0);

    REQUIRE(std::vector<Token>(history.tokens().begin(), history.tokens().end()) == tokens);
    REQUIRE(history.output_len() == static_cast<std::int64_t>(output.size()) + 1);
    REQUIRE(history.counts().size() == expected.size());
    for (const auto& [token, counts] : expected) {
      REQUIRE(history.counts().at(token).in_prompt == counts.in_prompt);
      REQUIRE(history.counts().at(token).in_output == counts.in_output);
    }
  }
}

TEST_CASE("a copy of a history advances without its original") {
  const std::vector<Token> prompt{0, 1};
  const std::vector<Token> output{2};
  const History committed(prompt, output, 4);
  History copy = committed;
  copy.append(2);
  copy.append(3);
  CHECK(committed.tokens().size() == 3);
  CHECK(committed.output_len() == 1);
  CHECK(committed.counts().at(2).in_output == 1);
  CHECK(committed.counts().count(3) == 0);
  CHECK(copy.counts().at(2).in_output == 2);
}

TEST_CASE("a history refuses ids outside the vocabulary and names their place") {
  const std::vector<Token> bad{0, 4};
  const std::vector<Token> negative{-1};
  CHECK_THAT(error_of(ErrorKind::input, [&] { History(bad, {}, 4); }),
             Contains("prompt") && Contains("position 1") && Contains("[0, 4)"));
  CHECK_THAT(error_of(ErrorKind::input, [&] { History({}, bad, 4); }), Contains("output") && Contains("position 1"));
  CHECK_THAT(error_of(ErrorKind::input, [&] { History({}, negative, 4); }), Contains("-1"));
  History history({}, {}, 4);
  CHECK_THAT(error_of(ErrorKind::input, [&] { history.append(4); }), Contains("position 0"));
  CHECK(history.tokens().empty());  // the refused token left no trace
}
