// The grammar's state from step to step and from request to request, as engines lose it: production's rows with the
// masks of another state.
#include <algorithm>

#include "exactness/bugs/grammar/family.hpp"
#include "exactness/bugs/processor/replay.hpp"

namespace draftproof {
namespace {

const ToyGrammar& replayed_grammar() {
  static const ToyGrammar grammar = toy_grammar(kReplayVocabSize);
  return grammar;
}

// The prompt is no part of the string.
std::vector<std::uint32_t> mask_behind(std::span<const Token> tokens) {
  return replayed_grammar().mask(replayed_grammar().after(tokens.subspan(kReplayPromptLen)));
}

ReplayRequest request_under_grammar() {
  ReplayRequest request;
  request.grammar = mask_behind;
  return request;
}

Emission verify_with_masks(const VerifyRequest& request, std::span<const std::uint32_t> masks) {
  VerifyRequest masked = request;
  masked.allowed_masks = masks;
  return verify_soundly(masked);
}

// The masks of a step's rows from a state on. Drafts that the grammar forbids do not move it.
std::vector<std::uint32_t> masks_from(std::int32_t& state, std::span<const Token> draft) {
  const ToyGrammar& grammar = replayed_grammar();
  std::vector<std::uint32_t> masks = grammar.mask(state);
  for (const Token token : draft) {
    if (grammar.allows(state, token)) state = grammar.after(state, token);
    const std::vector<std::uint32_t> mask = grammar.mask(state);
    masks.insert(masks.end(), mask.begin(), mask.end());
  }
  return masks;
}

// The matcher takes every draft while masks are made and stays where the last has led it; the token that follows the
// accepted ones is taken from there, if it is legal there.
StepVerifier verify_without_rollback() {
  return [state = std::int32_t{0}](const VerifyRequest& request) mutable {
    const std::vector<std::uint32_t> masks = masks_from(state, request.draft.tokens);
    Emission emission = verify_with_masks(request, masks);
    const Token last = emission.tokens.back();
    if (replayed_grammar().allows(state, last)) state = replayed_grammar().after(state, last);
    return emission;
  };
}

// Two requests of a batch. The bitmask has as many rows of the first as drafts were scheduled for it; one draft was
// trimmed since, so that the second reads one row too early: the first's.
StepVerifier verify_with_masks_of_neighbour() {
  return [](const VerifyRequest& request) {
    const std::vector<std::uint32_t> neighbour = replayed_grammar().mask(1);
    std::vector<std::uint32_t> masks(request.allowed_masks.begin(), request.allowed_masks.end());
    std::copy_backward(masks.begin(), masks.end() - std::ssize(neighbour), masks.end());
    std::ranges::copy(neighbour, masks.begin());
    return verify_with_masks(request, masks);
  };
}

}  // namespace

std::vector<Bug> grammar_state_bugs() {
  return {{.id = "B93",
           .source = "TensorRT-LLM #19296; xgrammar #161",
           .fault = "the grammar's state is not taken back over the drafts that were rejected",
           .hunts = {replay_hunt(request_under_grammar, verify_without_rollback)}},
          {.id = "B94",
           .source = "vllm #49694; vllm-gaudi #1200",
           .fault = "masks are read at offsets of another batch: a request's first rows get its neighbour's masks",
           .hunts = {replay_hunt(request_under_grammar, verify_with_masks_of_neighbour)}}};
}

}  // namespace draftproof
