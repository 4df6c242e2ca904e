#include "engine/draft/grammar_drafter.hpp"

namespace draftproof {

std::vector<Token> GrammarDrafter::forced(DraftMask& grammar, std::size_t most) const {
  std::vector<Token> draft;
  while (draft.size() < most) {
    const Token alone = grammar.forced_after(draft);
    if (alone != kPaddingToken) {
      draft.push_back(alone);
      continue;
    }
    if (tokenizer_ == nullptr) break;
    const std::size_t before = draft.size();
    for (const Token token : tokenizer_->encode(grammar.forced_text_after(draft), {false, false})) {
      if (draft.size() == most) break;
      draft.push_back(token);
      if (!grammar.allows(draft)) {
        draft.pop_back();
        break;
      }
    }
    if (draft.size() == before) break;
  }
  return draft;
}

bool GrammarDrafter::propose_first(const DraftJob& job) {
  const DraftContext& context = job.context;
  if (context.grammar == nullptr) return false;
  const std::vector<Token> tokens = forced(*context.grammar, static_cast<std::size_t>(job.plan.draft_len_max()));
  if (tokens.empty()) return false;
  Draft& out = *job.out;
  out = {};
  out.tree = DraftTree::chain(tokens);
  if (looks_up()) out.evidence.assign(tokens.size(), {static_cast<std::int32_t>(context.tokens.size()), 1.0f});
  if (has_confidences()) out.confidences.assign(tokens.size(), 1.0f);
  return true;
}

}  // namespace draftproof
