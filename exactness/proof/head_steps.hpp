// Steps whose drafts are those of learned heads (docs/verifiers.md, "Drafts of learned heads"): drawn over a part of
// the vocabulary (EAGLE-3's d2t), in parallel slots (Medusa, P-EAGLE, DFlash), left to right with a Markov bias
// (DSpark), and EAGLE-2's reranked tree. The models of a proof stand for the network: what matters to a verifier is how
// tokens are drawn from the head's rows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "exactness/proof/steps.hpp"

namespace draftproof::proof_steps {

// ---- A reduced draft vocabulary: models of DraftTokens::half ----

// Adds children by `add`, whose row and tokens are those of the draft vocabulary; they become the target's.
template <class Add>
auto over_half_vocabulary(Add add) {
  return [add](DraftTree& tree, std::int32_t parent, const auto& q, auto& chance) {
    const DraftVocabulary vocabulary = half_vocabulary(static_cast<std::int32_t>(q.size()));
    const std::int32_t first = tree.size();
    add(tree, parent, vocabulary.gathered(q), chance);
    for (std::int32_t node = first; node < tree.size(); ++node) {
      Token& token = tree.tokens[static_cast<std::size_t>(node)];
      token = vocabulary.target_id(token);
    }
  };
}

// Chains of such drafts.
template <class Verify>
auto half_vocabulary_chain_step(Verify verify) {
  const auto draw = [](const auto& distribution, std::int32_t length, auto& chance) {
    DraftTree tree;
    for (std::int32_t i = 0; i < length; ++i)
      over_half_vocabulary(iid_children(1))(tree, i - 1, distribution(tree.tokens), chance);
    return tree;
  };
  return tree_step(draw, [verify](const DraftTree& tree, const auto& target, const auto& proposal, auto& chance) {
    return verify(std::span<const Token>(tree.tokens), target, proposal, chance);
  });
}

// ---- Heads that draft a block in one pass ----
// A head maps (models, prefix) to the distribution after a path of its drafts.

// Slot k has a row of its own, which no drafted token enters: the draft model's after k mask tokens (here token 0).
inline constexpr auto parallel_slots = [](const auto& models, const TokenString& prefix) {
  return [&models, &prefix](std::span<const Token> path) {
    return models.draft(joined(prefix, TokenString(path.size(), 0)));
  };
};

// exp of the bias w2[token] w1[previous] of a Markov head of rank 1, with weights -1, 0 and 1 by the token and a unit
// of ln 2, so that it is a fraction.
template <class Number>
Number markov_factor(Token previous, Token token) {
  const Token bias = (1 - previous % 3) * ((token + 1) % 3 - 1);
  return bias > 0 ? Number(2) : bias < 0 ? Number(Number(1) / 2) : Number(1);
}

// Slot logits plus the bias of the token before, drafted or, for slot 0, committed: conditional on the path.
inline constexpr auto markov_head = [](const auto& models, const TokenString& prefix) {
  return [&models, &prefix](std::span<const Token> path) {
    auto masses = parallel_slots(models, prefix)(path);
    const TokenString context = joined(prefix, path);
    if (context.empty()) return masses;
    for (std::size_t x = 0; x < masses.size(); ++x)
      masses[x] *= markov_factor<typename decltype(masses)::value_type>(context.back(), static_cast<Token>(x));
    return normalised(std::move(masses));
  };
};

// The marginal of a slot: markov_head in the mean over the drafts before, in place of given them.
inline constexpr auto markov_marginal = [](const auto& models, const TokenString& prefix) {
  return [&models, &prefix](std::span<const Token> path) {
    const auto conditional = markov_head(models, prefix);
    using Distribution = decltype(conditional(path));
    Distribution marginal(static_cast<std::size_t>(models.vocab_size()), 0);
    const auto add = [&](const auto& self, const TokenString& before, const auto& probability) -> void {
      const Distribution masses = conditional(before);
      for (std::size_t x = 0; x < masses.size(); ++x) {
        const typename Distribution::value_type share = probability * masses[x];
        if (!(share > 0)) continue;
        if (before.size() == path.size())
          marginal[x] += share;
        else
          self(self, joined(before, std::array{static_cast<Token>(x)}), share);
      }
    };
    add(add, {}, typename Distribution::value_type(1));
    return marginal;
  };
};

// A head drafts its whole block, here of two slots, or nothing. The first slot alone is drawn from its marginal.
template <class Step>
auto in_blocks_of_two(Step step) {
  return [step](const auto& models, const TokenString& prefix, std::int32_t draft_len, auto& chance) {
    return step(models, prefix, draft_len == 0 ? 0 : 2, chance);
  };
}

// Acceptance of a head's block, by an oracle that takes a pair of models.
template <class Head>
ProofCase::Oracle of_head(Head head, Rational (*oracle)(const Models&, const TokenString&, std::int32_t)) {
  return [head, oracle](const Models& models, const TokenString& prefix, std::int32_t draft_len) {
    const auto target = [&](std::span<const Token> path) { return models.target(joined(prefix, path)); };
    return oracle(Models(models.vocab_size(), target, head(models, prefix)), {}, draft_len);
  };
}

// ---- EAGLE-2, Li et al. 2406.16858 ----

// The product of q along the path to every node. Doubles are rounded to 2^-40, so that products that are equal as
// fractions are equal.
template <class Distribution>
auto path_probabilities(const DraftTree& tree, const Distribution& distribution) {
  using Number = typename std::remove_cvref_t<decltype(distribution(std::span<const Token>()))>::value_type;
  std::vector<Number> scores;
  for (std::int32_t node = 0; node < tree.size(); ++node) {
    const auto i = static_cast<std::size_t>(node);
    const std::int32_t parent = tree.parents[i];
    const auto q = distribution(tree.path(parent));
    const Number& own = q[static_cast<std::size_t>(tree.tokens[i])];
    scores.push_back(parent == kRootNode ? own : Number(scores[static_cast<std::size_t>(parent)] * own));
  }
  if constexpr (std::is_floating_point_v<Number>)
    for (Number& score : scores) score = std::nearbyint(score * 0x1p40) * 0x1p-40;
  return scores;
}

// The `count` nodes of the highest score in [first, end of scores), best first, by index where scores tie.
template <class Number>
std::vector<std::int32_t> best_nodes(const std::vector<Number>& scores, std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> nodes(scores.size() - static_cast<std::size_t>(first));
  std::iota(nodes.begin(), nodes.end(), first);
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::int32_t a, std::int32_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  nodes.resize(std::min(nodes.size(), count));
  return nodes;
}

// The `count` best nodes of a tree by the product of q along their path, in the tree's order. Scores do not rise along
// a path and parents come first, so that a node is kept with its parent.
template <class Distribution>
DraftTree reranked(const DraftTree& tree, const Distribution& distribution, std::size_t count) {
  std::vector<std::int32_t> kept = best_nodes(path_probabilities(tree, distribution), 0, count);
  std::sort(kept.begin(), kept.end());
  DraftTree out;
  std::vector<std::int32_t> place(static_cast<std::size_t>(tree.size()), kRootNode);
  for (const std::int32_t node : kept) {
    const auto i = static_cast<std::size_t>(node);
    const std::int32_t parent = tree.parents[i];
    place[i] = out.add(tree.tokens[i], parent == kRootNode ? kRootNode : place[static_cast<std::size_t>(parent)]);
  }
  return out;
}

// At every level the `width` best nodes get their `width` most probable tokens; of all that were made the `count` best
// stay. No randomness.
inline auto eagle2_tree(std::int32_t width, std::size_t count) {
  return [width, count](const auto& distribution, std::int32_t depth, auto& chance) {
    DraftTree pool;
    std::vector<std::int32_t> frontier{kRootNode};
    for (std::int32_t level = 0; level < depth; ++level) {
      const std::int32_t first = pool.size();
      for (const std::int32_t node : frontier) top_children(width)(pool, node, distribution(pool.path(node)), chance);
      frontier = best_nodes(path_probabilities(pool, distribution), first, static_cast<std::size_t>(width));
    }
    return reranked(pool, distribution, count);
  };
}

}  // namespace draftproof::proof_steps
