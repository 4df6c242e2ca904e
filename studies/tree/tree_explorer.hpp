// One draft tree seen whole: built by a builder on a pair of models, drawn with its probabilities, verified decision by
// decision, and set beside trees of other sizes and a chain that costs as much to verify.
//
// Expected accepted drafts. Where the tree is made of the draft's likeliest tokens, a draw from the target passes
// through node v with the product of p along the path to v, and a verifier that is exact for any draft accepts v then
// and only then: so E = sum over v of that product, exactly. Where tokens are drawn, drafts and verifications are
// repeated `samples` times with the verifier itself, on synthetic pairs; its standard error is stated.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "studies/figures/table.hpp"
#include "studies/job.hpp"
#include "studies/lab/draft_pair.hpp"
#include "studies/tree/tree_building.hpp"
#include "studies/tree/verification_walk.hpp"

namespace draftproof {

inline constexpr std::int32_t kTreeNodesMax = 128;
inline constexpr const char* kSyntheticModel = "synthetic";

struct TreeExplorerSettings {
  std::string builder = "opt_tree";
  std::string verifier = "target_only";
  std::int32_t nodes = 16;         // the budget: drafts verified in one step
  std::int32_t depth = 5;          // levels, but of a chain
  std::int32_t top_k = 4;          // children of a node, but of opt_tree
  std::string shape;               // of a static tree, as 3x2x1, instead of `nodes`; empty: none
  std::vector<double> rank_rates;  // of sequoia: how often the first, second, ... child is accepted; empty: measured
  std::string model = kSyntheticModel;  // target: that, or what `generate --model` takes
  // Settings of the synthetic pair.
  std::int32_t vocab_size = 16;
  double sharpness = 2.5;
  double quality = 0.9;
  // Settings of real models.
  std::string drafter = "layer_skip:12";
  std::string prompt = "The capital of France is";
  double temperature = 1.0;
  std::uint64_t seed = 3;      // of the pair, of what is drawn and of the verifier
  std::int32_t samples = 400;  // of an expectation that is estimated; 0: none is
  bool operator==(const TreeExplorerSettings&) const = default;
};

struct TreeExplorerNode {
  Token token = 0;
  std::string text;
  std::int32_t parent = kRootNode;
  std::int32_t depth = 1;
  std::int32_t sibling = 0;  // place among its siblings
  double q = 0.0, p = 0.0;   // of the token at the parent, by draft and target
  double value = 0.0;        // product of q along the path: what builders rank by
  double reach = 0.0;        // product of p along the path: how often a draw from the target comes here
  double x = 0.0, y = 0.0;   // tree_layout.hpp
};

struct BudgetPoint {
  std::int32_t nodes = 0;  // of the tree, which may be fewer than asked for
  std::int32_t depth = 0;  // its levels: passes of the drafter
  double accepted = 0.0;   // expected accepted drafts of a step; one token more is emitted
  std::optional<double> standard_error;
};

struct BudgetCurve {
  std::string builder, verifier;  // verifier empty: any that is exact for the likeliest tokens, in closed form
  std::vector<BudgetPoint> points;
};

// A chain of as many drafts as the tree has nodes: the target computes as many rows.
struct ChainComparison {
  BudgetPoint chain, tree;
  std::string verifier;  // empty: closed form
};

struct TreeExplorerSnapshot {
  TreeExplorerSettings settings;
  std::string pair;  // what target and draft are
  std::vector<TreeExplorerNode> nodes;
  double root_x = 0.0, root_y = 0.0;
  std::vector<bool> mask;  // [n + 1, n + 1], row attends to column; row 0 is the context's last token
  std::vector<WalkStep> walk;
  std::vector<std::int32_t> path;  // accepted nodes
  std::vector<std::string> emitted;
  double expected_by_draft = 0.0;   // sum of `value`: accepted drafts, were the draft the target
  double expected_by_target = 0.0;  // sum of `reach`: of this very tree
  std::vector<double> rank_rates;   // that sequoia used, or would use
  bool complete = false;            // the curves are there
  std::vector<BudgetCurve> curves;
  std::optional<ChainComparison> comparison;
  std::vector<std::string> notes;
};

// Publishes the tree and its walk, then the whole. Errors (usage, input): a setting out of range, a builder and a
// verifier that do not go together, a model that cannot be read.
void compute(const TreeExplorerSettings& settings, Job& job, const std::function<void(TreeExplorerSnapshot)>& publish);
nlohmann::ordered_json to_json(const TreeExplorerSnapshot& snapshot);
Table to_table(const TreeExplorerSnapshot& snapshot);  // a row a node
std::string to_figure(const TreeExplorerSnapshot& snapshot);
std::vector<std::string> command_arguments(const TreeExplorerSettings& settings);

// Where the nodes of a draft tree are drawn: a level a column, leaves in rows of their own, every other node in the
// middle of its children. No two edges cross, since siblings keep their order.

struct TreePlace {
  double x = 0.0;  // levels below the context
  double y = 0.0;  // rows; the first leaf has 0
};

// parents [n] as in DraftTree -> [n + 1], the context's place first.
std::vector<TreePlace> tree_layout(std::span<const std::int32_t> parents);

}  // namespace draftproof
