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

bool GrammarDrafter::propose_forced(const DraftContext& context, const DraftPlan& plan, Draft& out) const {
  if (context.grammar == nullptr) return false;
  const std::vector<Token> tokens = forced(*context.grammar, static_cast<std::size_t>(plan.draft_len_max()));
  if (tokens.empty()) return false;
  out = {};
  out.tree = DraftTree::chain(tokens);
  if (looks_up()) out.evidence.assign(tokens.size(), {static_cast<std::int32_t>(context.tokens.size()), 1.0f});
  if (has_confidences()) out.confidences.assign(tokens.size(), 1.0f);
  return true;
}

void GrammarDrafter::propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) {
  if (propose_forced(context, plan, out)) return;
  out = {};
  if (other_) other_->propose(context, plan, chance, out);
}

void GrammarDrafter::propose_all(std::span<DraftJob> jobs, DraftCache* cache) {
  std::vector<DraftJob> others;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (propose_forced(jobs[i].context, jobs[i].plan, *jobs[i].out)) continue;
    *jobs[i].out = {};
    others.push_back(jobs[i]);
    indices.push_back(i);
  }
  if (other_ == nullptr || others.empty()) return;
  other_->propose_all(others, cache);
  for (std::size_t i = 0; i < others.size(); ++i) jobs[indices[i]].failure = others[i].failure;
}

}  // namespace draftproof
