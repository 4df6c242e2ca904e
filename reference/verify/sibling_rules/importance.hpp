// Importance-weighted selection: Khisti et al. 2410.18234. Siblings drawn independently from q. Guarantee:
// distribution-exact, for any weights. For two siblings and weights over the whole vocabulary it accepts
// alpha* (optimal_transport.hpp), the most that any exact rule can: what Global Resolution (2511.15898) approximates.
//
//   z = x_1, a = q;  for j = 2..k:  of the pair {z, x_j} select one by a coin;  a becomes the distribution of the
//                                   selected token
//   accept z with probability min(1, p(z) / a(z))
//   else  emit Y drawn from norm(max(p - a, 0));  Y that a sibling holds counts as accepted
//
// The pair {x, y} has the mass m = a(x) q(y) + a(y) q(x). Its token of the greater p/q takes all of it, ties by id, but
// for pairs of the `weighed` tokens most probable under q: their masses are shared out so that sum of min(p, a) is the
// most it can be. That is a maximum flow from tokens that have more of a than of p to those that have less: what {x, y}
// gives to x may be given to y. The paper solves the same truncated linear program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/optimal_transport.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

// How pairs of one token with the distribution a and one with q are decided.
template <class Number>
struct PairSelection {
  std::vector<std::uint32_t> rank;         // [V] of falling q/p: the token of the greater rank is selected
  std::vector<Token> weighed;              // tokens whose pairs among themselves are shared out
  std::vector<DenseMasses<Number>> share;  // [n, n]: of the pair {weighed[i], weighed[j]}, what goes to weighed[i]
  DenseMasses<Number> selected;            // [V] the distribution of the selected token
};

namespace importance_detail {

// Moves shares from tokens that are selected more often than p to those that are less often, along shortest paths,
// until there is none (Edmonds, Karp): every path empties a share, a surplus or a lack.
template <class Number>
void share_out(PairSelection<Number>& pairs, const DenseMasses<Number>& p) {
  const std::size_t n = pairs.weighed.size();
  const auto token = [&](std::size_t i) { return static_cast<std::size_t>(pairs.weighed[i]); };
  const auto surplus = [&](std::size_t i) {
    return positive_part_of_difference(pairs.selected[token(i)], p[token(i)]);
  };
  const auto lack = [&](std::size_t i) { return positive_part_of_difference(p[token(i)], pairs.selected[token(i)]); };
  for (;;) {
    std::vector<std::size_t> from(n, n), queue;  // from: n not reached, itself at a source
    for (std::size_t i = 0; i < n; ++i)
      if (surplus(i) > 0) {
        from[i] = i;
        queue.push_back(i);
      }
    std::size_t end = n;
    for (std::size_t head = 0; head < queue.size() && end == n; ++head)
      for (std::size_t j = 0; j < n && end == n; ++j) {
        const std::size_t i = queue[head];
        if (from[j] != n || !(pairs.share[i][j] > 0)) continue;
        from[j] = i;
        queue.push_back(j);
        if (lack(j) > 0) end = j;
      }
    if (end == n) return;
    Number moved = lack(end);
    std::size_t begin = end;
    for (; from[begin] != begin; begin = from[begin]) moved = std::min(moved, pairs.share[from[begin]][begin]);
    moved = std::min(moved, surplus(begin));
    for (std::size_t j = end; from[j] != j; j = from[j]) {
      pairs.share[from[j]][j] -= moved;
      pairs.share[j][from[j]] += moved;
    }
    // The exact remainder is 0 where it was the least: a rounded one would never end.
    const auto set = [&](std::size_t i, bool emptied, const Number& change) {
      pairs.selected[token(i)] = emptied ? p[token(i)] : Number(pairs.selected[token(i)] + change);
    };
    const bool begin_empties = moved == surplus(begin);
    const bool end_empties = moved == lack(end);
    set(begin, begin_empties, Number(-moved));
    set(end, end_empties, moved);
  }
}

}  // namespace importance_detail

// a, q, p [V]; `weighed`: how many tokens are. Cost: a sort, and the flow over that many tokens.
template <class Number>
PairSelection<Number> select_of_pairs(const DenseMasses<Number>& a, const DenseMasses<Number>& q,
                                      const DenseMasses<Number>& p, std::size_t weighed) {
  PairSelection<Number> pairs;
  pairs.rank.assign(p.size(), 0);
  pairs.selected.assign(p.size(), Number(0));
  Number a_below(0);
  Number q_below(0);
  std::uint32_t next = 0;
  for (const Token token : tokens_by_falling_ratio(p, q)) {
    const auto x = static_cast<std::size_t>(token);
    pairs.rank[x] = next++;
    pairs.selected[x] = a[x] * (q[x] + q_below) + q[x] * a_below;
    a_below += a[x];
    q_below += q[x];
  }
  pairs.weighed = most_probable_tokens(q, weighed);
  const std::size_t n = pairs.weighed.size();
  pairs.share.assign(n, DenseMasses<Number>(n, Number(0)));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const auto x = static_cast<std::size_t>(pairs.weighed[i]);
      const auto y = static_cast<std::size_t>(pairs.weighed[j]);
      if (pairs.rank[x] > pairs.rank[y]) pairs.share[i][j] = a[x] * q[y] + a[y] * q[x];
    }
  importance_detail::share_out(pairs, p);
  return pairs;
}

// See sibling_outcome.hpp. weighed: of every selection, at most that many tokens. The coin of sibling j >= 2 selects,
// at its node, and that of the first sibling accepts.
template <class Number, class Chance>
SiblingOutcome accept_sibling_importance(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                         std::span<const Token> siblings, std::span<const std::int32_t> nodes,
                                         std::uint32_t row, Chance& chance, std::size_t weighed) {
  if (siblings.empty()) return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
  Token selected = siblings.front();
  DenseMasses<Number> a = q;
  for (std::size_t j = 1; j < siblings.size(); ++j) {
    PairSelection<Number> pairs = select_of_pairs(a, q, p, weighed);
    const Token other = siblings[j];
    const auto place = [&](Token token) { return std::ranges::find(pairs.weighed, token) - pairs.weighed.begin(); };
    const auto first = static_cast<std::size_t>(place(selected));
    const auto second = static_cast<std::size_t>(place(other));
    const std::size_t n = pairs.weighed.size();
    bool takes_other = pairs.rank[static_cast<std::size_t>(other)] > pairs.rank[static_cast<std::size_t>(selected)];
    if (other != selected && first < n && second < n) {
      const Number& share = pairs.share[second][first];
      const Number mass = share + pairs.share[first][second];
      takes_other = chance.accept(share, mass, static_cast<std::uint32_t>(nodes[j]));
    }
    if (takes_other) selected = other;
    a = std::move(pairs.selected);
  }
  const auto z = static_cast<std::size_t>(selected);
  if (chance.accept(p[z], a[z], static_cast<std::uint32_t>(nodes.front())))
    return descend_if_drafted(selected, siblings);
  const DenseMasses<Number> residual = positive_difference(p, a);
  return descend_if_drafted(chance.draw(total_of(residual) > 0 ? residual : p, row, Purpose::residual), siblings);
}

}  // namespace draftproof
