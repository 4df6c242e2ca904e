// Bad words against the definition: a token is banned when writing it would complete a banned sequence.
#include "reference/logits/bad_words.hpp"

#include "tests/support/test.hpp"

namespace {

using Tokens = std::vector<Token>;

// Writes every token once and looks whether the text then ends with a banned sequence.
Tokens banned_by_definition(const std::vector<Tokens>& sequences, const Tokens& history, std::size_t vocab_size) {
  Tokens banned;
  for (Token token = 0; token < static_cast<Token>(vocab_size); ++token) {
    Tokens text = history;
    text.push_back(token);
    for (const Tokens& sequence : sequences) {
      if (sequence.size() <= text.size() && std::equal(sequence.rbegin(), sequence.rend(), text.rbegin())) {
        banned.push_back(token);
        break;
      }
    }
  }
  return banned;
}

}  // namespace

TEST_CASE("bad words by hand ban the last token exactly after the tokens before it") {
  const BadWords bad_words({{7}, {1, 2}, {3, 1, 2}, {1, 4}, {5, 5, 5}}, 8);
  CHECK(bad_words.banned_next(Tokens{}) == Tokens{7});
  CHECK(bad_words.banned_next(Tokens{1}) == Tokens{2, 4, 7});
  CHECK(bad_words.banned_next(Tokens{3, 1}) == Tokens{2, 4, 7});
  CHECK(bad_words.banned_next(Tokens{1, 3}) == Tokens{7});
  CHECK(bad_words.banned_next(Tokens{5}) == Tokens{7});
  CHECK(bad_words.banned_next(Tokens{5, 5}) == Tokens{5, 7});
  CHECK(BadWords({}, 8).banned_next(Tokens{1, 2}).empty());
}

TEST_CASE("bad words ban what the definition bans on random histories and sequences") {
  TestRandom random(20250711);
  std::size_t banned_some = 0;
  std::size_t banned_none = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const std::int64_t vocab_size = 1 + random.below(4);
    std::vector<Tokens> sequences(static_cast<std::size_t>(random.below(4)));
    for (Tokens& sequence : sequences) sequence = random.tokens(1 + random.below(4), vocab_size);
    const Tokens history = random.tokens(random.below(6), vocab_size);
    const BadWords bad_words(sequences, static_cast<std::size_t>(vocab_size));
    const Tokens expected = banned_by_definition(sequences, history, static_cast<std::size_t>(vocab_size));
    expected.empty() ? ++banned_none : ++banned_some;
    REQUIRE(bad_words.banned_next(history) == expected);

    // A draft row sees the committed tokens and the drafts before it, wherever the border between the two lies.
    const auto committed = static_cast<std::size_t>(random.below(std::ssize(history) + 1));
    const std::span<const Token> all(history);
    REQUIRE(bad_words.banned_next(all.first(committed), all.subspan(committed)) == expected);
  }
  CHECK(banned_some > 500);
  CHECK(banned_none > 500);
}

TEST_CASE("bad words refuse ids outside the vocabulary and empty sequences by name") {
  const auto complaint = [](const std::vector<Tokens>& sequences, std::size_t vocab_size) {
    return error_of(ErrorKind::usage, [&] { BadWords(sequences, vocab_size); });
  };
  CHECK(complaint({{1}, {0, 1, 8}}, 8) == "bad_words[1][2]: token id 8 is outside [0, 8)");
  CHECK(complaint({{-1}}, 8) == "bad_words[0][0]: token id -1 is outside [0, 8)");
  CHECK(complaint({{1}, {}}, 8).starts_with("bad_words[1]: an empty sequence"));
  CHECK(complaint({{0}}, 0) == "bad_words[0][0]: token id 0 is outside [0, 0)");
  CHECK_NOTHROW(BadWords({{7}}, 8));
}
