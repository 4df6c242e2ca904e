#include "exactness/bugs/processor/replay.hpp"

#include <algorithm>
#include <bit>

#include "exactness/statistics/battery.hpp"
#include "reference/step/verify_step.hpp"
#include "reference/verify/coupled.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kOutputLen = 40;
constexpr Token kPrompts = 8;
constexpr std::uint32_t kDraftLenMax = 4;

// Random logits after the last two tokens.
void small_model(std::span<const Token> context, std::span<float> logits) {
  std::uint32_t key = 0;
  for (const Token token : context.last(std::min<std::size_t>(2, context.size())))
    key = key * kReplayVocabSize + static_cast<std::uint32_t>(token) + 1;
  for (std::uint32_t i = 0; i < logits.size(); ++i) {
    const RandomBlock block = PhiloxSource().block(0, {i, key, 0, Purpose::simulator});
    logits[i] = static_cast<float>(uniform_53(high_half(block)) * 4.0);
  }
}

// [K + 1, V]: the rows after the context and after each draft of a chain.
std::vector<float> rows_of(std::vector<Token> context, std::span<const Token> draft) {
  std::vector<float> rows((draft.size() + 1) * kReplayVocabSize);
  for (std::size_t row = 0; row <= draft.size(); ++row) {
    if (row > 0) context.push_back(draft[row - 1]);
    small_model(context, std::span(rows).subspan(row * kReplayVocabSize, kReplayVocabSize));
  }
  return rows;
}

struct Decoded {
  std::vector<Token> tokens;
  std::vector<float> logprobs;
};

// One token at a time: the pipeline's row with the history of all tokens before it, raced over the position's noise.
Decoded decode_plainly(const ReplayRequest& request, std::span<const Token> prompt, std::uint64_t seed) {
  Pipeline pipeline;
  Distribution distribution;
  PhiloxSource source;
  AddressedChance chance(source, seed, 0);
  History history(prompt, {}, kReplayVocabSize);
  Decoded decoded;
  std::vector<float> logits(static_cast<std::size_t>(kReplayVocabSize));
  for (std::uint32_t position = 0; position < kOutputLen; ++position) {
    small_model(history.tokens(), logits);
    RowInput input;
    input.logits = {DType::f32, logits.data(), kReplayVocabSize};
    input.parameters = request.parameters;
    input.constraints = request.constraints;
    input.history = &history;
    std::vector<std::uint32_t> mask;
    if (request.grammar) input.constraints.allowed_mask = mask = request.grammar(history.tokens());
    pipeline.run(input, distribution);
    const Token token = chance.coupled_race(DistributionMasses(distribution), position);
    history.append(token);
    decoded.tokens.push_back(token);
    decoded.logprobs.push_back(distribution.log_probability(token));
  }
  return decoded;
}

// The tokens that plain decoding emits next, one in four of them replaced.
std::vector<Token> draft_after(const Decoded& plain, std::size_t position, std::uint64_t seed) {
  const auto block = [&](std::size_t i) {
    return PhiloxSource().block(seed, {static_cast<std::uint32_t>(i), 0, 0, Purpose::choice});
  };
  const std::size_t draft_len =
      std::min<std::size_t>(1 + block(position).word[2] % kDraftLenMax, kOutputLen - position - 1);
  std::vector<Token> draft;
  for (std::size_t i = position; i < position + draft_len; ++i)
    draft.push_back(block(i).word[0] % 4 != 0 ? plain.tokens[i]
                                              : static_cast<Token>(block(i).word[1] % kReplayVocabSize));
  return draft;
}

// The masks of a step's rows, one behind the other.
std::vector<std::uint32_t> masks_of(const Grammar& grammar, std::span<const Token> tokens,
                                    std::span<const Token> draft) {
  std::vector<Token> context(tokens.begin(), tokens.end());
  std::vector<std::uint32_t> masks = grammar(context);
  for (const Token token : draft) {
    context.push_back(token);
    const std::vector<std::uint32_t> mask = grammar(context);
    masks.insert(masks.end(), mask.begin(), mask.end());
  }
  return masks;
}

// Decodes with drafts as long as the output is that of plain decoding; says where it stops being so.
void replay(const ReplayRequest& request, std::span<const Token> prompt, std::uint64_t seed, const StepVerifier& verify,
            Finding& finding) {
  const Decoded plain = decode_plainly(request, prompt, seed);
  std::vector<Token> tokens(prompt.begin(), prompt.end());  // of the prompt and of the output
  while (tokens.size() - prompt.size() < kOutputLen) {
    const std::size_t output_len = tokens.size() - prompt.size();
    const std::vector<Token> draft = draft_after(plain, output_len, seed);
    const std::vector<float> rows = rows_of(tokens, draft);
    VerifyRequest verify_request;
    verify_request.draft = DraftTree::chain(draft);
    verify_request.target = {DType::f32, rows.data(), static_cast<std::int64_t>(draft.size()) + 1, kReplayVocabSize,
                             kReplayVocabSize};
    verify_request.parameters = request.parameters;
    verify_request.constraints = request.constraints;
    verify_request.prompt_tokens = prompt;
    verify_request.output_tokens = std::span(tokens).subspan(prompt.size());
    verify_request.seed = seed;
    std::vector<std::uint32_t> masks;
    if (request.grammar) verify_request.allowed_masks = masks = masks_of(request.grammar, tokens, draft);
    const Emission emission = verify(verify_request);
    for (std::size_t i = 0; i < emission.tokens.size(); ++i) {
      const std::size_t position = tokens.size() - prompt.size();
      ++finding.cases;
      const std::string where = "token " + std::to_string(position) + " of the output, place " + std::to_string(i) +
                                " of a step with " + std::to_string(draft.size()) + " drafts, ";
      if (emission.tokens[i] != plain.tokens[position]) {
        finding.caught = true;
        finding.evidence = where + "is " + std::to_string(emission.tokens[i]) + " under speculation and " +
                           std::to_string(plain.tokens[position]) + " in plain decoding";
      } else if (request.logprobs && std::bit_cast<std::uint32_t>(emission.logprobs[i]) !=
                                         std::bit_cast<std::uint32_t>(plain.logprobs[position])) {
        finding.caught = true;
        finding.evidence = where + "has logprob " + short_number(static_cast<double>(emission.logprobs[i])) +
                           " under speculation and " + short_number(static_cast<double>(plain.logprobs[position])) +
                           " in plain decoding";
      }
      if (finding.caught) return;
      tokens.push_back(emission.tokens[i]);
    }
  }
}

}  // namespace

Emission verify_by_coupling(const VerifyRequest& request, std::size_t position) {
  StepWorkspace workspace;
  PhiloxSource source;
  VerifyRequest placed = request;
  placed.position = static_cast<std::uint32_t>(position);
  return verify_step(placed, {.verifier = Verifier::coupled, .raw_logprobs = false}, source, workspace);
}

Finding find_replay_difference(const ReplayRequest& request, const StartVerifier& start) {
  Finding finding{false, 0, "tokens", {}};
  for (Token first = 0; first < kPrompts && !finding.caught; ++first) {
    const std::vector<Token> prompt{first, static_cast<Token>(first + 1), static_cast<Token>(first + 3)};
    replay(request, prompt, derive_seed(0, static_cast<std::uint64_t>(first)), start(), finding);
  }
  return finding;
}

Hunt replay_hunt(ReplayRequest (*request)(), const StartVerifier& faulty_engine) {
  return {Detector::replay, [request, faulty_engine](bool faulty) {
            const StartVerifier sound_engine = [] { return verify_soundly; };
            return find_replay_difference(request(), faulty ? faulty_engine : sound_engine);
          }};
}

}  // namespace draftproof
