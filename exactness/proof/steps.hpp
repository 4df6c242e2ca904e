// Steps of drafting and verification, for proofs: every verifier with the drafting that it is made for. Each is a few
// lines: how drafts are drawn, which template judges them.
//
// Steps are written once, over the number type and the chance: fractions with ExactChance, and the doubles of
// production with GridChance.
#pragma once

#include <algorithm>
#include <exception>
#include <new>

#include "exactness/proof/acceptance_oracles.hpp"
#include "exactness/proof/prove.hpp"
#include "reference/verify/block.hpp"
#include "reference/verify/chain.hpp"
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
#include "reference/verify/sampled_tree.hpp"
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

namespace draftproof::proof_steps {

template <class Number>
using Masses = DenseMasses<Number>;

inline TokenString joined(TokenString prefix, std::span<const Token> path) {
  prefix.insert(prefix.end(), path.begin(), path.end());
  return prefix;
}

// A model's distribution after `prefix` and a path of drafts.
template <class Pair>
auto draft_distribution(const Pair& models, const TokenString& prefix) {
  return [&models, &prefix](std::span<const Token> path) { return models.draft(joined(prefix, path)); };
}
template <class Pair>
auto target_distribution(const Pair& models, const TokenString& prefix) {
  return [&models, &prefix](std::span<const Token> path) { return models.target(joined(prefix, path)); };
}

template <class Distribution>
auto rows_of(const DraftTree& tree, const Distribution& distribution) {
  DenseRows<typename decltype(distribution(std::span<const Token>()))::value_type> out;
  for (std::int32_t node = kRootNode; node < tree.size(); ++node) out.rows.push_back(distribution(tree.path(node)));
  return out;
}

template <class Number>
Masses<Number> greedy_distribution(const Masses<Number>& p) {
  Masses<Number> masses(p.size(), Number(0));
  masses[static_cast<std::size_t>(most_probable_tokens(p, 1).front())] = Number(1);
  return masses;
}

inline ProofStep step_of(const DraftTree& tree, const ChainOutcome& outcome) {
  ProofStep step{{tree.tokens.begin(), tree.tokens.begin() + static_cast<std::ptrdiff_t>(outcome.num_accepted)},
                 static_cast<std::int32_t>(outcome.num_accepted)};
  step.emitted.push_back(outcome.last_token);
  return step;
}
inline ProofStep step_of(const DraftTree& tree, const TreeOutcome& outcome) {
  return {emitted_tokens(tree, outcome), static_cast<std::int32_t>(outcome.path.size())};
}

// The step of a draft that `verify` judges. RuleError with the draft where it throws.
template <class Verify>
ProofStep judged(const DraftTree& tree, const Verify& verify) {
  try {
    return step_of(tree, verify());
  } catch (const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) throw;
    throw RuleError({error.what(), {}, tree});
  }
}

// Chains: `verify(draft, target rows, proposal rows, chance)` over a chain that is drawn from drawn(models, prefix),
// while the verifier receives received(models, prefix): distributions after a path of drafts.
template <class Drawn, class Received, class Verify>
auto chain_step(Drawn drawn, Received received, Verify verify) {
  return
      [drawn, received, verify](const auto& models, const TokenString& prefix, std::int32_t draft_len, auto& chance) {
        const DraftTree tree = draw_chain(drawn(models, prefix), draft_len, chance);
        auto target = rows_of(tree, target_distribution(models, prefix));
        auto proposal = rows_of(tree, received(models, prefix));
        return judged(tree, [&] { return verify(std::span<const Token>(tree.tokens), target, proposal, chance); });
      };
}
// The same from the draft model.
template <class Verify>
auto chain_step(Verify verify) {
  const auto drawn = [](const auto& models, const TokenString& prefix) { return draft_distribution(models, prefix); };
  return chain_step(drawn, drawn, std::move(verify));
}

// Trees: `draw(distribution, depth, chance)` makes the tree, `verify(tree, target, proposal, chance)` judges it.
template <class Draw, class Verify>
auto tree_step(Draw draw, Verify verify) {
  return [draw, verify](const auto& models, const TokenString& prefix, std::int32_t depth, auto& chance) {
    const DraftTree tree = draw(draft_distribution(models, prefix), depth, chance);
    const auto target = rows_of(tree, target_distribution(models, prefix));
    const auto proposal = rows_of(tree, draft_distribution(models, prefix));
    return judged(tree, [&] { return verify(tree, target, proposal, chance); });
  };
}

// A tree whose children are drawn when the walk comes to them: `draw(tree, parent, masses, chance)` adds the children
// of a node. Draws below nodes that are never visited are independent of all that happens, so leaving them out changes
// no distribution; it only spares the enumeration of what nobody looks at.
template <class Distribution, class Draw, class Chance>
class GrowingTree {
 public:
  GrowingTree(const Distribution& distribution, const Draw& draw, std::int32_t depth, Chance& chance)
      : distribution_(distribution), draw_(draw), depth_(depth), chance_(chance) {}

  std::vector<std::int32_t> children(std::int32_t node) {
    const std::vector<Token> path = tree_.path(node);
    if (static_cast<std::int32_t>(path.size()) < depth_) draw_(tree_, node, distribution_(path), chance_);
    return tree_.children(node);
  }
  std::vector<Token>& tokens = tree_.tokens;
  const DraftTree& tree() const { return tree_; }

 private:
  DraftTree tree_;
  const Distribution& distribution_;
  const Draw& draw_;
  std::int32_t depth_;
  Chance& chance_;
};

// The rows of a growing tree, computed when they are asked for.
template <class Tree, class Distribution>
struct LazyRows {
  const Tree& tree;
  const Distribution& distribution;
  auto row(std::uint32_t r) const { return distribution(tree.tree().path(static_cast<std::int32_t>(r) - 1)); }
};

// Top-down rules over trees whose every node has its own draws.
template <class Draw, class Rule>
auto growing_step(Draw draw, Rule rule) {
  return [draw, rule](const auto& models, const TokenString& prefix, std::int32_t depth, auto& chance) {
    const auto q = draft_distribution(models, prefix);
    const auto p = target_distribution(models, prefix);
    GrowingTree tree(q, draw, depth, chance);
    const LazyRows<decltype(tree), decltype(p)> target{tree, p};
    const LazyRows<decltype(tree), decltype(q)> proposal{tree, q};
    return judged(tree.tree(), [&] { return verify_tree(tree, target, proposal, rule, chance); });
  };
}

template <class Rule>
auto top_down(Rule rule) {
  return [rule](const DraftTree& tree, const auto& target, const auto& proposal, auto& chance) {
    return verify_tree(tree, target, proposal, rule, chance);
  };
}

// Whole trees: `count` i.i.d. paths merged by first appearance; `count` distinct children at every node.
inline auto merged_paths(std::int32_t count) {
  return [count](const auto& distribution, std::int32_t depth, auto& chance) {
    return draw_merged_paths(distribution, count, depth, chance, Duplicates::merged);
  };
}
inline auto without_replacement(std::int32_t count) {
  return [count](const auto& distribution, std::int32_t depth, auto& chance) {
    const std::vector<std::int32_t> branching(static_cast<std::size_t>(depth), count);
    return draw_children_without_replacement(distribution, branching_shape(branching), chance);
  };
}

// Children of one node: `count` i.i.d. draws; distinct draws; the count - 1 most probable tokens and a draw of the
// rest.
inline auto iid_children(std::int32_t count) {
  return [count](DraftTree& tree, std::int32_t parent, const auto& q, auto& chance) {
    add_iid_children(tree, parent, count, q, chance);
  };
}
inline auto distinct_children(std::int32_t count) {
  return [count](DraftTree& tree, std::int32_t parent, const auto& q, auto& chance) {
    add_children_without_replacement(tree, parent, count, q, chance);
  };
}
inline auto greedy_children(std::int32_t count) {
  return [count](DraftTree& tree, std::int32_t parent, const auto& q, auto& chance) {
    add_greedy_children(tree, parent, count, q, chance);
  };
}

// The `count` most probable tokens of q: no randomness.
inline auto top_children(std::int32_t count) {
  return [count](DraftTree& tree, std::int32_t parent, const auto& q, auto&) {
    for (const Token token : most_probable_tokens(q, static_cast<std::size_t>(count))) tree.add(token, parent);
  };
}

inline constexpr auto greedy_step = [](const auto& models, const TokenString& prefix, std::int32_t draft_len,
                                       auto& chance) {
  const DraftTree tree = draw_chain(draft_distribution(models, prefix), draft_len, chance);
  const auto greedy_target = [&](std::span<const Token> path) {
    return greedy_distribution(models.target(joined(prefix, path)));
  };
  auto target = rows_of(tree, greedy_target);
  auto proposal = rows_of(tree, draft_distribution(models, prefix));
  return judged(tree, [&] { return verify_chain(std::span<const Token>(tree.tokens), target, proposal, chance); });
};

// Argmax drafts, judged with one-hot proposals.
inline constexpr auto one_hot_step = [](const auto& models, const TokenString& prefix, std::int32_t draft_len,
                                        auto& chance) {
  const auto argmax_distribution = [&](std::span<const Token> path) {
    return greedy_distribution(models.draft(joined(prefix, path)));
  };
  const DraftTree tree = draw_chain(argmax_distribution, draft_len, chance);
  auto target = rows_of(tree, target_distribution(models, prefix));
  auto proposal = rows_of(tree, argmax_distribution);
  return judged(tree, [&] { return verify_chain(std::span<const Token>(tree.tokens), target, proposal, chance); });
};

inline constexpr auto sampler_match_step = [](const auto& models, const TokenString& prefix, std::int32_t draft_len,
                                              auto& chance) {
  const DraftTree tree = draw_chain(draft_distribution(models, prefix), draft_len, chance);
  auto target = rows_of(tree, target_distribution(models, prefix));
  return judged(tree, [&] { return verify_sampler_match(std::span<const Token>(tree.tokens), target, chance); });
};

// Draft tokens are raced when they are reached; what later positions' noise would have given changes nothing.
inline constexpr auto coupled_step = [](const auto& models, const TokenString& prefix, std::int32_t draft_len,
                                        auto& chance) {
  const auto position = static_cast<std::uint32_t>(prefix.size());
  DraftTree tree;
  for (std::int32_t i = 0; i < draft_len; ++i) {
    const auto q = models.draft(joined(prefix, tree.tokens));
    tree.add(chance.coupled_race(q, position + static_cast<std::uint32_t>(i)), i - 1);
  }
  auto target = rows_of(tree, target_distribution(models, prefix));
  return judged(tree, [&] { return verify_coupled(std::span<const Token>(tree.tokens), target, position, chance); });
};

// Two independent paths that owe nothing to the noise. (Of drafts that share it the joint distribution with the race
// over the least noise is not known in closed form: tests/reference/verify/coupled_list_test.cpp.)
inline constexpr auto coupled_list_step = [](const auto& models, const TokenString& prefix, std::int32_t depth,
                                             auto& chance) {
  const DraftTree tree = draw_merged_paths(draft_distribution(models, prefix), 2, depth, chance, Duplicates::merged);
  auto target = rows_of(tree, target_distribution(models, prefix));
  return judged(
      tree, [&] { return verify_coupled_list(tree, 2, target, static_cast<std::uint32_t>(prefix.size()), chance); });
};

// The lossy rules, which must be refuted.
inline constexpr auto typical_step = [](const auto& models, const TokenString& prefix, std::int32_t draft_len,
                                        auto& chance) {
  const DraftTree tree = draw_chain(draft_distribution(models, prefix), draft_len, chance);
  const auto target = rows_of(tree, target_distribution(models, prefix));
  const auto threshold = []<class Number>(const Masses<Number>&) { return Number(1) / 4; };
  return judged(tree, [&] { return verify_typical(tree, target, threshold, chance); });
};
inline constexpr auto top_k_resample = [](std::span<const Token> draft, const auto& target, const auto& proposal,
                                          auto& chance) {
  return verify_top_k_resample(draft, target, proposal, 1, chance);
};
inline constexpr auto synthetic = []<class Number>(std::span<const Token> draft, DenseRows<Number>& target,
                                                   DenseRows<Number>&, auto& chance) {
  return verify_synthetic_acceptance(draft, target, Number(Number(1) / 2), chance);
};
inline constexpr auto ensemble = []<class Number>(std::span<const Token> draft, const DenseRows<Number>& target,
                                                  const DenseRows<Number>& proposal, auto& chance) {
  return verify_ensemble(draft, target, proposal, Number(Number(1) / 2), chance);
};
inline constexpr auto fly = []<class Number>(std::span<const Token> draft, const DenseRows<Number>& target,
                                             const DenseRows<Number>& proposal, auto& chance) {
  const auto unsure = [](const Masses<Number>& p) { return *std::ranges::max_element(p) <= Number(3) / 4; };
  return verify_fly(draft, target, proposal, 1, unsure, chance);
};
// K drafts that may be deferred, and one behind them for the last one's window.
inline constexpr auto fly_step = [](const auto& models, const TokenString& prefix, std::int32_t draft_len,
                                    auto& chance) {
  return chain_step(fly)(models, prefix, draft_len > 0 ? draft_len + 1 : 0, chance);
};
// For probabilities p and p(g): `near(p, p(g))`, among the two most probable.
template <class Near>
auto near_best(Near near) {
  return [near](std::span<const Token> draft, const auto& target, const auto&, auto& chance) {
    return verify_near_best(
        draft, target, [&](const auto& p) { return tokens_near_best(p, 2, near); }, chance);
  };
}
inline const auto relaxed =
    near_best([](const auto& of_token, const auto& best) { return 4 * of_token >= 4 * best - 1; });
inline const auto accept_k = near_best([](const auto& of_token, const auto& best) { return 2 * of_token >= best; });
inline constexpr auto thresholded = []<class Number>(const Masses<Number>& p, auto&&... arguments) {
  return ThresholdedTargetOnly<Number>{{Number(9) / 10, Number(1)}}(p, arguments...);
};

inline constexpr auto rrs = [](auto&&... arguments) { return accept_sibling_rrs(arguments...); };
inline constexpr auto rrsw = [](auto&&... arguments) { return accept_sibling_rrsw(arguments...); };
inline constexpr auto naive = [](auto&&... arguments) { return accept_sibling_naive_sampling(arguments...); };
inline constexpr auto target_only = [](auto&&... arguments) { return accept_sibling_target_only(arguments...); };
inline constexpr auto greedy_draft = [](auto&&... arguments) { return accept_sibling_greedy_draft(arguments...); };
inline constexpr auto k_seq = [](auto&&... arguments) { return accept_sibling_k_seq(arguments...); };
inline constexpr auto importance = [](const auto& p, auto&&... arguments) {
  return accept_sibling_importance(p, arguments..., p.size());
};
inline constexpr auto k_seq_with_rho_k =
    []<class Number>(const Masses<Number>& p, const Masses<Number>& q, std::span<const Token> siblings,
                     std::span<const std::int32_t> nodes, std::uint32_t row, auto& chance) {
      return accept_sibling_k_seq(p, q, siblings, nodes, row, chance,
                                  Number(static_cast<std::uint32_t>(std::max<std::size_t>(1, siblings.size()))));
    };

inline constexpr auto chain = [](auto&&... arguments) { return verify_chain(arguments...); };
inline constexpr auto block = [](auto&&... arguments) { return verify_block(arguments...); };
inline constexpr auto traversal = [](auto&&... arguments) { return verify_traversal(arguments...); };
inline auto spectr_gbv(std::int32_t num_paths) {
  return [num_paths](const DraftTree& tree, const auto& target, const auto& proposal, auto& chance) {
    return verify_spectr_gbv(tree, num_paths, target, proposal, chance);
  };
}
inline auto greedy_multipath(std::int32_t num_paths) {
  return [num_paths](const DraftTree& tree, const auto& target, const auto& proposal, auto& chance) {
    return verify_greedy_multipath(tree, num_paths, target, proposal, chance);
  };
}

}  // namespace draftproof::proof_steps
