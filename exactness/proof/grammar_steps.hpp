// Steps under a grammar: every row is masked by the state that the committed tokens and the drafts before it reach.
// Drafts are drawn from masked rows, or from bare ones: then some are forbidden, have p = 0 and are rejected, and the
// residual is that of the masked target. What must come out is the target masked at every position.
#pragma once

#include <functional>
#include <utility>

#include "exactness/proof/steps.hpp"
#include "exactness/toy_grammar.hpp"

namespace draftproof::proof_steps {

// The mask of the row after `tokens`, all of them from the first one on. Null: none.
using RowMask = std::function<std::vector<std::uint32_t>(std::span<const Token> tokens)>;

// The row of the allowed tokens alone. Logits are finite: where the allowed tokens have no mass they share it evenly.
template <class Number>
Masses<Number> masked(Masses<Number> row, std::span<const std::uint32_t> mask) {
  const auto allowed = [&](std::size_t i) { return is_allowed(mask, static_cast<Token>(i)); };
  for (std::size_t i = 0; i < row.size(); ++i)
    if (!allowed(i)) row[i] = Number(0);
  if (!(total_of(row) > Number(0)))
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = Number(allowed(i) ? 1 : 0);
  return normalised(std::move(row));
}

// Both models with masked rows. `models` must outlive the result.
template <class Number>
ModelPair<Number> masked_models(const ModelPair<Number>& models, RowMask of_target, RowMask of_draft) {
  const auto target = [&models, mask = std::move(of_target)](std::span<const Token> tokens) {
    return mask ? masked(models.target(tokens), mask(tokens)) : models.target(tokens);
  };
  const auto draft = [&models, mask = std::move(of_draft)](std::span<const Token> tokens) {
    return mask ? masked(models.draft(tokens), mask(tokens)) : models.draft(tokens);
  };
  return {models.vocab_size(), target, draft};
}

// The masks of a step after `prefix`: from the state of the committed tokens along each path of drafts. `grammar` must
// outlive the result.
inline RowMask masks_after(const ToyGrammar& grammar, const TokenString& prefix) {
  return [&grammar, committed = grammar.after(prefix), length = prefix.size()](std::span<const Token> tokens) {
    return grammar.mask(grammar.after(tokens.subspan(length), committed));
  };
}

enum class DraftsOf : std::uint8_t { masked_rows, bare_rows };

// A step of proof cases under the toy grammar.
template <class Step>
auto under_grammar(Step step, DraftsOf drafts) {
  return [step, drafts](const auto& models, const TokenString& prefix, std::int32_t draft_len, auto& chance) {
    const ToyGrammar grammar = toy_grammar(models.vocab_size());
    const RowMask mask = masks_after(grammar, prefix);
    const auto constrained = masked_models(models, mask, drafts == DraftsOf::masked_rows ? mask : nullptr);
    return step(constrained, prefix, draft_len, chance);
  };
}

// The same, and behind the last token what the grammar forces is emitted for nothing: no row, no coin.
template <class Step>
auto with_forced_tokens(Step step) {
  return [step](const auto& models, const TokenString& prefix, std::int32_t draft_len, auto& chance) {
    ProofStep outcome = step(models, prefix, draft_len, chance);
    const ToyGrammar grammar = toy_grammar(models.vocab_size());
    for (const Token token : grammar.forced_tokens(grammar.after(joined(prefix, outcome.emitted))))
      outcome.emitted.push_back(token);
    return outcome;
  };
}

// The distribution that must come out: the target's, masked by what was emitted before.
inline Masses<Rational> target_under_grammar(const Masses<Rational>& target, const TokenString& prefix) {
  const ToyGrammar grammar = toy_grammar(static_cast<std::int32_t>(target.size()));
  return masked(target, grammar.mask(grammar.after(prefix)));
}

// An acceptance oracle over the masked models.
inline auto of_grammar(DraftsOf drafts, ProofCase::Oracle oracle) {
  return [drafts, oracle = std::move(oracle)](const Models& models, const TokenString& prefix, std::int32_t depth) {
    const ToyGrammar grammar = toy_grammar(models.vocab_size());
    const RowMask mask = [&grammar](std::span<const Token> tokens) { return grammar.mask(grammar.after(tokens)); };
    return oracle(masked_models(models, mask, drafts == DraftsOf::masked_rows ? mask : nullptr), prefix, depth);
  };
}

}  // namespace draftproof::proof_steps
