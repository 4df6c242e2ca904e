// Bad words against the definition: a token is banned when writing it would complete a banned sequence.
#include "reference/logits/bad_words.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

using draftproof::BadWords;
using draftproof::Token;
using Tokens = std::vector<Token>;

namespace {

Tokens random_tokens(std::mt19937& random, std::size_t size, std::size_t vocab_size) {
  Tokens tokens(size);
  for (Token& token : tokens) token = static_cast<Token>(random() % vocab_size);
  return tokens;
}

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

std::string error_of(std::vector<Tokens> sequences, std::size_t vocab_size) {
  try {
    BadWords(std::move(sequences), vocab_size);
  } catch (const draftproof::Error& error) {
    CHECK(error.kind() == draftproof::ErrorKind::usage);
    return error.what();
  }
  return "no error";
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
  std::mt19937 random(20250711);
  std::size_t banned_some = 0;
  std::size_t banned_none = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const std::size_t vocab_size = 1 + random() % 4;
    std::vector<Tokens> sequences(random() % 4);
    for (Tokens& sequence : sequences) sequence = random_tokens(random, 1 + random() % 4, vocab_size);
    const Tokens history = random_tokens(random, random() % 6, vocab_size);
    const BadWords bad_words(sequences, vocab_size);
    const Tokens expected = banned_by_definition(sequences, history, vocab_size);
    expected.empty() ? ++banned_none : ++banned_some;
    REQUIRE(bad_words.banned_next(history) == expected);

    // A draft row sees the committed tokens and the drafts before it, wherever the border between the two lies.
    const std::size_t committed = random() % (history.size() + 1);
    const std::span<const Token> all(history);
    REQUIRE(bad_words.banned_next(all.first(committed), all.subspan(committed)) == expected);
  }
  CHECK(banned_some > 500);
  CHECK(banned_none > 500);
}

TEST_CASE("bad words refuse ids outside the vocabulary and empty sequences by name") {
  CHECK(error_of({{1}, {0, 1, 8}}, 8) == "bad_words[1][2]: token id 8 is outside [0, 8)");
  CHECK(error_of({{-1}}, 8) == "bad_words[0][0]: token id -1 is outside [0, 8)");
  CHECK(error_of({{1}, {}}, 8).starts_with("bad_words[1]: an empty sequence"));
  CHECK(error_of({{0}}, 0) == "bad_words[0][0]: token id 0 is outside [0, 0)");
  CHECK(error_of({{7}}, 8) == "no error");
}
