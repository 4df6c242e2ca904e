// Edits against rows computed by hand; every expected value below is exact in f32.
#include "reference/logits/edits.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "reference/logits/history.hpp"
#include "tests/support/test_random.hpp"

using namespace draftproof;

namespace {

History history_of(const std::vector<Token>& prompt, const std::vector<Token>& output, std::int64_t vocab_size) {
  return {prompt, output, vocab_size};
}

std::vector<float> masked(const RowConstraints& constraints, const History& history, std::vector<float> logits) {
  mask_tokens(constraints, history, logits);
  return logits;
}

std::vector<float> penalised(const RowParameters& parameters, const History& history, std::vector<float> logits) {
  penalise(parameters, history, logits);
  return logits;
}

}  // namespace

TEST_CASE("the repetition penalty divides positive and multiplies negative logits of prompt and output tokens") {
  RowParameters p;
  p.repetition_penalty = 2.0f;
  const History history = history_of({0, 1}, {2, 2}, 6);
  const std::vector<float> found = penalised(p, history, {4.0f, -4.0f, 3.0f, 4.0f, -4.0f, 0.0f});
  CHECK(found == std::vector<float>{2.0f, -8.0f, 1.5f, 4.0f, -4.0f, 0.0f});
}

TEST_CASE("the frequency penalty counts output tokens only and the presence penalty falls once") {
  const History history = history_of({0, 0, 1}, {1, 2, 2, 2}, 4);
  RowParameters frequency;
  frequency.frequency_penalty = 0.5f;
  CHECK(penalised(frequency, history, {1.0f, 1.0f, 1.0f, 1.0f}) == std::vector<float>{1.0f, 0.5f, -0.5f, 1.0f});
  RowParameters presence;
  presence.presence_penalty = 0.25f;
  CHECK(penalised(presence, history, {1.0f, 1.0f, 1.0f, 1.0f}) == std::vector<float>{1.0f, 0.75f, 0.75f, 1.0f});
  frequency.frequency_penalty = -0.5f;
  CHECK(penalised(frequency, history, {1.0f, 1.0f, 1.0f, 1.0f}) == std::vector<float>{1.0f, 1.5f, 2.5f, 1.0f});
}

TEST_CASE("penalties run in the order repetition then frequency then presence") {
  RowParameters p;
  p.repetition_penalty = 2.0f;
  p.frequency_penalty = 1.0f;
  p.presence_penalty = 0.5f;
  // 3 / 2 - 2 - 0.5 = -1. Had the subtractions come first, 0.5 / 2 = 0.25.
  CHECK(penalised(p, history_of({}, {0, 0}, 2), {3.0f, 3.0f}) == std::vector<float>{-1.0f, 3.0f});
}

TEST_CASE("penalties that are off leave the row alone") {
  const std::vector<float> row{1.0f, -0.0f, kMinusInfinity};
  const std::vector<float> found = penalised({}, history_of({0}, {1, 2}, 3), row);
  CHECK(found == row);
  CHECK(std::signbit(found[1]));
}

TEST_CASE("the bias is added to its tokens and may name one twice") {
  const std::vector<LogitBias> bias{{1, 0.5f}, {2, -1.0f}, {1, 0.25f}};
  RowConstraints c;
  c.logit_bias = bias;
  std::vector<float> row{1.0f, 1.0f, 1.0f};
  add_bias(c, row);
  CHECK(row == std::vector<float>{1.0f, 1.75f, 0.0f});
}

TEST_CASE("bit j of word w of the mask allows token 32 w + j") {
  std::vector<std::uint32_t> mask(3, 0);
  for (const Token t : {0, 31, 32, 40, 69}) mask[static_cast<std::size_t>(t / 32)] |= 1u << (t % 32);
  mask[2] |= 1u << 6;  // token 70, beyond the vocabulary
  RowConstraints c;
  c.allowed_mask = mask;
  const std::vector<float> found = masked(c, {}, std::vector<float>(70, 1.0f));
  for (Token t = 0; t < 70; ++t) {
    const bool allowed = t == 0 || t == 31 || t == 32 || t == 40 || t == 69;
    CHECK(found[static_cast<std::size_t>(t)] == (allowed ? 1.0f : kMinusInfinity));
  }
}

TEST_CASE("allowed ids and the mask restrict together") {
  const std::vector<std::uint32_t> mask{0b0110};
  const std::vector<Token> ids{2, 3, 2};
  RowConstraints c;
  c.allowed_mask = mask;
  c.allowed_ids = ids;
  CHECK(masked(c, {}, {1.0f, 1.0f, 1.0f, 1.0f}) ==
        std::vector<float>{kMinusInfinity, kMinusInfinity, 1.0f, kMinusInfinity});
}

TEST_CASE("stop ids are banned while fewer tokens than min_tokens have been written") {
  const std::vector<Token> stop{1, 3};
  RowConstraints c;
  c.stop_ids = stop;
  c.min_tokens = 2;
  const std::vector<float> row{1.0f, 2.0f, 3.0f, 4.0f};
  const std::vector<float> banned{1.0f, kMinusInfinity, 3.0f, kMinusInfinity};
  CHECK(masked(c, history_of({0, 0, 0}, {}, 4), row) == banned);  // the prompt does not count
  CHECK(masked(c, history_of({}, {0}, 4), row) == banned);
  CHECK(masked(c, history_of({}, {0, 1}, 4), row) == row);
}

TEST_CASE("the end of a bad word is banned where its beginning has just been written") {
  const BadWords words({{0, 1, 2}, {3}}, 5);
  RowConstraints c;
  c.bad_words = &words;
  const std::vector<float> row(5, 1.0f);
  CHECK(masked(c, history_of({0}, {1}, 5), row) ==
        std::vector<float>{1.0f, 1.0f, kMinusInfinity, kMinusInfinity, 1.0f});
  CHECK(masked(c, history_of({0}, {1, 4}, 5), row) == std::vector<float>{1.0f, 1.0f, 1.0f, kMinusInfinity, 1.0f});
}

TEST_CASE("a masked token stays masked under every edit") {
  TestRandom random(11);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t vocab_size = 2 + random.below(20);
    std::vector<float> row = awkward_row(random, vocab_size);
    const std::vector<float> before = row;
    RowParameters p;
    p.repetition_penalty = random.chance(0.5) ? 3.0f : 0x1p-140f;
    p.frequency_penalty = random.normal() * (random.chance(0.5) ? 1.0f : 3e37f);
    p.presence_penalty = random.normal() * (random.chance(0.5) ? 1.0f : 3e37f);
    std::vector<LogitBias> bias;
    for (Token t = 0; t < vocab_size; ++t) bias.push_back({t, random.normal() * 1e37f});
    RowConstraints c;
    c.logit_bias = bias;
    const History history(random.tokens(5, vocab_size), random.tokens(30, vocab_size), vocab_size);
    mask_tokens(c, history, row);
    add_bias(c, row);
    penalise(p, history, row);
    CAPTURE(i);
    for (std::size_t t = 0; t < row.size(); ++t)
      if (before[t] == kMinusInfinity) REQUIRE(row[t] == kMinusInfinity);
  }
}

TEST_CASE("a penalty that overflows does not turn a masked token into a NaN") {
  RowParameters p;
  p.frequency_penalty = -3e38f;  // times 2 it is -infinity
  CHECK(penalised(p, history_of({}, {0, 0}, 1), {kMinusInfinity}) == std::vector<float>{kMinusInfinity});
}

TEST_CASE("a row needs its history exactly when an edit reads it") {
  const BadWords words({{0}}, 2);
  RowParameters p;
  RowConstraints c;
  CHECK_FALSE(needs_history(p, c));
  p.filters.top_k = 3;
  p.temperature = 0.5f;
  CHECK_FALSE(needs_history(p, c));
  p.presence_penalty = 0.5f;
  CHECK(needs_history(p, c));
  p = {};
  p.repetition_penalty = 1.5f;
  CHECK(needs_history(p, c));
  p = {};
  p.frequency_penalty = -0.5f;
  CHECK(needs_history(p, c));
  p = {};
  c.min_tokens = 1;
  CHECK(needs_history(p, c));
  c = {};
  c.bad_words = &words;
  CHECK(needs_history(p, c));
}
