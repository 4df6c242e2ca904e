#include "exactness/bugs/algorithm/family.hpp"

#include <utility>

#include "exactness/proof/steps.hpp"

namespace draftproof {

EnumeratedStep chain_step_with(StepDistributions distributions) {
  return [distributions = std::move(distributions)](const Models& models, const TokenString& prefix,
                                                    std::int32_t draft_len, ExactChance& chance) {
    const auto row_distribution = [&models, &prefix](const DistributionOf* distribution) {
      return [&models, &prefix, distribution](std::span<const Token> path) {
        const TokenString context = proof_steps::joined(prefix, path);
        return (*distribution)(models.target(context), models.draft(context));
      };
    };
    const DraftTree tree = draw_chain(row_distribution(&distributions.drafted), draft_len, chance);
    ExactRows target = proof_steps::rows_of(tree, row_distribution(&distributions.target));
    ExactRows proposal = proof_steps::rows_of(tree, row_distribution(&distributions.proposal));
    return proof_steps::step_of(tree, verify_chain(std::span<const Token>(tree.tokens), target, proposal, chance));
  };
}

const ExactMasses& plain_target() {
  static const ExactMasses p{Rational(1) / 10, Rational(6) / 10, Rational(3) / 10};
  return p;
}
const ExactMasses& plain_draft() {
  static const ExactMasses q{Rational(5) / 10, Rational(4) / 10, Rational(1) / 10};
  return q;
}

}  // namespace draftproof
