#include "reference/exactness/mutants/processor/replay.hpp"

#include <algorithm>
#include <bit>

#include "reference/engine/decode_step.hpp"
#include "reference/model/context_model.hpp"
#include "reference/statistics/battery.hpp"
#include "reference/verify/coupled.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kOutputLen = 40;
constexpr Token kPrompts = 8;
constexpr std::uint32_t kDraftLenMax = 4;

// Random logits after the last two tokens.
class SmallModel final : public ContextModel {
 public:
  std::int64_t vocab_size() const override { return kReplayVocabSize; }
  void logits(std::span<const Token> context, std::span<float> out) override {
    std::uint32_t key = 0;
    for (const Token token : context.last(std::min<std::size_t>(2, context.size())))
      key = key * kReplayVocabSize + static_cast<std::uint32_t>(token) + 1;
    for (std::uint32_t i = 0; i < out.size(); ++i) {
      const RandomBlock block = PhiloxSource().block(0, {i, key, 0, Purpose::simulator});
      out[i] = static_cast<float>(uniform_53(high_half(block)) * 4.0);
    }
  }
};

struct Decoded {
  std::vector<Token> tokens;
  std::vector<float> logprobs;
};

DecodingOptions options_of(const ReplayRequest& request, std::uint64_t seed) {
  DecodingOptions options;
  options.parameters = request.parameters;
  options.constraints = request.constraints;
  options.seed = seed;
  return options;
}

// One token at a time: the pipeline's row with the history of all tokens before it, raced over the position's noise.
Decoded decode_plainly(const ReplayRequest& request, std::span<const Token> prompt, std::uint64_t seed) {
  SmallModel model;
  Pipeline pipeline;
  Distribution distribution;
  PhiloxSource source;
  AddressedChance chance(source, seed, 0);
  History history(prompt, {}, kReplayVocabSize);
  Decoded decoded;
  std::vector<float> logits(static_cast<std::size_t>(kReplayVocabSize));
  for (std::uint32_t position = 0; position < kOutputLen; ++position) {
    model.logits(history.tokens(), logits);
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
  const DecodingOptions options = options_of(request, seed);
  SmallModel model;
  ModelSession session(model);
  Sequence sequence(prompt, std::nullopt);
  SpeculativeStep step;
  while (sequence.output().size() < kOutputLen) {
    step.output_len = sequence.output().size();
    step.draft.tree = DraftTree::chain(draft_after(plain, step.output_len, seed));
    compute_target_rows(session, sequence, step);
    VerifyRequest verify_request = request_of(step, options, kReplayVocabSize, sequence.prompt(), sequence.output());
    std::vector<std::uint32_t> masks;
    if (request.grammar)
      verify_request.allowed_masks = masks = masks_of(request.grammar, sequence.tokens(), step.draft.tree.tokens);
    const Emission emission = verify(verify_request);
    for (std::size_t i = 0; i < emission.tokens.size(); ++i) {
      const std::size_t position = sequence.output().size();
      ++finding.cases;
      const std::string where = "token " + std::to_string(position) + " of the output, place " + std::to_string(i) +
                                " of a step with " + std::to_string(step.draft.tree.tokens.size()) + " drafts, ";
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
      sequence.append(emission.tokens[i]);
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

}  // namespace draftproof
