// SpecTr-GBV as its authors' code has it (Lin et al. 2604.25925, code of 2026; the paper's equations were not read):
// each prefix of K independent draft paths has a coin, and the longest that passes stands. Guarantee: LOSSY.
//
//   P, Q: probabilities of a prefix under target and draft, r(x) = min(1, Q q(x) / (P p(x))) behind it
//   h = [sum_x P p(x) (1 - r(x))^K - P (1 - min(1, Q/P))^K] / [1 - (1 - Q)^K - sum_x P p(x) (1 - (1 - r(x))^K)]
//   h of a whole path = P (1 - (1 - min(1, Q/P))^K) / (1 - (1 - Q)^K)
//   path by path, coins of the prefixes longer than the one that stands; a whole path ends the walk
//   the recovered token: a draw from norm(P p(x) (1 - r(x)^K)), from p where that is zero
//
// The paper claims the text of the target, with targets of later steps changed; the code changes none. With K = 1 it is
// greedy block verification without that change: exact for one draft, and for longer ones it accepts the joint minimum,
// which no exact rule does. With K > 1 one position is off: for p = (2/3, 1/3), q = (1/3, 2/3), K = 2 by 3/40. (There
// the code throws the last coin again where an equal path follows, and is off by 7/240; here every prefix has one.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/tree.hpp"

namespace draftproof {

// 1 - (1 - share)^count, without the cancellation: that one of `count` independent events happens.
template <class Number>
Number any_of(const Number& share, std::int32_t count) {
  Number sum(0), none_so_far(1);
  for (std::int32_t i = 0; i < count; ++i) {
    sum = sum + none_so_far;
    none_so_far = none_so_far * (Number(1) - share);
  }
  return share * sum;
}

// A prefix of a draft path: its probabilities under target and draft, and how likely paths go on with each token.
template <class Number>
struct DraftPrefix {
  Number target{1}, draft{1};  // P, Q

  // P p(x) (1 - (1 - r(x))^K), and where `recovered` P p(x) (1 - r(x)^K).
  DenseMasses<Number> shares(const DenseMasses<Number>& p, const DenseMasses<Number>& q, std::int32_t num_paths,
                             bool recovered) const {
    DenseMasses<Number> masses(p.size(), Number(0));
    for (std::size_t x = 0; x < p.size(); ++x) {
      const Number of_target = target * p[x];
      const Number of_draft = draft * q[x];
      if (!(of_target > 0)) continue;
      const Number ratio = of_draft < of_target ? Number(of_draft / of_target) : Number(1);
      masses[x] = of_target * any_of(recovered ? Number(Number(1) - ratio) : ratio, num_paths);
    }
    return masses;
  }
  // P (1 - (1 - min(1, Q/P))^K)
  Number share(std::int32_t num_paths) const {
    return target * any_of(draft < target ? Number(draft / target) : Number(1), num_paths);
  }
};

// tree: num_paths independent paths, merged. target, proposal: row(r) -> DenseMasses<Number>. The coin of a node has
// the row of the node.
template <class Target, class Proposal, class Chance>
TreeOutcome verify_spectr_gbv(const DraftTree& tree, std::int32_t num_paths, const Target& target,
                              const Proposal& proposal, Chance& chance) {
  using Number = typename std::remove_cvref_t<decltype(target.row(0))>::value_type;
  TreeOutcome outcome{{}, kPaddingToken};
  DraftPrefix<Number> standing;
  std::vector<bool> failed(tree.tokens.size(), false);
  const auto passes = [&](std::int32_t node, bool whole, const DraftPrefix<Number>& prefix) {
    if (failed[static_cast<std::size_t>(node)] || !(prefix.target > 0) || !(prefix.draft > 0)) return false;
    Number accepted = prefix.share(num_paths);
    Number reached = any_of(prefix.draft, num_paths);
    if (!whole) {
      const std::uint32_t row = DraftTree::row_after(node);
      const auto& p = target.row(row);  // first the target, as in verify_tree
      const Number longer = total_of(prefix.shares(p, proposal.row(row), num_paths, false));
      // sum_x P p (1 - r)^K - P (1 - min(1, Q/P))^K, since P p(x) sum to P
      accepted = positive_part_of_difference(accepted, longer);
      reached = positive_part_of_difference(reached, longer);
    }
    return accepted > 0 &&
           (!(reached > accepted) || chance.accept(accepted, reached, static_cast<std::uint32_t>(node)));
  };
  for (std::int32_t leaf = 0; leaf < tree.size(); ++leaf) {
    if (!tree.children(leaf).empty()) continue;
    std::vector<std::int32_t> path;
    for (std::int32_t node = leaf; node != kRootNode; node = tree.parents[static_cast<std::size_t>(node)])
      path.insert(path.begin(), node);
    DraftPrefix<Number> prefix;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const std::uint32_t row = DraftTree::row_after(i == 0 ? kRootNode : path[i - 1]);
      const auto x = static_cast<std::size_t>(tree.tokens[static_cast<std::size_t>(path[i])]);
      prefix.target = prefix.target * target.row(row)[x];
      prefix.draft = prefix.draft * proposal.row(row)[x];
      if (i < outcome.path.size()) continue;
      const bool whole = path[i] == leaf;
      failed[static_cast<std::size_t>(path[i])] = !passes(path[i], whole, prefix);
      if (failed[static_cast<std::size_t>(path[i])]) continue;
      outcome.path.assign(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      standing = prefix;
      if (!whole) continue;
      outcome.last_token =
          chance.draw(target.row(DraftTree::row_after(leaf)), DraftTree::row_after(leaf), Purpose::target_sample);
      return outcome;
    }
  }
  const std::uint32_t row = DraftTree::row_after(outcome.path.empty() ? kRootNode : outcome.path.back());
  const DenseMasses<Number> p = target.row(row);
  if (tree.empty()) {
    outcome.last_token = chance.draw(p, row, Purpose::target_sample);
    return outcome;
  }
  const DenseMasses<Number> recovered = standing.shares(p, proposal.row(row), num_paths, true);
  outcome.last_token = chance.draw(total_of(recovered) > 0 ? recovered : p, row, Purpose::residual);
  return outcome;
}

}  // namespace draftproof
