// Sums over whole draft trees, each judged literally.
#include <algorithm>

#include "exactness/proof/acceptance_sums.hpp"

namespace draftproof {
namespace {

struct TreeNode {
  TokenString path;  // prefix and drafts
  std::size_t parent;
  std::vector<std::size_t> children;

  std::size_t token() const { return static_cast<std::size_t>(path.back()); }
};
using Tree = std::vector<TreeNode>;  // node 0 is the root
using VisitTree = std::function<void(const Tree& tree, const Rational& probability)>;

std::size_t add_child(Tree& tree, std::size_t parent, std::size_t token) {
  const std::size_t child = tree.size();
  tree.push_back({followed_by(tree[parent].path, token), parent, {}});
  tree[parent].children.push_back(child);
  return child;
}

void insert_path(Tree& tree, const TokenString& tokens) {
  std::size_t node = 0;
  for (const Token token : tokens) {
    const auto t = static_cast<std::size_t>(token);
    const std::vector<std::size_t>& children = tree[node].children;
    const auto found = std::ranges::find_if(children, [&](std::size_t child) { return tree[child].token() == t; });
    node = found != children.end() ? *found : add_child(tree, node, t);
  }
}

// Independent paths of `depth` tokens, merged; children in order of first appearance.
void for_each_merged_tree(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t num_paths,
                          const VisitTree& visit) {
  const std::vector<WeightedString> strings = strings_of(draft_of(models), prefix, depth);
  const std::function<void(const Tree&, const Rational&, std::int32_t)> add_path =
      [&](const Tree& tree, const Rational& probability, std::int32_t left) {
        if (left == 0) return visit(tree, probability);
        for (const WeightedString& string : strings) {
          Tree next = tree;
          insert_path(next, string.tokens);
          add_path(next, probability * string.probability, left - 1);
        }
      };
  add_path({{prefix, 0, {}}}, 1, num_paths);
}

// `width` distinct children of every inner node, as far as q has tokens for them, drawn one after the other.
void for_each_distinct_tree(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t width,
                            const VisitTree& visit) {
  const std::size_t leaf_size = prefix.size() + static_cast<std::size_t>(depth);
  // `node` is to get `left` more children, by the distribution `rest`. Nodes are filled breadth first: once it is a
  // leaf's turn, the tree is complete.
  std::function<void(const Tree&, const Rational&, std::size_t, const ExactMasses&, std::int32_t)> draw_child;
  const auto grow = [&](const Tree& tree, const Rational& probability, std::size_t node) {
    if (tree[node].path.size() == leaf_size) return visit(tree, probability);
    draw_child(tree, probability, node, models.draft(tree[node].path), width);
  };
  draw_child = [&](const Tree& tree, const Rational& probability, std::size_t node, const ExactMasses& rest,
                   std::int32_t left) {
    if (left == 0 || total_of(rest) == 0) return grow(tree, probability, node + 1);
    for (std::size_t t = 0; t < rest.size(); ++t) {
      if (rest[t] == 0) continue;
      Tree next = tree;
      add_child(next, node, t);
      draw_child(next, probability * rest[t], node, without(rest, t), left - 1);
    }
  };
  grow({{prefix, 0, {}}}, 1, 0);
}

// RRSw down a given tree: E[accepted drafts below a node].
Rational rrsw_walk(const Models& models, const Tree& tree, std::size_t node) {
  ExactMasses p = models.target(tree[node].path);
  ExactMasses q = models.draft(tree[node].path);
  Rational sum(0);
  Rational reach(1);
  for (const std::size_t child : tree[node].children) {
    const std::size_t t = tree[child].token();
    const Rational accepted = ratio(p[t], q[t]);
    if (accepted > 0) sum += reach * accepted * (1 + rrsw_walk(models, tree, child));
    reach *= 1 - accepted;
    if (reach == 0) break;
    p = normalised_residual(p, q);
    q = without(std::move(q), t);
  }
  return sum;
}

// Traversal verification of a given tree, with the state of the definition written out: every node has a weight,
// current distributions and the children that are left. Which leaf comes next does not depend on the coins, so the
// expected number of accepted drafts is the sum over the sequence of leaves of Pr(all before were rejected) w(leaf)
// depth(leaf).
class Traversal {
 public:
  Traversal(const Models& models, const Tree& tree) : tree_(tree) {
    for (const TreeNode& node : tree)
      states_.push_back({1, models.target(node.path), models.draft(node.path), node.children});
    weigh_below(0);
  }

  Rational accepted_length() {
    Rational sum(0);
    Rational reach(1);
    for (std::size_t leaf = first_leaf(); leaf != 0 && reach > 0; leaf = first_leaf()) {
      sum += reach * states_[leaf].weight * (tree_[leaf].path.size() - tree_[0].path.size());
      reach *= 1 - states_[leaf].weight;
      remove(leaf);
    }
    return sum;
  }

 private:
  struct State {
    Rational weight;
    ExactMasses p, q;
    std::vector<std::size_t> children;
  };

  std::size_t first_leaf() const {
    std::size_t node = 0;
    while (!states_[node].children.empty()) node = states_[node].children.front();
    return node;
  }

  void weigh_below(std::size_t node) {
    const State& v = states_[node];
    for (const std::size_t child : v.children) {
      const std::size_t t = tree_[child].token();
      states_[child].weight = ratio(v.weight * v.p[t], v.q[t]);
      weigh_below(child);
    }
  }

  void remove(std::size_t leaf) {
    const std::size_t parent = tree_[leaf].parent;
    State& v = states_[parent];
    v.children.erase(v.children.begin());
    ExactMasses residual(v.p.size(), Rational(0));
    for (std::size_t x = 0; x < residual.size(); ++x)
      residual[x] = std::max(Rational(0), Rational(v.weight * v.p[x] - v.q[x]));
    const Rational mass = total_of(residual);
    const Rational total = mass + 1 - v.weight;
    v.weight = total == 0 ? Rational(1) : Rational(mass / total);
    if (mass > 0) v.p = normalised_or_empty(std::move(residual));
    v.q = without(std::move(v.q), tree_[leaf].token());
    weigh_below(parent);
  }

  const Tree& tree_;
  std::vector<State> states_;
};

using LengthOfTree = std::function<Rational(const Tree& tree)>;
Rational mean_over_merged_trees(const Models& models, const TokenString& prefix, std::int32_t depth,
                                std::int32_t num_paths, const LengthOfTree& length) {
  Rational sum(0);
  for_each_merged_tree(models, prefix, depth, num_paths,
                       [&](const Tree& tree, const Rational& probability) { sum += probability * length(tree); });
  return sum;
}

}  // namespace

Rational rrsw_merged_tree_sum(const Models& models, const TokenString& prefix, std::int32_t depth,
                              std::int32_t num_paths) {
  return mean_over_merged_trees(models, prefix, depth, num_paths,
                                [&](const Tree& tree) { return rrsw_walk(models, tree, 0); });
}

Rational traversal_tree_sum(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t width) {
  Rational sum(0);
  for_each_distinct_tree(models, prefix, depth, width, [&](const Tree& tree, const Rational& probability) {
    sum += probability * Traversal(models, tree).accepted_length();
  });
  return sum;
}

Rational traversal_merged_tree_sum(const Models& models, const TokenString& prefix, std::int32_t depth,
                                   std::int32_t num_paths) {
  return mean_over_merged_trees(models, prefix, depth, num_paths,
                                [&](const Tree& tree) { return Traversal(models, tree).accepted_length(); });
}

Rational list_match_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth,
                             std::int32_t num_paths) {
  Rational sum(0);
  for (std::int32_t length = 1; length <= depth; ++length)
    for (const WeightedString& string : strings_of(target_of(models), prefix, length)) {
      Rational drafted(1);
      TokenString path = prefix;
      for (const Token token : string.tokens) {
        drafted *= models.draft(path)[static_cast<std::size_t>(token)];
        path.push_back(token);
      }
      sum += string.probability * (1 - power(1 - drafted, num_paths));
    }
  return sum;
}

}  // namespace draftproof
