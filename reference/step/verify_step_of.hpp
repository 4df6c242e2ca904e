// The body of verify_step, for sources of random blocks that verify_step.cpp does not instantiate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/numerics/natural_exp.hpp"
#include "reference/step/block_step.hpp"
#include "reference/step/dense_step_rows.hpp"
#include "reference/step/verify_step.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/coupled.hpp"
#include "reference/verify/coupled_list.hpp"
#include "reference/verify/greedy_multipath.hpp"
#include "reference/verify/lossy/ensemble.hpp"
#include "reference/verify/lossy/fly.hpp"
#include "reference/verify/lossy/relaxed_accept_k.hpp"
#include "reference/verify/lossy/spectr_gbv.hpp"
#include "reference/verify/lossy/synthetic_acceptance.hpp"
#include "reference/verify/lossy/target_only_thresholds.hpp"
#include "reference/verify/lossy/top_k_resample.hpp"
#include "reference/verify/lossy/typical_acceptance.hpp"
#include "reference/verify/sampler_match.hpp"
#include "reference/verify/sibling_rules/greedy_draft.hpp"
#include "reference/verify/sibling_rules/importance.hpp"
#include "reference/verify/sibling_rules/k_seq.hpp"
#include "reference/verify/sibling_rules/naive_sampling.hpp"
#include "reference/verify/sibling_rules/rrs.hpp"
#include "reference/verify/sibling_rules/rrsw.hpp"
#include "reference/verify/sibling_rules/target_only.hpp"
#include "reference/verify/traversal.hpp"
#include "reference/verify/tree.hpp"

namespace draftproof {
namespace step_detail {

// Rows by their fixed-point masses, for rules that need no dense rows.
struct MassTarget {
  StepRows& rows;
  float probability(std::uint32_t row, Token token) { return rows.target(row).probability(token); }
  DistributionMasses masses(std::uint32_t row) { return DistributionMasses(rows.target(row)); }
};
struct MassProposal {
  StepRows& rows;
  float probability(std::uint32_t row, Token token) { return rows.proposal(row).probability(token); }
};
inline ResidualMasses residual_masses(MassTarget& target, MassProposal& proposal, std::uint32_t row) {
  return {target.rows.target(row), proposal.rows.proposal(row)};
}

inline TreeOutcome as_tree(const ChainOutcome& chain) {
  TreeOutcome outcome{{}, chain.last_token};
  for (std::uint32_t i = 0; i < chain.num_accepted; ++i) outcome.path.push_back(static_cast<std::int32_t>(i));
  return outcome;
}

template <class Rule, class Chance>
TreeOutcome judge_siblings(StepRows& rows, Rule rule, bool uses_proposal, Chance& chance) {
  const DenseStepRows target = dense_target(rows);
  if (uses_proposal) return verify_tree(rows.request().draft, target, dense_proposal(rows), rule, chance);
  return verify_tree(rows.request().draft, target, NoProposal{}, rule, chance);
}

}  // namespace step_detail

// The one place that names the template of each verifier. Calls use.siblings(rule) for a rule that judges the children
// of one node (verify/tree.hpp), and use.step(step) for a template of whole drafts: step(rows, chance) -> TreeOutcome.
template <class Use>
auto with_template(const VerifierChoice& choice, const Use& use) {
  using namespace step_detail;
  const auto number = [&](std::string_view name) { return choice.parameter(name); };
  const auto draft_of = [](StepRows& rows) { return std::span<const Token>(rows.request().draft.tokens); };
  switch (choice.verifier) {
    case Verifier::chain:
      return use.step([&](StepRows& rows, auto& chance) {
        MassTarget target{rows};
        MassProposal proposal{rows};
        return as_tree(verify_chain(draft_of(rows), target, proposal, chance));
      });
    case Verifier::block:
      return use.step([](StepRows& rows, auto& chance) { return as_tree(verify_block_step(rows, chance)); });
    case Verifier::sampler_match:
      return use.step([&](StepRows& rows, auto& chance) {
        MassTarget target{rows};
        return as_tree(verify_sampler_match(draft_of(rows), target, chance));
      });
    case Verifier::coupled:
      return use.step([&](StepRows& rows, auto& chance) {
        MassTarget target{rows};
        return as_tree(verify_coupled(draft_of(rows), target, rows.request().position_or_default(), chance));
      });
    case Verifier::naive:
      return use.siblings([](auto&&... a) { return accept_sibling_naive_sampling(a...); });
    case Verifier::target_only:
      return use.siblings([](auto&&... a) { return accept_sibling_target_only(a...); });
    case Verifier::rrs:
      return use.siblings([](auto&&... a) { return accept_sibling_rrs(a...); });
    case Verifier::rrsw:
      return use.siblings([](auto&&... a) { return accept_sibling_rrsw(a...); });
    case Verifier::k_seq:
      return use.siblings([](auto&&... a) { return accept_sibling_k_seq(a...); });
    case Verifier::importance:
      return use.siblings([weighed = static_cast<std::size_t>(number("weighed"))](auto&&... a) {
        return accept_sibling_importance(a..., weighed);
      });
    case Verifier::greedy_draft:
      return use.siblings([](auto&&... a) { return accept_sibling_greedy_draft(a...); });
    case Verifier::traversal:
      return use.step([](StepRows& rows, auto& chance) {
        return verify_traversal(rows.request().draft, dense_target(rows), dense_proposal(rows), chance);
      });
    case Verifier::greedy_multipath:
      return use.step([&](StepRows& rows, auto& chance) {
        return verify_greedy_multipath(rows.request().draft, static_cast<std::int32_t>(number("paths")),
                                       dense_target(rows), dense_proposal(rows), chance);
      });
    case Verifier::coupled_list:
      return use.step([&](StepRows& rows, auto& chance) {
        MassTarget target{rows};
        return verify_coupled_list(rows.request().draft, static_cast<std::uint32_t>(number("paths")), target,
                                   rows.request().position_or_default(), chance);
      });
    case Verifier::typical:
      return use.step([&](StepRows& rows, auto& chance) {
        const TypicalOptions options{number("epsilon"), number("delta")};
        const auto threshold = [&](const DenseMasses<double>& p) { return typical_threshold(p, options); };
        return verify_typical(rows.request().draft, dense_target(rows), threshold, chance);
      });
    case Verifier::thresholds:
      return use.siblings(ThresholdedTargetOnly<double>{{number("acc"), number("single")}});
    case Verifier::top_k_resample:
      return use.step([&](StepRows& rows, auto& chance) {
        return as_tree(verify_top_k_resample(draft_of(rows), dense_target(rows), dense_proposal(rows),
                                             static_cast<std::size_t>(number("k")), chance));
      });
    case Verifier::synthetic:
      return use.step([&](StepRows& rows, auto& chance) {
        MassTarget target{rows};
        return as_tree(verify_synthetic_acceptance(draft_of(rows), target, number("rate"), chance));
      });
    case Verifier::spectr_gbv:
      return use.step([&](StepRows& rows, auto& chance) {
        return verify_spectr_gbv(rows.request().draft, static_cast<std::int32_t>(number("paths")), dense_target(rows),
                                 dense_proposal(rows), chance);
      });
    case Verifier::ensemble:
      return use.step([&](StepRows& rows, auto& chance) {
        return as_tree(
            verify_ensemble(draft_of(rows), dense_target(rows), dense_proposal(rows), number("weight"), chance));
      });
    case Verifier::fly:
      return use.step([&](StepRows& rows, auto& chance) {
        const auto gate = [&](const DenseMasses<double>& p) {
          return entropy_of_most_probable(p, static_cast<std::size_t>(number("top"))) >= number("entropy");
        };
        return as_tree(verify_fly(draft_of(rows), dense_target(rows), dense_proposal(rows),
                                  static_cast<std::uint32_t>(number("window")), gate, chance));
      });
    case Verifier::relaxed:
      return use.step([&](StepRows& rows, auto& chance) {
        const VerifyRequest& request = rows.request();
        const bool thinking = is_thinking(request.prompt_tokens, request.output_tokens,
                                          static_cast<Token>(number("begin")), static_cast<Token>(number("end")));
        const double delta = thinking ? number("delta") : 0.0;
        const auto near = [&](const DenseMasses<double>& p) {
          return tokens_near_best(p, static_cast<std::size_t>(number("top_k")),
                                  [&](double of_token, double best) { return of_token >= best - delta; });
        };
        return as_tree(verify_near_best(draft_of(rows), dense_target(rows), near, chance));
      });
    case Verifier::accept_k:
      return use.step([&](StepRows& rows, auto& chance) {
        // A tolerance of 0 leaves the argmax alone by definition, ties or not.
        const auto count = static_cast<std::size_t>(number("tolerance") > 0.0 ? number("k") : 1.0);
        const double factor = natural_exp(-number("tolerance"));
        const auto near = [&](const DenseMasses<double>& p) {
          return tokens_near_best(p, count, [&](double of_token, double best) { return of_token >= best * factor; });
        };
        return as_tree(verify_near_best(draft_of(rows), dense_target(rows), near, chance));
      });
  }
  throw Error(ErrorKind::internal, "verify_step", "no such verifier");
}

namespace step_detail {

// Rules for drafts of any origin do not look at the proposal.
template <class Chance>
struct JudgeStep {
  StepRows& rows;
  bool uses_proposal;
  Chance& chance;

  template <class Rule>
  TreeOutcome siblings(Rule rule) const {
    return judge_siblings(rows, rule, uses_proposal, chance);
  }
  template <class Step>
  TreeOutcome step(Step step) const {
    return step(rows, chance);
  }
};

template <class Chance>
TreeOutcome judge(const VerifierChoice& choice, StepRows& rows, Chance& chance) {
  // A greedy target's rows are one-hot: every exact rule, and SpecTr-GBV's, descends to the argmax where it was
  // drafted, and none needs to know how drafts were drawn.
  const VerifierInfo& info = choice.info();
  if (has_greedy_target(rows.request()) && (info.lossless || info.joint) && info.draft != DraftForm::chain)
    return judge_siblings(
        rows, [](auto&&... a) { return accept_sibling_target_only(a...); }, false, chance);
  return with_template(choice, JudgeStep<Chance>{rows, info.proposal != DraftSampling::any, chance});
}

// The outcome as callers see it.
Emission emission_of(const TreeOutcome& outcome, const VerifyOptions& options, StepRows& rows);

}  // namespace step_detail

// The same with a Chance of the caller's (verify/chance.hpp), such as one that records what it is asked.
template <class Chance>
Emission verify_step_by(const VerifyRequest& request, const VerifyOptions& options, Chance& chance,
                        StepWorkspace& workspace) {
  StepRows rows(request, options, workspace);
  return step_detail::emission_of(step_detail::judge(options.verifier, rows, chance), options, rows);
}

template <class Source>
Emission verify_step(const VerifyRequest& request, const VerifyOptions& options, Source& source,
                     StepWorkspace& workspace) {
  AddressedChance<Source> chance(source, request.seed, request.step, options.sampler, options.convention);
  return verify_step_by(request, options, chance, workspace);
}

}  // namespace draftproof
