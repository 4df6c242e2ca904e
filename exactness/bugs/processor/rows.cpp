// Rows of drafts that are processed unlike the row of the bonus token, or read in place of each other.
#include <algorithm>
#include <bit>

#include "exactness/bugs/distribution_sampler.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/processor/replay.hpp"
#include "exactness/statistics/battery.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {
namespace {

// min_p and logit_bias.

constexpr LogitBias kBias{2, 3.0f};

RowParameters with_min_p() {
  RowParameters parameters;
  parameters.filters.min_p = 0.25f;
  return parameters;
}

ReplayRequest request_with_min_p_and_bias() {
  ReplayRequest request;
  request.parameters = with_min_p();
  request.constraints.logit_bias = std::span(&kBias, 1);
  return request;
}

// Drafts are judged by bare rows; only the bonus token comes from a processed one.
Emission verify_with_bare_draft_rows(const VerifyRequest& request) {
  VerifyRequest bare = request;
  bare.parameters.filters.min_p = 0.0f;
  bare.constraints.logit_bias = {};
  Emission emission = verify_soundly(bare);
  if (emission.num_accepted + 1 < request.rows()) return emission;
  std::vector<Token> output(request.output_tokens.begin(), request.output_tokens.end());
  output.insert(output.end(), request.draft.tokens.begin(), request.draft.tokens.end());
  VerifyRequest bonus = request;
  bonus.draft = {};
  bonus.target = request.target.slice(static_cast<std::int64_t>(request.draft.size()), 1);
  bonus.output_tokens = output;
  const Emission last = verify_soundly(bonus);
  emission.tokens.back() = last.tokens.back();
  emission.logprobs.back() = last.logprobs.back();
  return emission;
}

// The grammar.

// Even and odd tokens take turns.
std::vector<std::uint32_t> alternating(std::span<const Token> tokens) {
  constexpr std::uint32_t kEven = 0x55555555u;
  return {tokens.back() % 2 == 0 ? ~kEven : kEven};
}

ReplayRequest request_with_grammar() {
  ReplayRequest request;
  request.grammar = alternating;
  return request;
}

// The loop over a draft that fills the masks ends where the grammar has replaced a draft by a placeholder.
Emission verify_without_masks_from_placeholder(const VerifyRequest& request) {
  static_assert(kReplayVocabSize <= 32, "a mask is one word");
  std::vector<std::uint32_t> masks(request.allowed_masks.begin(), request.allowed_masks.end());
  std::size_t row = 0;
  const std::vector<Token>& draft = request.draft.tokens;
  while (row < draft.size() && (masks[row] >> draft[row] & 1u) != 0) ++row;
  if (row < draft.size()) std::fill(masks.begin() + static_cast<std::ptrdiff_t>(row), masks.end(), ~0u);
  VerifyRequest unmasked = request;
  unmasked.allowed_masks = masks;
  return verify_soundly(unmasked);
}

// Logprobs.

float logprob_at(const VerifyRequest& request, std::size_t row, Token token) {
  const RowView view = request.target.row(static_cast<std::int64_t>(row));
  const std::span<const float> logits(static_cast<const float*>(view.data), static_cast<std::size_t>(view.vocab_size));
  return ProcessedRow(logits, request.parameters).distribution.log_probability(token);
}

// All log-probabilities of a step are read from the row of its last token.
Emission with_logprobs_of_last_row(const VerifyRequest& request, Emission emission) {
  for (std::size_t i = 0; i < emission.tokens.size(); ++i)
    emission.logprobs[i] = logprob_at(request, emission.num_accepted, emission.tokens[i]);
  return emission;
}

Emission verify_with_logprobs_of_last_row(const VerifyRequest& request) {
  return with_logprobs_of_last_row(request, verify_soundly(request));
}

ReplayRequest request_for_logprobs() {
  ReplayRequest request;
  request.logprobs = true;
  return request;
}

// Production's verification of random rows; the logprob of every emitted token against its own row's.
Finding find_wrong_logprob(bool faulty) {
  constexpr std::int64_t kReplacedVocabSize = 8;
  const std::vector<Token> draft{0, 0, 0};
  Finding finding{false, 0, "rows", {}};
  StepWorkspace workspace;
  PhiloxSource source;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Logits logits;
    for (std::uint32_t i = 0; i < kReplacedVocabSize * (draft.size() + 1); ++i) {
      const RandomBlock block = source.block(seed, {i, 0, 0, Purpose::simulator});
      logits.push_back(static_cast<float>(uniform_53(high_half(block))) + (i % kReplacedVocabSize == 0 ? 3.0f : 0.0f));
    }
    VerifyRequest request;
    request.draft = DraftTree::chain(draft);
    request.target = {DType::f32, logits.data(), static_cast<std::int64_t>(draft.size()) + 1, kReplacedVocabSize,
                      kReplacedVocabSize};
    request.seed = seed;
    Emission emission = verify_step(request, {}, source, workspace);
    if (faulty) emission = with_logprobs_of_last_row(request, emission);
    for (std::size_t i = 0; i < emission.tokens.size(); ++i) {
      ++finding.cases;
      const float expected = logprob_at(request, i, emission.tokens[i]);
      if (std::bit_cast<std::uint32_t>(emission.logprobs[i]) == std::bit_cast<std::uint32_t>(expected)) continue;
      finding.caught = true;
      finding.evidence = "emitted token " + std::to_string(i) + " has logprob " +
                         short_number(static_cast<double>(emission.logprobs[i])) + ", and its row says " +
                         short_number(static_cast<double>(expected));
      return finding;
    }
  }
  return finding;
}

}  // namespace

std::vector<Bug> draft_row_bugs() {
  return {
      {.id = "B67",
       .source = "vllm #42744",
       .fault = "min_p and logit_bias are applied to the bonus row alone, and drafts are judged by bare rows",
       .hunts = {replay_hunt(request_with_min_p_and_bias, [] { return verify_with_bare_draft_rows; })}},
      {.id = "B73",
       .source = "vllm #44006, #44297, #54437",
       .fault = "from a draft that the grammar forbids on, the rows of a step go without their masks",
       .hunts = {replay_hunt(request_with_grammar, [] { return verify_without_masks_from_placeholder; })}},
      {.id = "B74",
       .source = "llama.cpp #27972, vllm #17876",
       .fault = "the logprobs of a step's tokens are all read from the row of its last token",
       .hunts = {replay_hunt(request_for_logprobs, [] { return verify_with_logprobs_of_last_row; }),
                 {Detector::differential, find_wrong_logprob}}},
  };
}

}  // namespace draftproof
