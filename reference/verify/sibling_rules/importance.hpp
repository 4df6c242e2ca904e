// Importance-weighted selection: Khisti et al. 2410.18234. Siblings drawn independently from q. Guarantee:
// distribution-exact, for any weights. With weights over the whole vocabulary it accepts alpha*
// (optimal_transport.hpp), the most that any exact rule can.
//
//   select z, one of the siblings, by coins; a: the distribution of what is selected
//   accept z with probability min(1, p(z) / a(z))
//   else  emit Y drawn from norm(max(p - a, 0));  Y that a sibling holds counts as accepted
//
// Of the siblings the token of the greatest p/q is selected, ties by id, unless all lie among the `weighed` tokens most
// probable under q: the masses of their sets are shared out so that the sum of min(p, a) is the most it can be. That is
// a maximum flow from tokens that have more of a than of p to those that have less: what a set gives to x may be given
// to its y. The paper solves the same truncated linear program for pairs. Global Resolution (Thomas, Pal 2511.15898)
// seeks the same optimum by softmax weights of the set, to a tolerance.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/optimal_transport.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

// How `count` independent draws from q are decided.
template <class Number>
struct DraftSelection {
  using Set = std::vector<std::size_t>;      // places in `weighed`, ascending
  std::vector<std::uint32_t> rank;           // [V] of falling q/p: the token of the greatest rank is selected
  std::vector<Token> weighed;                // tokens whose sets are shared out
  std::map<Set, DenseMasses<Number>> share;  // of sets of two or more: what goes to each of its tokens
  DenseMasses<Number> selected;              // [V] the distribution of the selected token
};

namespace importance_detail {

// How many of `weighed` tokens can be: sets of up to `count` of them are many. All 256 of pairs, 11 of eight siblings.
inline std::size_t weighable(std::size_t weighed, std::size_t count) {
  const std::size_t shares_max = count == 2 ? 65536 : 16384;
  for (std::size_t n = 1; n <= weighed; ++n) {
    std::size_t shares = 0, sets = n;  // sets of d tokens
    for (std::size_t d = 2; d <= std::min(n, count) && shares <= shares_max; ++d) {
      sets = sets * (n - d + 1) / d;
      shares += sets * d;
    }
    if (shares > shares_max) return n - 1;
  }
  return weighed;
}

// Adds every set that begins with `set` and goes on with places from `next` on. covers[j]: the probability that j draws
// are those tokens, each at least once.
template <class Number>
void add_sets(DraftSelection<Number>& of, const DenseMasses<Number>& q, std::size_t count,
              typename DraftSelection<Number>::Set& set, std::size_t next, const std::vector<Number>& covers) {
  const auto rank = [&](std::size_t place) { return of.rank[static_cast<std::size_t>(of.weighed[place])]; };
  if (set.size() > 1) {
    DenseMasses<Number>& share = of.share[set];
    share.assign(set.size(), Number(0));
    share[static_cast<std::size_t>(std::ranges::max_element(set, {}, rank) - set.begin())] = covers[count];
  }
  if (set.size() == count) return;
  for (std::size_t place = next; place < of.weighed.size(); ++place) {
    const Number& mass = q[static_cast<std::size_t>(of.weighed[place])];
    // covers'[m] = sum over j >= 1 of C(m, j) q^j covers[m - j]
    std::vector<Number> with(count + 1, Number(0));
    for (std::size_t m = 1; m <= count; ++m) {
      Number term(1);
      for (std::size_t j = 1; j <= m; ++j) {
        term = term * mass * Number(static_cast<std::uint32_t>(m - j + 1)) / Number(static_cast<std::uint32_t>(j));
        with[m] += term * covers[m - j];
      }
    }
    set.push_back(place);
    add_sets(of, q, count, set, place + 1, with);
    set.pop_back();
  }
}

// Moves shares from tokens that are selected more often than p to those that are less often, along shortest paths,
// until there is none (Edmonds, Karp): every path empties a share, a surplus or a lack.
template <class Number>
void share_out(DraftSelection<Number>& of, const DenseMasses<Number>& p) {
  const std::size_t n = of.weighed.size();
  const auto token = [&](std::size_t i) { return static_cast<std::size_t>(of.weighed[i]); };
  const auto surplus = [&](std::size_t i) { return positive_part_of_difference(of.selected[token(i)], p[token(i)]); };
  const auto lack = [&](std::size_t i) { return positive_part_of_difference(p[token(i)], of.selected[token(i)]); };
  struct Member {
    const typename DraftSelection<Number>::Set* set;
    DenseMasses<Number>* share;
    std::size_t at;
  };
  std::vector<std::vector<Member>> sets_of(n);
  for (auto& [set, share] : of.share)
    for (std::size_t i = 0; i < set.size(); ++i) sets_of[set[i]].push_back({&set, &share, i});
  struct Step {
    std::size_t from;  // n: not reached; itself at a source
    Number *gives, *takes;
  };
  for (;;) {
    std::vector<Step> steps(n, Step{n, nullptr, nullptr});
    std::vector<std::size_t> queue;
    for (std::size_t i = 0; i < n; ++i)
      if (surplus(i) > 0) {
        steps[i].from = i;
        queue.push_back(i);
      }
    std::size_t end = n;
    for (std::size_t head = 0; head < queue.size() && end == n; ++head)
      for (const Member& member : sets_of[queue[head]]) {
        if (!((*member.share)[member.at] > 0)) continue;
        for (std::size_t i = 0; i < member.set->size() && end == n; ++i) {
          const std::size_t j = (*member.set)[i];
          if (steps[j].from != n) continue;
          steps[j] = {queue[head], &(*member.share)[member.at], &(*member.share)[i]};
          queue.push_back(j);
          if (lack(j) > 0) end = j;
        }
      }
    if (end == n) return;
    Number moved = lack(end);
    std::size_t begin = end;
    for (; steps[begin].from != begin; begin = steps[begin].from) moved = std::min(moved, *steps[begin].gives);
    moved = std::min(moved, surplus(begin));
    for (std::size_t j = end; steps[j].from != j; j = steps[j].from) {
      *steps[j].gives -= moved;
      *steps[j].takes += moved;
    }
    // The exact remainder is 0 where it was the least: a rounded one would never end.
    const auto set = [&](std::size_t i, bool emptied, const Number& change) {
      of.selected[token(i)] = emptied ? p[token(i)] : Number(of.selected[token(i)] + change);
    };
    const bool begin_empties = moved == surplus(begin);
    const bool end_empties = moved == lack(end);
    set(begin, begin_empties, Number(-moved));
    set(end, end_empties, moved);
  }
}

}  // namespace importance_detail

// q, p [V]; `weighed`: at most that many tokens are. Cost: a sort, and the flow over the sets of that many tokens.
template <class Number>
DraftSelection<Number> select_of_drafts(const DenseMasses<Number>& q, const DenseMasses<Number>& p, std::size_t count,
                                        std::size_t weighed) {
  DraftSelection<Number> of;
  of.rank.assign(p.size(), 0);
  of.selected.assign(p.size(), Number(0));
  Number below(0);
  std::uint32_t next = 0;
  for (const Token token : tokens_by_falling_ratio(p, q)) {
    const auto x = static_cast<std::size_t>(token);
    of.rank[x] = next++;
    // (below + q)^count - below^count, without the cancellation
    const Number through = below + q[x];
    Number sum(0), power(1);
    for (std::size_t j = 0; j < count; ++j) {
      sum = sum * through + power;
      power = power * below;
    }
    of.selected[x] = q[x] * sum;
    below = through;
  }
  of.weighed = most_probable_tokens(q, importance_detail::weighable(weighed, count));
  std::vector<Number> nothing(count + 1, Number(0));
  nothing[0] = Number(1);
  typename DraftSelection<Number>::Set set;
  if (count > 1) importance_detail::add_sets(of, q, count, set, 0, nothing);
  importance_detail::share_out(of, p);
  return of;
}

// See sibling_outcome.hpp. weighed: at most that many tokens. The coins of later siblings select, the last one's first,
// each at its node, and that of the first sibling accepts.
template <class Number, class Chance>
SiblingOutcome accept_sibling_importance(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                         std::span<const Token> siblings, std::span<const std::int32_t> nodes,
                                         std::uint32_t row, Chance& chance, std::size_t weighed) {
  if (siblings.empty()) return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
  const DraftSelection<Number> of = select_of_drafts(q, p, siblings.size(), weighed);
  const auto place = [&](Token token) {
    return static_cast<std::size_t>(std::ranges::find(of.weighed, token) - of.weighed.begin());
  };
  typename DraftSelection<Number>::Set set;
  for (const Token token : siblings) set.push_back(place(token));
  std::ranges::sort(set);
  set.erase(std::unique(set.begin(), set.end()), set.end());
  const auto rank = [&](Token token) { return of.rank[static_cast<std::size_t>(token)]; };
  Token selected = *std::ranges::max_element(siblings, {}, rank);
  if (const auto shared = of.share.find(set); shared != of.share.end()) {
    const auto share_of = [&](Token token) {
      return shared->second[static_cast<std::size_t>(std::ranges::find(set, place(token)) - set.begin())];
    };
    Number left(0);
    for (const Number& share : shared->second) left += share;
    std::size_t last = siblings.size() - 1;
    for (; last > 0 && left > 0; --last) {
      if (std::ranges::find(siblings.first(last), siblings[last]) !=
          siblings.begin() + static_cast<std::ptrdiff_t>(last))
        continue;
      const Number share = share_of(siblings[last]);
      if (share < left ? chance.accept(share, left, static_cast<std::uint32_t>(nodes[last])) : true) break;
      left = positive_part_of_difference(left, share);
    }
    if (left > 0) selected = siblings[last];
  }
  const auto z = static_cast<std::size_t>(selected);
  if (chance.accept(p[z], of.selected[z], static_cast<std::uint32_t>(nodes.front())))
    return descend_if_drafted(selected, siblings);
  const DenseMasses<Number> residual = positive_difference(p, of.selected);
  return descend_if_drafted(chance.draw(total_of(residual) > 0 ? residual : p, row, Purpose::residual), siblings);
}

}  // namespace draftproof
