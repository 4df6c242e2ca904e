#include "studies/tree/tree_explorer.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/split.hpp"
#include "reference/random/philox.hpp"
#include "reference/verify/tree_attention.hpp"
#include "studies/lab/text_pair.hpp"
#include "studies/tree/tree_trial.hpp"

namespace draftproof {
namespace {

constexpr std::array kBudgets{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

void require_in(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return;
  const nlohmann::json shown = value;
  throw usage_error(name, "is " + shown.dump() + "; expected a number in [" + nlohmann::json(least).dump() + ", " +
                              nlohmann::json(most).dump() + "]");
}

void require(const TreeExplorerSettings& s) {
  require_in("--nodes", s.nodes, 1, kTreeNodesMax);
  require_in("--depth", s.depth, 1, 32);
  require_in("--top-k", s.top_k, 1, 16);
  require_in("--vocab", s.vocab_size, 2, 256);
  require_in("--sharpness", s.sharpness, 0.0, 20.0);
  require_in("--quality", s.quality, 0.0, 1.0);
  require_in("--samples", s.samples, 0, 1'000'000);
}

class Explorer {
 public:
  Explorer(const TreeExplorerSettings& settings, Job& job)
      : job_(job),
        builder_(parse_tree_builder(settings.builder, "--builder")),
        verifier_(parse_verifier(settings.verifier, "--verifier")),
        limits_{settings.depth, settings.top_k} {
    snapshot_.settings = settings;
    require(settings);
    require_fit(builder_, verifier_, "--verifier");
    if (!settings.shape.empty() && builder_ != TreeBuilder::fixed)
      throw usage_error("--shape", "is given, and the builder is " + settings.builder + "; expected builder static");
  }

  void run(const std::function<void(TreeExplorerSnapshot)>& publish) {
    job_.report(0.0, "opening the models");
    open();
    build();
    job_.check();
    publish(snapshot_);
    closed_form_curves();
    estimated_curves();
    compare();
    snapshot_.complete = true;
    publish(snapshot_);
  }

 private:
  const TreeExplorerSettings& settings() const { return snapshot_.settings; }
  bool is_synthetic() const { return settings().model == kSyntheticModel; }
  bool draws() const { return plan_sampling() != DraftSampling::any || builder_ == TreeBuilder::paths; }
  DraftSampling plan_sampling() const { return verifier_.info().proposal; }

  std::unique_ptr<DraftPair> synthetic() const {
    return make_synthetic_pair({settings().vocab_size, settings().sharpness, settings().quality, settings().seed});
  }

  void open() {
    if (is_synthetic()) {
      pair_ = synthetic();
      snapshot_.pair = "synthetic pair of " + std::to_string(settings().vocab_size) + " tokens";
    } else {
      require_in("--nodes", settings().nodes, 1, kTextPairNodesMax);
      pair_ = borrow_text_pair(
          {settings().model, settings().drafter, settings().prompt, static_cast<float>(settings().temperature)});
      snapshot_.pair = settings().model + ", drafter " + settings().drafter;
    }
    snapshot_.rank_rates =
        settings().rank_rates.empty() ? rank_rates(*pair_, limits_.top_k, plan_sampling()) : settings().rank_rates;
    likeliest_rates_ = plan_sampling() == DraftSampling::any || !settings().rank_rates.empty()
                           ? snapshot_.rank_rates
                           : rank_rates(*pair_, limits_.top_k, DraftSampling::any);
  }

  TreeShape shape(TreeBuilder builder, std::int32_t nodes, const std::vector<double>& rates) const {
    const std::string& given = builder == builder_ && nodes == settings().nodes ? settings().shape : kNoShape;
    return shape_of(builder, nodes, limits_, given, rates, verifier_);
  }

  DraftTree tree_for(TreeBuilder builder, std::int32_t nodes, DraftPair& pair, std::uint64_t seed) const {
    if (chooses_nodes(builder)) return likeliest_tree(builder, nodes, limits_, {}, pair);
    return drawn_tree(plan_of(builder, shape(builder, nodes, snapshot_.rank_rates), verifier_), pair, seed);
  }

  void build() {
    job_.report(0.05, "building the tree");
    tree_ = tree_for(builder_, settings().nodes, *pair_, settings().seed);
    job_.report(0.1, "verifying it");
    const std::vector<PairRow> target = pair_->targets(tree_);
    add_nodes(target);
    snapshot_.mask = tree_mask(tree_.parents);
    const TreeTrial::Recorded recorded = trial_.record(tree_, target, *pair_, verifier_, settings().seed);
    snapshot_.path = recorded.emission.path;
    snapshot_.walk = walk_of({tree_, verifier_, recorded.decisions, recorded.selected, snapshot_.path, 0,
                              [&](Token token) { return pair_->text(token); }});
    for (const Token token : recorded.emission.tokens) snapshot_.emitted.push_back(pair_->text(token));
  }

  void add_nodes(const std::vector<PairRow>& target) {
    const std::vector<TreePlace> places = tree_layout(tree_.parents);
    snapshot_.root_x = places[0].x;
    snapshot_.root_y = places[0].y;
    for (std::int32_t i = 0; i < tree_.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::int32_t parent = tree_.parents[at];
      const auto token = static_cast<std::size_t>(tree_.tokens[at]);
      TreeExplorerNode node;
      node.token = tree_.tokens[at];
      node.text = pair_->text(node.token);
      node.parent = parent;
      node.depth = tree_.depth(i);
      const std::vector<std::int32_t> siblings = tree_.children(parent);
      node.sibling = static_cast<std::int32_t>(std::ranges::find(siblings, i) - siblings.begin());
      node.q = pair_->draft(tree_.path(parent))[token];
      node.p = target[DraftTree::row_after(parent)][token];
      const TreeExplorerNode* above =
          parent == kRootNode ? nullptr : &snapshot_.nodes[static_cast<std::size_t>(parent)];
      node.value = node.q * (above != nullptr ? above->value : 1.0);
      node.reach = node.p * (above != nullptr ? above->reach : 1.0);
      node.x = places[at + 1].x;
      node.y = places[at + 1].y;
      snapshot_.nodes.push_back(node);
      snapshot_.expected_by_draft += node.value;
      snapshot_.expected_by_target += node.reach;
    }
  }

  std::vector<std::int32_t> budgets() const {
    std::vector<std::int32_t> budgets;
    for (const std::int32_t n : kBudgets)
      if (n < settings().nodes) budgets.push_back(n);
    budgets.push_back(settings().nodes);
    return budgets;
  }

  // E = sum of the products of p along the paths.
  BudgetPoint closed_form(const DraftTree& tree) {
    const std::vector<double> p = pair_->target_probabilities(tree);
    BudgetPoint point{tree.size(), tree.depth_max(), 0.0, {}};
    std::vector<double> reach(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      const std::int32_t parent = tree.parents[i];
      reach[i] = p[i] * (parent == kRootNode ? 1.0 : reach[static_cast<std::size_t>(parent)]);
      point.accepted += reach[i];
    }
    return point;
  }

  void closed_form_curves() {
    const std::vector<std::int32_t> sizes = budgets();
    double done = 0.0;
    for (const TreeBuilder builder : tree_builders()) {
      if (builder == TreeBuilder::paths) continue;  // their tokens are drawn
      BudgetCurve curve{std::string(name_of(builder)), "", {}};
      for (const std::int32_t nodes : sizes) {
        job_.check();
        job_.report(0.15 + 0.35 * done++ / static_cast<double>(5 * sizes.size()),
                    curve.builder + ", " + std::to_string(nodes) + " nodes");
        const TreeShape of_builder = chooses_nodes(builder) ? TreeShape() : shape(builder, nodes, likeliest_rates_);
        const BudgetPoint point = closed_form(likeliest_tree(builder, nodes, limits_, of_builder, *pair_));
        if (curve.points.empty() || curve.points.back().nodes < point.nodes) curve.points.push_back(point);
      }
      snapshot_.curves.push_back(std::move(curve));
    }
  }

  BudgetPoint estimate(TreeBuilder builder, std::int32_t nodes) {
    // A pair of its own, so that the rows of thousands of drawn paths do not stay.
    const std::unique_ptr<DraftPair> pair = synthetic();
    BudgetPoint point;
    double sum = 0.0;
    double squares = 0.0;
    for (std::int32_t sample = 0; sample < settings().samples; ++sample) {
      job_.check();
      const std::uint64_t seed = derive_seed(settings().seed, static_cast<std::uint64_t>(sample));
      const DraftTree tree = tree_for(builder, nodes, *pair, seed);
      const auto accepted = static_cast<double>(trial_.accepted(tree, pair->targets(tree), *pair, verifier_, seed));
      sum += accepted;
      squares += accepted * accepted;
      point.nodes = std::max(point.nodes, tree.size());
      point.depth = std::max(point.depth, tree.depth_max());
    }
    const auto n = static_cast<double>(settings().samples);
    point.accepted = sum / n;
    if (settings().samples > 1)
      point.standard_error = std::sqrt(std::max(0.0, squares - n * point.accepted * point.accepted) / (n - 1.0) / n);
    return point;
  }

  void estimated_curves() {
    if (!draws()) return;
    if (!is_synthetic() || settings().samples == 0) {
      snapshot_.notes.emplace_back(
          is_synthetic()
              ? "No samples are asked for: the curves are those of the likeliest tokens."
              : "Expectations over drawn drafts are estimated on synthetic pairs alone: the curves are those "
                "of the likeliest tokens.");
      return;
    }
    const std::vector<std::int32_t> sizes = budgets();
    double done = 0.0;
    const bool has_chain = builder_ != TreeBuilder::chain && builder_ != TreeBuilder::paths;
    for (const TreeBuilder builder : {builder_, TreeBuilder::chain}) {
      if (builder == TreeBuilder::chain && builder != builder_ && !has_chain) continue;
      BudgetCurve curve{std::string(name_of(builder)), text_of(verifier_), {}};
      for (const std::int32_t nodes : sizes) {
        job_.report(0.5 + 0.5 * done++ / static_cast<double>(2 * sizes.size()),
                    curve.builder + " with " + curve.verifier + ", " + std::to_string(nodes) + " nodes");
        const BudgetPoint point = estimate(builder, nodes);
        if (curve.points.empty() || curve.points.back().nodes < point.nodes) curve.points.push_back(point);
      }
      snapshot_.curves.push_back(std::move(curve));
      if (builder_ == TreeBuilder::chain) break;
    }
  }

  void compare() {
    if (builder_ == TreeBuilder::chain) return;
    const std::string by = draws() ? text_of(verifier_) : "";
    ChainComparison comparison;
    comparison.verifier = by;
    bool has_tree = false;
    bool has_chain = false;
    for (const BudgetCurve& curve : snapshot_.curves) {
      if (curve.verifier != by) continue;
      if (curve.builder == settings().builder) {
        comparison.tree = curve.points.back();
        has_tree = true;
      } else if (curve.builder == name_of(TreeBuilder::chain)) {
        comparison.chain = curve.points.back();
        has_chain = true;
      }
    }
    if (has_tree && has_chain) snapshot_.comparison = comparison;
  }

  inline static const std::string kNoShape;

  Job& job_;
  TreeBuilder builder_;
  VerifierChoice verifier_;
  TreeLimits limits_;
  TreeExplorerSnapshot snapshot_;
  std::shared_ptr<DraftPair> pair_;
  std::vector<double> likeliest_rates_;
  DraftTree tree_;
  TreeTrial trial_;
};

}  // namespace

void compute(const TreeExplorerSettings& settings, Job& job, const std::function<void(TreeExplorerSnapshot)>& publish) {
  Explorer(settings, job).run(publish);
}

std::vector<std::string> command_arguments(const TreeExplorerSettings& settings) {
  std::vector<std::string> arguments{"draftproof", "tree"};
  const auto add = [&](const std::string& name, const std::string& value) {
    arguments.push_back(name);
    arguments.push_back(value);
  };
  const auto number = [](double value) { return nlohmann::json(value).dump(); };
  add("--builder", settings.builder);
  add("--verifier", settings.verifier);
  add("--nodes", std::to_string(settings.nodes));
  add("--depth", std::to_string(settings.depth));
  add("--top-k", std::to_string(settings.top_k));
  if (!settings.shape.empty()) add("--shape", settings.shape);
  if (!settings.rank_rates.empty()) add("--rank-rates", joined(settings.rank_rates, ",", number));
  if (settings.model == kSyntheticModel) {
    add("--vocab", std::to_string(settings.vocab_size));
    add("--sharpness", number(settings.sharpness));
    add("--quality", number(settings.quality));
    add("--samples", std::to_string(settings.samples));
  } else {
    add("--model", settings.model);
    add("--drafter", settings.drafter);
    add("--prompt", settings.prompt);
    add("--temperature", number(settings.temperature));
  }
  add("--seed", std::to_string(settings.seed));
  return arguments;
}

std::vector<TreePlace> tree_layout(std::span<const std::int32_t> parents) {
  const std::vector<std::int32_t> depths = tree_depths(parents);
  std::vector<std::vector<std::size_t>> children(depths.size());  // of rows, row 0 the context's
  for (std::size_t i = 0; i < parents.size(); ++i)
    children[static_cast<std::size_t>(std::int64_t{parents[i]} + 1)].push_back(i + 1);
  std::vector<TreePlace> places(depths.size());
  // Depth first, children in order: leaves are met in the order of their rows. Then from the last node back, since
  // children come behind their parent.
  double next_row = 0.0;
  for (std::vector<std::size_t> open{0}; !open.empty();) {
    const std::size_t row = open.back();
    open.pop_back();
    places[row].x = depths[row];
    if (children[row].empty()) places[row].y = next_row++;
    open.insert(open.end(), children[row].rbegin(), children[row].rend());
  }
  for (std::size_t row = places.size(); row-- > 0;)
    if (!children[row].empty())
      places[row].y = 0.5 * (places[children[row].front()].y + places[children[row].back()].y);
  return places;
}

}  // namespace draftproof
