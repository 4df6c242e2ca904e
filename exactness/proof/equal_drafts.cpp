#include "exactness/proof/equal_drafts.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "exactness/proof/steps.hpp"

namespace draftproof {
namespace {

using namespace proof_steps;

// One distribution at every row, and which rows were asked for.
struct CountedRows {
  const DenseMasses<Rational>* masses_of_all;
  mutable std::set<std::uint32_t> asked = {};

  const DenseMasses<Rational>& row(std::uint32_t r) const {
    asked.insert(r);
    return *masses_of_all;
  }
  const DenseMasses<Rational>& masses(std::uint32_t r) const { return row(r); }
  const Rational& probability(std::uint32_t r, Token token) const { return row(r)[static_cast<std::size_t>(token)]; }
};

DenseMasses<Rational> residual_masses(const CountedRows& target, const CountedRows& proposal, std::uint32_t row) {
  DenseMasses<Rational> masses = positive_difference(target.row(row), proposal.row(row));
  return total_of(masses) > 0 ? masses : target.row(row);
}

using Draw = std::function<DraftTree(const DenseMasses<Rational>& q, ExactChance& chance)>;
using Verify = std::function<ProofStep(const DraftTree&, CountedRows&, CountedRows&, ExactChance&)>;

struct Drafting {
  std::string said;
  std::int32_t budget;
  Draw draw;
};

template <class Children>
Drafting siblings(const std::string& kind, std::int32_t count, Children children) {
  return {std::to_string(count) + " siblings, " + kind, count, [children](const auto& q, ExactChance& chance) {
            DraftTree tree;
            children(tree, kRootNode, q, chance);
            return tree;
          }};
}
Drafting chain_of(std::int32_t length) {
  return {"chain of " + std::to_string(length), length, [length](const auto& q, ExactChance& chance) {
            return draw_chain([&](std::span<const Token>) { return q; }, length, chance);
          }};
}
Drafting paths_of(std::int32_t length) {
  return {"2 paths of " + std::to_string(length) + ", merged", 2 * length,
          [length](const auto& q, ExactChance& chance) {
            return draw_merged_paths([&](std::span<const Token>) { return q; }, 2, length, chance, Duplicates::merged);
          }};
}

template <class Rule>
Verify of_chain(Rule rule) {
  return [rule](const DraftTree& tree, CountedRows& p, CountedRows& q, ExactChance& chance) {
    return step_of(tree, rule(std::span<const Token>(tree.tokens), p, q, chance));
  };
}
template <class Rule>
Verify of_tree(Rule rule) {
  return [rule](const DraftTree& tree, CountedRows& p, CountedRows& q, ExactChance& chance) {
    return step_of(tree, rule(tree, p, q, chance));
  };
}
template <class Rule>
Verify of_node(Rule rule) {
  return of_tree([rule](const DraftTree& tree, CountedRows& p, CountedRows& q, ExactChance& chance) {
    return verify_tree(tree, p, q, rule, chance);
  });
}
// Rules for drafts of any origin do not look at the proposal.
template <class Rule>
Verify of_node_alone(Rule rule) {
  return of_tree([rule](const DraftTree& tree, CountedRows& p, CountedRows&, ExactChance& chance) {
    struct NoRows {
      DenseMasses<Rational> row(std::uint32_t) const { return {}; }
    };
    return verify_tree(tree, p, NoRows{}, rule, chance);
  });
}

// Half the sum over strings of `length` tokens of |what is emitted, completed by draws from p - the target's|.
// finished: the probability that the string so far is emitted and completed; target: its probability.
Rational distance_of(const OutputDistribution& emitted, const DenseMasses<Rational>& p, std::int32_t length,
                     TokenString& text, const Rational& finished, const Rational& target) {
  if (length == 0) return (finished > target ? Rational(finished - target) : Rational(target - finished)) / 2;
  Rational sum(0);
  for (std::size_t x = 0; x < p.size(); ++x) {
    text.push_back(static_cast<Token>(x));
    Rational reached = finished * p[x];
    if (const auto at = emitted.find(text); at != emitted.end()) reached += at->second;
    sum += distance_of(emitted, p, length - 1, text, reached, Rational(target * p[x]));
    text.pop_back();
  }
  return sum;
}

EqualDraftsRow measured(const std::string& name, const Drafting& drafting, const Verify& verify,
                        const DenseMasses<Rational>& p, const DenseMasses<Rational>& q) {
  EqualDraftsRow row;
  row.verifier = name;
  row.drafts = drafting.said;
  row.budget = drafting.budget;
  OutputDistribution emitted, first;
  std::int32_t depth = 0;
  ExactChance chance;
  do {
    const DraftTree tree = drafting.draw(q, chance);
    CountedRows target{&p};
    CountedRows proposal{&q};
    const ProofStep step = verify(tree, target, proposal, chance);
    depth = std::max(depth, tree.depth_max());
    // A leaf proposes nothing, and whoever walks past one looks at its row for nothing.
    std::erase_if(proposal.asked,
                  [&](std::uint32_t r) { return tree.children(static_cast<std::int32_t>(r) - 1).empty(); });
    const Rational& share = chance.probability();
    row.tokens += share * Rational(step.accepted + 1);
    emitted[step.emitted] += share;
    first[{step.emitted.front()}] += share;
    row.target_rows += share * Rational(target.asked.size());
    row.proposal_rows += share * Rational(proposal.asked.size());
  } while (chance.next());
  TokenString text;
  row.first_distance = distance_of(first, p, 1, text, 0, 1);
  row.distance = distance_of(emitted, p, depth + 1, text, 0, 1);
  return row;
}

}  // namespace

DenseMasses<Rational> equal_drafts_target() {
  return {Rational(10) / 20, Rational(5) / 20, Rational(3) / 20, Rational(2) / 20};
}
DenseMasses<Rational> equal_drafts_proposal() {
  return {Rational(8) / 20, Rational(4) / 20, Rational(6) / 20, Rational(2) / 20};
}

std::vector<EqualDraftsRow> equal_drafts(const DenseMasses<Rational>& p, const DenseMasses<Rational>& q) {
  std::vector<EqualDraftsRow> rows;
  for (const std::int32_t budget : {2, 4}) {
    const auto add = [&](const std::string& name, const Drafting& drafting, const Verify& verify) {
      rows.push_back(measured(name, drafting, verify, p, q));
    };
    add("chain", chain_of(budget), of_chain(chain));
    add("block", chain_of(budget), of_chain(block));
    add("sampler_match", chain_of(budget), of_chain([](auto draft, auto& target, auto&, auto& chance) {
          return verify_sampler_match(draft, target, chance);
        }));
    const Drafting independent = siblings("independent", budget, iid_children(budget));
    add("naive", independent, of_node_alone(naive));
    add("rrs", independent, of_node(rrs));
    add("k_seq", independent, of_node(k_seq));
    add("importance", independent, of_node(importance));
    const Drafting distinct = siblings("without replacement", budget, distinct_children(budget));
    add("rrsw", distinct, of_node(rrsw));
    add("target_only", distinct, of_node_alone(target_only));
    add("greedy_draft", siblings("greedy", budget, greedy_children(budget)), of_node(greedy_draft));
    const auto add_lossy = [&](const std::string& name, const Drafting& drafting, const Verify& verify) {
      add(name, drafting, verify);
      rows.back().lossless = false;
    };
    const auto mixed = [](std::int32_t tenths) {
      return of_chain([tenths](auto draft, auto& target, auto& proposal, auto& chance) {
        return verify_ensemble(draft, target, proposal, Rational(Rational(tenths) / 10), chance);
      });
    };
    add_lossy("ensemble:weight=0.7", chain_of(budget), mixed(7));
    add_lossy("ensemble:weight=0.3", chain_of(budget), mixed(3));
    add_lossy("fly:window=1,entropy=0", chain_of(budget),
              of_chain([](auto draft, auto& target, auto& proposal, auto& chance) {
                return verify_fly(
                    draft, target, proposal, 1, [](const auto&) { return true; }, chance);
              }));
    add_lossy(
        "relaxed:top_k=2,delta=0.3", chain_of(budget), of_chain([](auto draft, auto& target, auto&, auto& chance) {
          const auto near = [](const auto& row) {
            return tokens_near_best(row, 2, [](const auto& x, const auto& best) { return 10 * x >= 10 * best - 3; });
          };
          return verify_near_best(draft, target, near, chance);
        }));
    add_lossy("synthetic:rate=0.9", chain_of(budget), of_chain([](auto draft, auto& target, auto&, auto& chance) {
                return verify_synthetic_acceptance(draft, target, Rational(Rational(9) / 10), chance);
              }));
    add_lossy("thresholds:acc=0.9", distinct, of_node_alone(thresholded));
    if (budget < 4) continue;
    const Drafting paths = paths_of(budget / 2);
    add("target_only", paths, of_node_alone(target_only));
    add("rrsw", paths, of_node(rrsw));
    add("traversal", paths, of_tree(traversal));
    add("greedy_multipath", paths, of_tree(greedy_multipath(2)));
    add_lossy("spectr_gbv", paths, of_tree(spectr_gbv(2)));
  }
  std::ranges::stable_sort(rows, [](const EqualDraftsRow& a, const EqualDraftsRow& b) {
    return a.budget != b.budget ? a.budget < b.budget : a.tokens > b.tokens;
  });
  return rows;
}

}  // namespace draftproof
