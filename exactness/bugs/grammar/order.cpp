// Masks at the wrong place of the pipeline: behind the filters, or behind the log-probabilities.
#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/filter/hunts.hpp"
#include "exactness/bugs/grammar/family.hpp"
#include "exactness/bugs/grammar/forbidden_drafts.hpp"
#include "exactness/bugs/processor/replay.hpp"

namespace draftproof {
namespace {

// The k most probable tokens.
template <class Number>
DenseMasses<Number> filtered(const DenseMasses<Number>& p, std::size_t k) {
  DenseMasses<Number> kept(p.size(), Number(0));
  for (const Token token : most_probable_tokens(p, k))
    kept[static_cast<std::size_t>(token)] = p[static_cast<std::size_t>(token)];
  return normalised(std::move(kept));
}

constexpr std::uint32_t kEven = 0x55555555u;

// Draws from the filtered bare row, and only where that token is forbidden again, with the mask before the filters.
Token drawn_then_checked(const ExactMasses& p, std::size_t top_k, ExactChance& chance) {
  const std::vector<std::uint32_t> mask{kEven};
  const Token token = chance.draw(filtered(p, top_k), 0, Purpose::target_sample);
  if (is_allowed(mask, token)) return token;
  return chance.draw(filtered(proof_steps::masked(p, mask), top_k), 1, Purpose::target_sample);
}

Finding find_wrong_order(std::size_t top_k, bool checked_later) {
  const ExactMasses p{Rational(4) / 15, Rational(5) / 15, Rational(1) / 15, Rational(3) / 15, Rational(2) / 15};
  const std::vector<std::uint32_t> mask{kEven};
  const ExactMasses expected = filtered(proof_steps::masked(p, mask), top_k);
  return find_wrong_token_distribution(expected, [&](ExactChance& chance) {
    return checked_later ? drawn_then_checked(p, top_k, chance) : chance.draw(expected, 0, Purpose::target_sample);
  });
}

// Log-probabilities.

ReplayRequest request_with_logprobs_under_grammar() {
  ReplayRequest request;
  request.grammar = [](std::span<const Token> tokens) {
    return std::vector<std::uint32_t>{tokens.back() % 2 == 0 ? ~kEven : kEven};
  };
  request.logprobs = true;
  return request;
}

// Tokens come from masked rows, what is reported of them from the rows before.
Emission verify_with_logprobs_of_bare_rows(const VerifyRequest& request) {
  Emission emission = verify_soundly(request);
  for (std::size_t i = 0; i < emission.tokens.size(); ++i) {
    const RowView view = request.target.row(static_cast<std::int64_t>(i));
    const std::span<const float> logits(static_cast<const float*>(view.data),
                                        static_cast<std::size_t>(view.vocab_size));
    emission.logprobs[i] = ProcessedRow(logits, request.parameters).distribution.log_probability(emission.tokens[i]);
  }
  return emission;
}

}  // namespace

Finding find_wrong_checked_draw(bool) {
  return find_wrong_order(5, true);
}

std::vector<Bug> mask_order_bugs() {
  return {
      {.id = "B98",
       .source = "llama.cpp #4306, #12643",
       .fault = "a token is drawn from the filtered row without the mask, and only a forbidden one is drawn again "
                "with the mask before the filters",
       .hunts = {{Detector::enumeration, [](bool faulty) { return find_wrong_order(2, faulty); }}}},
      {.id = "B99",
       .source = "sglang #2178, fixed in #2664",
       .fault = "log-probabilities are those of the row before the mask",
       .hunts = {replay_hunt(request_with_logprobs_under_grammar, [] { return verify_with_logprobs_of_bare_rows; })}}};
}

}  // namespace draftproof
