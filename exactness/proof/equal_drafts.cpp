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
using Verify = std::function<std::size_t(const DraftTree&, CountedRows&, CountedRows&, ExactChance&)>;  // accepted

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
    return static_cast<std::size_t>(rule(std::span<const Token>(tree.tokens), p, q, chance).num_accepted);
  };
}
template <class Rule>
Verify of_tree(Rule rule) {
  return [rule](const DraftTree& tree, CountedRows& p, CountedRows& q, ExactChance& chance) {
    return rule(tree, p, q, chance).path.size();
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

EqualDraftsRow measured(const std::string& name, const Drafting& drafting, const Verify& verify,
                        const DenseMasses<Rational>& p, const DenseMasses<Rational>& q) {
  EqualDraftsRow row{name, drafting.said, drafting.budget, 0, 0, 0};
  ExactChance chance;
  do {
    const DraftTree tree = drafting.draw(q, chance);
    CountedRows target{&p};
    CountedRows proposal{&q};
    const std::size_t accepted = verify(tree, target, proposal, chance);
    // A leaf proposes nothing, and whoever walks past one looks at its row for nothing.
    std::erase_if(proposal.asked,
                  [&](std::uint32_t r) { return tree.children(static_cast<std::int32_t>(r) - 1).empty(); });
    const Rational& share = chance.probability();
    row.tokens += share * Rational(accepted + 1);
    row.target_rows += share * Rational(target.asked.size());
    row.proposal_rows += share * Rational(proposal.asked.size());
  } while (chance.next());
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
    if (budget < 4) continue;
    const Drafting paths = paths_of(budget / 2);
    add("target_only", paths, of_node_alone(target_only));
    add("rrsw", paths, of_node(rrsw));
    add("traversal", paths, of_tree(traversal));
    add("greedy_multipath", paths, of_tree(greedy_multipath(2)));
  }
  std::ranges::stable_sort(rows, [](const EqualDraftsRow& a, const EqualDraftsRow& b) {
    return a.budget != b.budget ? a.budget < b.budget : a.tokens > b.tokens;
  });
  return rows;
}

}  // namespace draftproof
