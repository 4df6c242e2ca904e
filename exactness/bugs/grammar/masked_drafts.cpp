// Drafts that the grammar has had a hand in, judged as if it had not.
#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/grammar/family.hpp"
#include "exactness/bugs/grammar/forbidden_drafts.hpp"
#include "exactness/bugs/one_draft.hpp"

namespace draftproof {
namespace {

constexpr EnumerationHunt kTwoDrafts{.draft_len = 2};

// Drafts drawn from masked rows; the verifier receives those rows, or the bare ones.
Finding find_untold_mask(bool faulty) {
  const auto step = [faulty](const Models& models, const TokenString& prefix, std::int32_t draft_len,
                             ExactChance& chance) {
    const ToyGrammar grammar = toy_grammar(models.vocab_size());
    const RowMask mask = proof_steps::masks_after(grammar, prefix);
    const Models constrained = proof_steps::masked_models(models, mask, mask);
    const Models told = proof_steps::masked_models(models, mask, faulty ? nullptr : mask);
    const auto drawn = [](const Models& pair, const TokenString& context) {
      return proof_steps::draft_distribution(pair, context);
    };
    const auto received = [&told](const Models&, const TokenString& context) {
      return proof_steps::draft_distribution(told, context);
    };
    return proof_steps::chain_step(drawn, received, proof_steps::chain)(constrained, prefix, draft_len, chance);
  };
  return find_wrong_distribution(kTwoDrafts, step, proof_steps::target_under_grammar);
}

Finding find_cut_drafts(bool faulty) {
  return find_forbidden_drafts(faulty ? ForbiddenDrafts::cut : ForbiddenDrafts::judged, TakenFor::drawn);
}

// The rows under a mask of every other token.
DenseMasses<double> of_even(const DenseMasses<double>& masses) {
  return proof_steps::masked(masses, std::vector<std::uint32_t>((masses.size() + 31) / 32, 0x55555555u));
}
void draft_from_masked_row(OneDraft& draft) {
  draft.requested = draft.target = of_even(draft.target);
  draft.drafted = of_even(draft.drafted);
  draft.residual = positive_difference(draft.target, draft.proposal);
}
// A forbidden draft is none: the token is drawn from p. Seen as one draft: what p and the drafts that stay would give.
void cut_forbidden_draft(OneDraft& draft) {
  const DenseMasses<double> p = of_even(draft.target), q = draft.proposal;
  DenseMasses<double> emitted = positive_difference(p, q);
  double forbidden = 0.0;
  for (std::size_t i = 1; i < q.size(); i += 2) forbidden += q[i];
  double rejected = 1.0 - forbidden;  // of the drafts that are allowed
  for (std::size_t i = 0; i < p.size(); ++i) rejected -= std::min(p[i], q[i]);
  const double total = total_of(emitted);
  for (std::size_t i = 0; i < p.size(); ++i)
    emitted[i] = std::min(p[i], q[i]) + rejected * emitted[i] / total + forbidden * p[i];
  draft.requested = p;
  draft.drafted = draft.target = draft.proposal = draft.residual = emitted;
}

}  // namespace

Finding find_forbidden_drafts(ForbiddenDrafts forbidden, TakenFor taken_for) {
  const auto step = [=](const Models& models, const TokenString& prefix, std::int32_t draft_len, ExactChance& chance) {
    const ToyGrammar grammar = toy_grammar(models.vocab_size());
    const RowMask mask = proof_steps::masks_after(grammar, prefix);
    const Models constrained = proof_steps::masked_models(models, mask, nullptr);
    DraftTree tree = draw_chain(proof_steps::draft_distribution(models, prefix), draft_len, chance);
    while (forbidden == ForbiddenDrafts::cut && !tree.empty() &&
           grammar.after(proof_steps::joined(prefix, tree.tokens)) == ToyGrammar::kDead) {
      tree.tokens.pop_back();
      tree.parents.pop_back();
    }
    ExactRows target = proof_steps::rows_of(tree, proof_steps::target_distribution(constrained, prefix));
    ExactRows proposal = proof_steps::rows_of(tree, proof_steps::draft_distribution(models, prefix));
    for (std::size_t row = 0; row < tree.tokens.size() && taken_for == TakenFor::certain; ++row) {
      proposal.rows[row].assign(proposal.rows[row].size(), Rational(0));
      proposal.rows[row][static_cast<std::size_t>(tree.tokens[row])] = Rational(1);
    }
    return proof_steps::step_of(tree, verify_chain(std::span<const Token>(tree.tokens), target, proposal, chance));
  };
  return find_wrong_distribution(kTwoDrafts, step, proof_steps::target_under_grammar);
}

std::vector<Bug> masked_draft_bugs() {
  return {{.id = "B101",
           .source = "by analysis: drafts masked by the grammar, as in vllm #47885, and drawn",
           .fault = "drafts are drawn from masked rows, and the verifier receives q without the mask",
           .hunts = {{Detector::enumeration, find_untold_mask}},
           .rows_sampler = sampler_with(draft_from_masked_row)},
          {.id = "B102",
           .source = "vLLM 0.33.0 without asynchronous scheduling (checks of vllm #14702), drawn drafts of #40269",
           .fault = "a drawn draft that the grammar forbids is cut off, and the token in its place is drawn from p in "
                    "place of the residual",
           .hunts = {{Detector::enumeration, find_cut_drafts}},
           .rows_sampler = sampler_with(cut_forbidden_draft)}};
}

}  // namespace draftproof
