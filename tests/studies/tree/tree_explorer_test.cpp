#include "studies/tree/tree_explorer.hpp"

#include "studies/job.hpp"
#include "studies/tree/tree_trial.hpp"
#include "studies/worker.hpp"
#include "tests/support/test.hpp"

namespace {

TreeExplorerSnapshot snapshot_of(const TreeExplorerSettings& settings) {
  auto last = last_snapshot<TreeExplorerSnapshot>(settings);
  REQUIRE(last.complete);
  return last;
}

TreeExplorerSettings settings_of(const std::string& builder, const std::string& verifier, std::int32_t nodes = 12) {
  TreeExplorerSettings settings;
  settings.builder = builder;
  settings.verifier = verifier;
  settings.nodes = nodes;
  settings.samples = 0;
  return settings;
}

std::string refusal(const TreeExplorerSettings& settings) {
  return error_of(ErrorKind::usage, [&] {
    Job job;
    compute(settings, job, [](const TreeExplorerSnapshot&) {});
  });
}

DraftTree tree_of(const TreeExplorerSnapshot& snapshot) {
  DraftTree tree;
  for (const TreeExplorerNode& node : snapshot.nodes) tree.add(node.token, node.parent);
  return tree;
}

const BudgetCurve& curve_of(const TreeExplorerSnapshot& snapshot, const std::string& builder,
                            const std::string& verifier = "") {
  for (const BudgetCurve& curve : snapshot.curves)
    if (curve.builder == builder && curve.verifier == verifier) return curve;
  FAIL("no curve of " << builder << " " << verifier);
  return snapshot.curves.front();
}

// Expected accepted drafts where the child of rank r is the accepted one with rates[r].
double worth_of(const TreeShape& shape, const std::vector<double>& rates) {
  const DraftTree tree(std::vector<Token>(shape.parents.size(), 0), shape.parents);
  std::vector<double> reach;
  double sum = 0.0;
  for (std::int32_t node = 0; node < shape.size(); ++node) {
    const std::int32_t parent = shape.parents[static_cast<std::size_t>(node)];
    const std::vector<std::int32_t> siblings = tree.children(parent);
    const auto rank = static_cast<std::size_t>(std::ranges::find(siblings, node) - siblings.begin());
    reach.push_back(rates[rank] * (parent == kRootNode ? 1.0 : reach[static_cast<std::size_t>(parent)]));
    sum += reach.back();
  }
  return sum;
}

// p = (1/2, 3/10, 1/5) and q = (1/5, 3/10, 1/2) after every path: the models of the golden table.
class GoldenPair final : public DraftPair {
 public:
  std::int64_t vocab_size() const override { return 3; }
  std::string text(Token token) const override { return std::to_string(token); }
  const PairRow& draft(std::span<const Token>) override { return q_; }
  std::vector<PairRow> targets(const DraftTree& tree) override {
    return std::vector<PairRow>(tree.tokens.size() + 1, p_);
  }
  std::vector<double> target_probabilities(const DraftTree&) override { return {}; }
  std::vector<std::pair<PairRow, PairRow>> examples() override { return {{p_, q_}}; }

 private:
  PairRow p_{0.5, 0.3, 0.2}, q_{0.2, 0.3, 0.5};
};

}  // namespace

TEST_CASE("with every builder and verifier that go together the walk ends in what the verifier emits") {
  std::set<std::string> seen;
  std::map<WalkStep::Kind, int> kinds;
  for (const TreeBuilder builder : tree_builders())
    for (const VerifierChoice& verifier : verifiers_for(builder)) {
      INFO(name_of(builder) << " with " << text_of(verifier));
      seen.insert(std::string(verifier.info().name));
      std::size_t accepted = 0;
      for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        TreeExplorerSettings settings = settings_of(std::string(name_of(builder)), text_of(verifier));
        settings.vocab_size = 6;
        settings.seed = seed;
        const TreeExplorerSnapshot snapshot = snapshot_of(settings);
        const DraftTree tree = tree_of(snapshot);
        REQUIRE_FALSE(snapshot.walk.empty());
        for (const WalkStep& step : snapshot.walk) {
          ++kinds[step.kind];
          CHECK(step.states.size() == tree.tokens.size());
          CHECK_FALSE(step.text.empty());
          if (step.kind == WalkStep::Kind::coin)
            CHECK(step.accepted == (step.q > 0.0 && (step.p >= step.q || step.u * step.q < step.p)));
        }
        // The nodes accepted at the end are exactly the path that the verifier emitted.
        for (std::int32_t node = 0; node < tree.size(); ++node)
          CHECK((snapshot.walk.back().states[static_cast<std::size_t>(node)] == NodeState::accepted) ==
                (std::ranges::find(snapshot.path, node) != snapshot.path.end()));
        CHECK(snapshot.emitted.size() == snapshot.path.size() + 1);
        accepted += snapshot.path.size();
        // And the same step without anybody watching accepts as many.
        const auto pair = make_synthetic_pair({6, settings.sharpness, settings.quality, seed});
        TreeTrial trial;
        CHECK(trial.accepted(tree, pair->targets(tree), *pair, verifier, seed) == snapshot.path.size());
      }
      CHECK(accepted > 0);
    }
  CHECK(seen.size() == 14);
  CHECK(kinds.size() == 5);
}

TEST_CASE("the expected acceptance of likeliest tokens is that of all strings of the target, one by one") {
  for (const std::string builder : {"chain", "static", "sequoia", "eagle2", "opt_tree"}) {
    TreeExplorerSettings settings = settings_of(builder, "naive", 9);
    settings.vocab_size = 4;
    settings.depth = 4;
    settings.top_k = 3;
    settings.sharpness = 1.0;
    const TreeExplorerSnapshot snapshot = snapshot_of(settings);
    const DraftTree tree = tree_of(snapshot);
    // The mean over strings of the target of how far they follow the tree.
    const auto pair = make_synthetic_pair({4, 1.0, settings.quality, settings.seed});
    double mean = 0.0;
    const auto follow = [&](auto self, std::int32_t node, double probability, int depth) -> void {
      DraftTree path = DraftTree::chain(tree.path(node));
      const PairRow row = pair->targets(path).back();
      for (Token token = 0; token < 4; ++token) {
        const double reached = probability * row[static_cast<std::size_t>(token)];
        std::int32_t next = kRootNode;
        for (const std::int32_t child : tree.children(node))
          if (tree.tokens[static_cast<std::size_t>(child)] == token) next = child;
        if (next == kRootNode)
          mean += reached * depth;
        else
          self(self, next, reached, depth + 1);
      }
    };
    follow(follow, kRootNode, 1.0, 0);
    double by_draft = 0.0;
    std::vector<double> reach;
    for (std::int32_t node = 0; node < tree.size(); ++node) {
      const std::int32_t parent = tree.parents[static_cast<std::size_t>(node)];
      reach.push_back(
          (parent == kRootNode ? 1.0 : reach[static_cast<std::size_t>(parent)]) *
          pair->draft(tree.path(parent))[static_cast<std::size_t>(tree.tokens[static_cast<std::size_t>(node)])]);
      by_draft += reach.back();
    }
    INFO(builder);
    CHECK(snapshot.expected_by_draft == Approx(by_draft).epsilon(1e-6));
    CHECK(snapshot.expected_by_target == Approx(mean).epsilon(1e-6));
    CHECK(curve_of(snapshot, builder).points.back().accepted == Approx(snapshot.expected_by_target).epsilon(1e-12));
    CHECK(curve_of(snapshot, builder).points.back().nodes == tree.size());
  }
}

TEST_CASE("the static tree is the best one where rank r is accepted with probability 2^-(r + 1)") {
  const std::vector<double> rates{0.5, 0.25, 0.125, 0.0625};
  const TreeLimits limits{5, 4};
  for (std::int32_t nodes = 1; nodes <= 20; ++nodes) {
    const TreeShape fixed = shape_of(TreeBuilder::fixed, nodes, limits, "", {}, Verifier::rrsw);
    const TreeShape best = shape_of(TreeBuilder::sequoia, nodes, limits, "", rates, Verifier::rrsw);
    CHECK(fixed.size() == nodes);
    CHECK(worth_of(fixed, rates) == Approx(worth_of(best, rates)));
  }
}

TEST_CASE("trials accept as many drafts as the golden table of enumerated models says") {
  struct Golden {
    Verifier verifier;
    TreeShape shape;
    double accepted;
  };
  const std::vector<Golden> table{{Verifier::chain, chain_shape(2), 119.0 / 100.0},
                                  {Verifier::block, chain_shape(2), 5.0 / 4.0},
                                  {Verifier::rrsw, branching_shape({2, 2}), 3731.0 / 2500.0},
                                  {Verifier::traversal, branching_shape({2, 2}), 3821.0 / 2500.0},
                                  {Verifier::greedy_multipath, chain_shape(2), 3877.0 / 2500.0}};
  constexpr int kSamples = 20'000;
  for (const Golden& golden : table) {
    const VerifierChoice verifier(golden.verifier);
    const TreeBuilder builder = golden.verifier == Verifier::greedy_multipath ? TreeBuilder::paths : TreeBuilder::fixed;
    const DraftPlan plan =
        plan_of(golden.shape.is_chain() && builder != TreeBuilder::paths ? TreeBuilder::chain : builder, golden.shape,
                verifier);
    GoldenPair pair;
    TreeTrial trial;
    double sum = 0.0;
    double squares = 0.0;
    for (std::uint64_t seed = 0; seed < kSamples; ++seed) {
      const DraftTree tree = drawn_tree(plan, pair, seed);
      const auto accepted = static_cast<double>(trial.accepted(tree, pair.targets(tree), pair, verifier, seed));
      sum += accepted;
      squares += accepted * accepted;
    }
    const double mean = sum / kSamples;
    const double error = std::sqrt((squares / kSamples - mean * mean) / kSamples);
    INFO(verifier.info().name << ": " << mean << " +- " << error << ", golden " << golden.accepted);
    // Five checks at 4.5 standard errors: one false alarm in 30,000 seeds, and the seeds are fixed. Chain and block
    // differ by eight standard errors.
    CHECK(std::abs(mean - golden.accepted) < 4.5 * error);
    CHECK(error < 0.0065);
  }
}

TEST_CASE("an estimate by drawing agrees with the closed form where there is one") {
  // With one child a node RRSw is the chain rule: P(the first draft stands) = sum min(p, q).
  TreeExplorerSettings settings = settings_of("static", "rrsw", 1);
  settings.samples = 4000;
  const TreeExplorerSnapshot snapshot = snapshot_of(settings);
  const auto pair = make_synthetic_pair({settings.vocab_size, settings.sharpness, settings.quality, settings.seed});
  const PairRow p = pair->targets({})[0];
  const PairRow q = pair->draft({});
  double overlap = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) overlap += std::min(p[i], q[i]);
  const BudgetPoint point = curve_of(snapshot, "static", "rrsw").points.front();
  REQUIRE(point.standard_error);
  CHECK(*point.standard_error == Approx(std::sqrt(overlap * (1.0 - overlap) / 4000.0)).epsilon(0.1));
  CHECK(std::abs(point.accepted - overlap) < 4.5 * *point.standard_error);
}

TEST_CASE("the mask lets a row attend to its ancestors and itself, found by walking up") {
  const TreeExplorerSnapshot snapshot = snapshot_of(settings_of("eagle2", "target_only", 14));
  const std::size_t rows = snapshot.nodes.size() + 1;
  for (std::size_t r = 0; r < rows; ++r) {
    std::set<std::size_t> above{r};
    for (std::size_t at = r; at != 0;) {
      at = static_cast<std::size_t>(snapshot.nodes[at - 1].parent + 1);
      above.insert(at);
    }
    for (std::size_t c = 0; c < rows; ++c) CHECK(snapshot.mask[r * rows + c] == above.contains(c));
  }
}

TEST_CASE("the builder is changed and the budget moved: the snapshot follows, and the command line prints it") {
  Worker<TreeExplorerSettings, TreeExplorerSnapshot> worker(
      [](const TreeExplorerSettings& settings, Job& job, const auto& publish) { compute(settings, job, publish); });
  struct Choice {
    const char* builder;
    const char* verifier;
    std::int32_t nodes;
  };
  for (const Choice& choice : {Choice{"opt_tree", "target_only", 16},
                               {"eagle2", "naive", 7},
                               {"static", "rrs", 9},
                               {"sequoia", "traversal", 10},
                               {"paths", "greedy_multipath:paths=3", 9},
                               {"chain", "block", 5}}) {
    TreeExplorerSettings settings = settings_of(choice.builder, choice.verifier, choice.nodes);
    settings.samples = 50;
    worker.request(settings);
    worker.settle();
    const auto snapshot = worker.latest();
    REQUIRE(snapshot);
    REQUIRE(snapshot->complete);
    CHECK(snapshot->settings == settings);
    CHECK(static_cast<std::int32_t>(snapshot->nodes.size()) <= choice.nodes);
    CHECK(snapshot->comparison.has_value() ==
          (std::string(choice.builder) != "chain" && std::string(choice.builder) != "paths"));
    const ordered_json document = without_envelope(printed_by(command_arguments(settings)));
    CHECK(document == to_json(*snapshot));
    // Coins, shares of siblings and draws are compared with a uniform number; nothing else is.
    for (const auto& step : document.at("walk")) {
      const bool by_chance = step.at("kind") == "coin" || step.at("kind") == "shares" || step.at("kind") == "draw";
      CHECK(step.at("u").is_null() != by_chance);
    }
    CHECK(to_table(*snapshot).rows.size() == snapshot->nodes.size());
    const std::string figure = to_figure(*snapshot);
    for (std::size_t c = 0; c < snapshot->curves.size(); ++c) {
      PlottedRows points;
      for (const BudgetPoint& point : snapshot->curves[c].points)
        points.push_back({static_cast<double>(point.nodes), 1.0 + point.accepted, point.standard_error.value_or(0.0)});
      check_plotted(figure, "curve" + std::to_string(c), points);
    }
    for (const NodeState state : {NodeState::waiting, NodeState::accepted, NodeState::rejected}) {
      PlottedRows points;
      for (std::size_t i = 0; i < snapshot->nodes.size(); ++i)
        if (const TreeExplorerNode& node = snapshot->nodes[i];
            snapshot->walk.empty() || snapshot->walk.back().states[i] == state)
          points.push_back({node.x, -node.y, node.q});
      check_plotted(figure, std::string(name_of(state)), points);
    }
  }
}

TEST_CASE("more nodes are never worth less, and a tree is worth its chain at least") {
  const TreeExplorerSnapshot snapshot = snapshot_of(settings_of("opt_tree", "target_only", 32));
  for (const BudgetCurve& curve : snapshot.curves)
    for (std::size_t i = 1; i < curve.points.size(); ++i) {
      CHECK(curve.points[i].nodes > curve.points[i - 1].nodes);
      if (curve.builder == "chain" || curve.builder == "static")
        CHECK(curve.points[i].accepted >= curve.points[i - 1].accepted);
    }
  REQUIRE(snapshot.comparison);
  CHECK(snapshot.comparison->tree.accepted > snapshot.comparison->chain.accepted);
  CHECK(snapshot.comparison->chain.depth == 32);
  CHECK(snapshot.comparison->tree.depth <= 5);
}

TEST_CASE("a builder with a verifier that does not take its drafts is refused, naming those that do") {
  CHECK(refusal(settings_of("eagle2", "rrsw")).find("expected one of naive, target_only") != std::string::npos);
  CHECK(refusal(settings_of("static", "chain")).find("does not take what builder static makes") != std::string::npos);
  CHECK(refusal(settings_of("static", "typical")).find("is lossy") != std::string::npos);
  CHECK(refusal(settings_of("paths", "rrs")).find("expected one of greedy_multipath, coupled_list") !=
        std::string::npos);
  CHECK(refusal(settings_of("oak", "rrs")).find("expected one of chain, static") != std::string::npos);
  CHECK(refusal(settings_of("chain", "chain", 0)).find("--nodes: is 0") != std::string::npos);
  TreeExplorerSettings settings = settings_of("eagle2", "naive");
  settings.shape = "2x2";
  CHECK(refusal(settings).find("expected builder static") != std::string::npos);
  settings = settings_of("static", "rrsw");
  settings.shape = "2x0";
  CHECK(refusal(settings).find("expected numbers of children") != std::string::npos);
  settings = settings_of("static", "rrsw");
  settings.quality = 1.5;
  CHECK(refusal(settings).find("expected a number in [0") != std::string::npos);
  settings = settings_of("sequoia", "rrsw");
  settings.rank_rates = {0.8, 0.4};
  CHECK(refusal(settings).find("sum to") != std::string::npos);
  check_refused({"tree", "--builder", "eagle2", "--verifier", "rrsw"}, {});
  check_refused({"tree", "--model", "no/such.gguf"}, {});
  for (const auto& [rates, error] :
       {std::pair("0.5,-0.5", "--rank-rates: number 2 is '-0.5'; expected a number in [0, 1]"),
        {"0.9,0.9", "--rank-rates: has the sum 1.8; expected at most 1"}})
    check_refused({"tree", "--builder", "sequoia", "--rank-rates", rates}, {error});
}
