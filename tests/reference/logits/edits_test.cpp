// Edits against rows computed by hand; every expected value below is exact in f32.
#include "reference/logits/edits.hpp"

#include "reference/logits/history.hpp"
#include "tests/support/test.hpp"

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

TEST_CASE(
    "the repetition penalty acts on prompt and output, then frequency counts and presence falls once on the output") {
  struct Case {
    float repetition, frequency, presence;
    std::vector<Token> prompt, output;
    std::vector<float> logits, expected;
  };
  const std::vector<Case> cases = {
      // Positive logits are divided, negative ones multiplied.
      {2.0f,
       0.0f,
       0.0f,
       {0, 1},
       {2, 2},
       {4.0f, -4.0f, 3.0f, 4.0f, -4.0f, 0.0f},
       {2.0f, -8.0f, 1.5f, 4.0f, -4.0f, 0.0f}},
      {1.0f, 0.5f, 0.0f, {0, 0, 1}, {1, 2, 2, 2}, {1.0f, 1.0f, 1.0f, 1.0f}, {1.0f, 0.5f, -0.5f, 1.0f}},
      {1.0f, -0.5f, 0.0f, {0, 0, 1}, {1, 2, 2, 2}, {1.0f, 1.0f, 1.0f, 1.0f}, {1.0f, 1.5f, 2.5f, 1.0f}},
      {1.0f, 0.0f, 0.25f, {0, 0, 1}, {1, 2, 2, 2}, {1.0f, 1.0f, 1.0f, 1.0f}, {1.0f, 0.75f, 0.75f, 1.0f}},
      // 3 / 2 - 2 - 0.5 = -1. Had the subtractions come first, 0.5 / 2 = 0.25.
      {2.0f, 1.0f, 0.5f, {}, {0, 0}, {3.0f, 3.0f}, {-1.0f, 3.0f}},
  };
  for (const Case& c : cases) {
    RowParameters p;
    p.repetition_penalty = c.repetition;
    p.frequency_penalty = c.frequency;
    p.presence_penalty = c.presence;
    const History history(c.prompt, c.output, static_cast<std::int64_t>(c.logits.size()));
    CHECK(penalised(p, history, c.logits) == c.expected);
  }
}

TEST_CASE("penalties that are off leave the row alone") {
  const std::vector<float> row{1.0f, -0.0f, kMinusInfinity};
  const std::vector<float> found = penalised({}, history_of({0}, {1, 2}, 3), row);
  CHECK(found == row);
  CHECK(std::signbit(found[1]));
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
