// Beam search over any next-token log-probability function: the deterministic relative of sampling.
//
// One step extends every running beam by every token whose log-probability is not -inf and ranks the candidates by the
// sum of their log-probabilities. In rank order, a candidate that ends with an eos id and ranks among the first
// `beam_width` is finished and goes to the pool (a worse one is dropped, or width 1 would not be greedy); the first
// `beam_width` candidates that do not end are the next beams. Among the (1 + number of eos ids) * beam_width best
// candidates there are always that many: 2 * beam_width with one eos id, as engines do. After max_tokens the running
// beams are finished as they are. The pool keeps the `best_of` best by score.
//
//   score = sum of log-probabilities / length^length_penalty      length: generated tokens, the eos id included
//
// Everything is deterministic: sums are doubles in sequence order, length^a = natural_exp(a * natural_log(length)) with
// a = 0 and a = 1 exact, and equal sums or scores are ordered by their token sequences, the lexicographically smaller
// one (a beginning before its continuations) first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/token.hpp"
#include "engine/decode/stop.hpp"

namespace draftproof {

class Engine;

// When to stop once the pool holds best_of hypotheses.
enum class BeamStopping {
  // When no continuation of a running beam can still enter the pool. The only rule that is exact: with a beam width
  // that prunes nothing it returns the best sequences of all. (early_stopping = "never" elsewhere.)
  exact,
  // When the best running beam, scored at its current length, is not better than the worst of the pool. A longer
  // sequence that a length penalty above 0 would still favour is missed. (early_stopping = False elsewhere.)
  current_length,
  // At once. (early_stopping = True elsewhere.)
  first_finished,
};

struct BeamSearchParameters {
  std::int64_t beam_width = 1;
  std::int64_t best_of = 1;     // hypotheses returned, at most beam_width
  double length_penalty = 1.0;  // > 0 favours long sequences, < 0 short ones
  std::vector<Token> eos_ids;
  std::int64_t max_tokens = 16;
  BeamStopping stopping = BeamStopping::exact;
};

struct BeamHypothesis {
  std::vector<Token> tokens;  // generated, the eos id included
  double sum_logprob = 0.0;
  double score = 0.0;
  FinishReason finish_reason = FinishReason::none;  // eos or length
};

// Writes log p(token | context) for all tokens; context = prompt and generated tokens; log_probs has vocab_size
// entries, -inf for a token that can not follow.
using NextLogProbs = std::function<void(std::span<const Token> context, std::span<float> log_probs)>;

// Log-probabilities computed in float may exceed 0 by rounding; up to here that is accepted, and the exact stopping
// rule allows for it.
inline constexpr float kLogProbRounding = 0x1p-12F;

// The best hypotheses, best first: best_of of them, or all there are when the model has fewer.
// Errors (usage): parameters outside their range, ids outside [0, vocab_size), an empty vocabulary, a length penalty
// whose power of max_tokens leaves the range of a double. Errors (input): a log-probability that is NaN, was not
// written, or is above kLogProbRounding, naming step, beam (rank) and token; a beam that no token can follow.
std::vector<BeamHypothesis> beam_search(std::span<const Token> prompt, std::size_t vocab_size,
                                        const BeamSearchParameters& parameters, const NextLogProbs& next_log_probs);

// The same search in an engine: the beams of a step are requests of one token, computed in one pass and beside the
// engine's other requests. They share the KV blocks of what they have in common, the last one copied on write, so that
// each computes one token a step. A beam is extended by its first (1 + number of eos ids) * beam_width + 64 tokens, so
// that the result is that of the loop above but where more than 64 tokens at that border have one log-probability.
// Errors as there, and those of Engine::submit.
std::vector<BeamHypothesis> beam_search(Engine& engine, std::span<const Token> prompt, std::size_t vocab_size,
                                        const BeamSearchParameters& parameters);

struct BeamRequest {
  std::span<const Token> prompt;
  BeamSearchParameters parameters;
};
struct BeamOutcome {
  std::vector<BeamHypothesis> hypotheses;
  std::exception_ptr failure;  // null where there are hypotheses
};
// Several of them beside one another, `at_once` at a time: each as it is alone.
std::vector<BeamOutcome> beam_search(Engine& engine, std::span<const BeamRequest> requests, std::size_t vocab_size,
                                     std::size_t at_once);

}  // namespace draftproof
