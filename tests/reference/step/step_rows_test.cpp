// Every draft row is processed with the history that plain decoding would have had there, bit for bit.
#include "reference/step/step_rows.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "reference/logits/pipeline.hpp"
#include "reference/step/verify_step.hpp"
#include "tests/support/random_request.hpp"

using namespace draftproof;

namespace {

std::vector<float> probabilities(const Distribution& distribution) {
  std::vector<float> p(static_cast<std::size_t>(distribution.vocab_size()));
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = distribution.probability(static_cast<Token>(i));
  return p;
}

struct PlainRow {
  std::vector<float> probabilities;
  std::vector<float> logprobs;
  std::vector<float> raw_logprobs;
  float kept_mass;
  std::int64_t kept_count;
};

// The row as a decoder without speculation processes it: a history built anew from the tokens written so far, of which
// the first `drafts` drafts are the last.
PlainRow plain_row(const VerifyRequest& request, std::uint32_t row, std::uint32_t drafts) {
  std::vector<Token> output(request.output_tokens.begin(), request.output_tokens.end());
  output.insert(output.end(), request.draft.tokens.begin(), request.draft.tokens.begin() + drafts);
  const History history(request.prompt_tokens, output, request.target.vocab_size);
  RowInput input;
  input.logits = request.target.row(row);
  if (request.unconditional) input.unconditional = request.unconditional->row(row);
  input.parameters = request.parameters;
  input.constraints = request.constraints;
  const auto words = static_cast<std::size_t>((request.target.vocab_size + 31) / 32);
  if (!request.allowed_masks.empty())
    input.constraints.allowed_mask = request.allowed_masks.subspan(row * words, words);
  input.history = &history;
  Pipeline pipeline;
  Distribution distribution;
  pipeline.run(input, distribution);
  PlainRow out{
      probabilities(distribution), {}, {}, static_cast<float>(distribution.kept_mass()), distribution.kept_count()};
  for (Token t = 0; t < distribution.vocab_size(); ++t) {
    out.logprobs.push_back(distribution.log_probability(t));
    out.raw_logprobs.push_back(pipeline.raw_log_probability(t));
  }
  return out;
}

}  // namespace

TEST_CASE("every draft row has the distribution of plain decoding with the history it would have had") {
  TestRandom random(201);
  StepWorkspace workspace;
  int rows = 0;
  int rows_that_a_frozen_history_gets_wrong = 0;
  for (int i = 0; i < 1500; ++i) {
    const OwnedRequest o = random_request(random, 1 + random.below(40), 5);
    validate(o.request, Verifier::chain, i);
    StepRows step(o.request, {}, workspace);
    CAPTURE(i);
    for (std::uint32_t row = 0; row < o.request.rows(); ++row) {
      const std::vector<float> found = probabilities(step.target(row));
      CAPTURE(row);
      REQUIRE(found == plain_row(o.request, row, row).probabilities);
      // The planted fault: drafts do not enter the history (vllm #18902, sglang #33643).
      rows += row > 0 ? 1 : 0;
      if (row > 0 && found != plain_row(o.request, row, 0).probabilities) ++rows_that_a_frozen_history_gets_wrong;
    }
  }
  CHECK(rows > 2000);
  CHECK(rows_that_a_frozen_history_gets_wrong > rows / 3);
}

TEST_CASE("rows that are skipped leave no gap in the history") {
  TestRandom random(202);
  StepWorkspace workspace;
  for (int i = 0; i < 300; ++i) {
    const OwnedRequest o = random_request(random, 1 + random.below(20), 5);
    StepRows rows(o.request, {}, workspace);
    for (std::uint32_t row = static_cast<std::uint32_t>(random.below(3)); row < o.request.rows(); row += 2)
      REQUIRE(probabilities(rows.target(row)) == plain_row(o.request, row, row).probabilities);
  }
}

TEST_CASE("what a step reports of its rows is what plain decoding reports") {
  // llama.cpp #27972, vllm #17876: log-probabilities of speculative tokens came from another row.
  TestRandom random(203);
  StepWorkspace workspace;
  int accepted = 0;
  for (int i = 0; i < 1000; ++i) {
    const OwnedRequest o = random_request(random, 1 + random.below(20), 4);
    VerifyOptions options;
    options.all_rows = i % 2 == 0;
    options.sampler = i % 3 == 0 ? Sampler::race : Sampler::inverse;
    PhiloxSource source;
    const Emission emission = verify_step(o.request, options, source, workspace);
    CAPTURE(i);
    REQUIRE(emission.tokens.size() == emission.num_accepted + 1);
    REQUIRE(emission.logprobs.size() == emission.tokens.size());
    REQUIRE(emission.raw_logprobs.size() == emission.tokens.size());
    const std::size_t rows = options.all_rows ? o.draft.size() + 1 : emission.tokens.size();
    REQUIRE(emission.kept_mass.size() == rows);
    REQUIRE(emission.kept_count.size() == rows);
    accepted += static_cast<int>(emission.num_accepted);
    for (std::uint32_t row = 0; row < rows; ++row) {
      const PlainRow plain = plain_row(o.request, row, row);
      REQUIRE(emission.kept_mass[row] == plain.kept_mass);
      REQUIRE(emission.kept_count[row] == plain.kept_count);
      if (row >= emission.tokens.size()) continue;
      const auto token = static_cast<std::size_t>(emission.tokens[row]);
      REQUIRE(emission.logprobs[row] == plain.logprobs[token]);
      REQUIRE(emission.raw_logprobs[row] == plain.raw_logprobs[token]);
      if (row < emission.num_accepted) REQUIRE(emission.tokens[row] == o.draft[row]);
    }
  }
  CHECK(accepted > 200);
}

TEST_CASE("rejected drafts leave no trace in the next step") {
  TestRandom random(204);
  StepWorkspace used;
  int rejected = 0;
  for (int i = 0; i < 500; ++i) {
    const std::int64_t vocab_size = 2 + random.below(20);
    const OwnedRequest first = random_request(random, vocab_size, 4);
    PhiloxSource source;
    VerifyOptions options;
    options.all_rows = true;  // the copy advances along every draft, rejected ones included
    const Emission emission = verify_step(first.request, options, source, used);
    rejected += emission.num_accepted < first.draft.size() ? 1 : 0;

    OwnedRequest second = random_request(random, vocab_size, 4);
    second.prompt = first.prompt;
    second.output = first.output;
    second.output.insert(second.output.end(), emission.tokens.begin(), emission.tokens.end());
    second.request.prompt_tokens = second.prompt;
    second.request.output_tokens = second.output;
    StepRows rows(second.request, {}, used);
    CAPTURE(i);
    for (std::uint32_t row = 0; row <= second.draft.size(); ++row)
      REQUIRE(probabilities(rows.target(row)) == plain_row(second.request, row, row).probabilities);
  }
  CHECK(rejected > 100);
}

TEST_CASE("greedy decoding with speculation writes the text of greedy decoding without") {
  // A model whose logits are a function of the last two tokens; penalties, bad words and min_tokens are on, so that
  // the rows depend on the whole history. Drafts are right now and then.
  constexpr std::int64_t kVocabSize = 12;
  constexpr std::int64_t kLength = 60;
  TestRandom tables(205);
  std::vector<std::vector<float>> table(kVocabSize * kVocabSize);
  for (auto& row : table) row = normal_row(tables, kVocabSize);
  const auto logits_after = [&](const std::vector<Token>& text) -> const std::vector<float>& {
    return table[static_cast<std::size_t>(text[text.size() - 2] * kVocabSize + text.back())];
  };
  const BadWords words({{3, 4}, {1, 2, 3}, {5}}, kVocabSize);
  const std::vector<Token> stop{7, 8};
  const std::vector<Token> prompt{0, 1};
  RowParameters parameters;
  parameters.temperature = 0.0f;
  parameters.repetition_penalty = 1.3f;
  parameters.frequency_penalty = 0.2f;
  parameters.presence_penalty = 0.1f;
  RowConstraints constraints;
  constraints.bad_words = &words;
  constraints.min_tokens = 20;
  constraints.stop_ids = stop;

  PhiloxSource source;
  StepWorkspace workspace;
  const auto decode = [&](std::int64_t draft_len, TestRandom& drafter) {
    std::vector<Token> output;
    std::uint32_t accepted = 0;
    for (std::uint32_t step = 0; output.size() < kLength; ++step) {
      std::vector<Token> text = prompt;
      text.insert(text.end(), output.begin(), output.end());
      const std::vector<Token> draft = drafter.tokens(draft_len, 10);
      std::vector<float> rows;
      for (std::int64_t i = 0; i <= draft_len; ++i) {
        const std::vector<float>& row = logits_after(text);
        rows.insert(rows.end(), row.begin(), row.end());
        if (i < draft_len) text.push_back(draft[static_cast<std::size_t>(i)]);
      }
      VerifyRequest request;
      request.draft = DraftTree::chain(draft);
      request.target = matrix_of(rows, draft_len + 1, kVocabSize);
      request.parameters = parameters;
      request.constraints = constraints;
      request.prompt_tokens = prompt;
      request.output_tokens = output;
      request.step = step;
      validate(request, Verifier::chain, 0);
      const Emission emission = verify_step(request, {}, source, workspace);
      accepted += emission.num_accepted;
      output.insert(output.end(), emission.tokens.begin(), emission.tokens.end());
    }
    output.resize(kLength);
    return std::pair(output, accepted);
  };
  TestRandom drafter(206);
  const auto [plain, none] = decode(0, drafter);
  CHECK(none == 0);
  std::uint32_t accepted_in_all = 0;
  for (int run = 0; run < 20; ++run) {
    const auto [speculative, accepted] = decode(1 + run % 4, drafter);
    accepted_in_all += accepted;
    CAPTURE(run, accepted);
    REQUIRE(speculative == plain);
  }
  CHECK(accepted_in_all > 50);
}
