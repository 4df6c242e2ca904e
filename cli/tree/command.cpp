// draftproof tree: a draft tree, its verification decision by decision, and what trees of other sizes would accept.
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>
#include <numeric>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/terminal.hpp"
#include "exactness/statistics/battery.hpp"
#include "studies/job.hpp"
#include "studies/tree/tree_explorer.hpp"

namespace draftproof {
namespace {

struct TreeArguments {
  TreeExplorerSettings settings;
  Artefacts artefacts;
  bool no_download = false;
  bool json = false;
};

Colour colour_of(NodeState state) {
  return state == NodeState::accepted ? Colour::green : state == NodeState::rejected ? Colour::red : Colour::grey;
}

// A node and all below it, depth first.
void print_below(std::ostream& out, const TreeExplorerSnapshot& snapshot, std::int32_t parent,
                 const std::string& margin, const Palette& palette) {
  std::vector<std::size_t> children;
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i)
    if (snapshot.nodes[i].parent == parent) children.push_back(i);
  for (const std::size_t i : children) {
    const TreeExplorerNode& node = snapshot.nodes[i];
    const bool is_last = i == children.back();
    const NodeState state = snapshot.walk.back().states[i];
    const char mark = state == NodeState::accepted ? '+' : state == NodeState::rejected ? '-' : ' ';
    out << margin << (is_last ? "`-" : "|-") << mark << ' '
        << palette.paint(colour_of(state), std::to_string(i) + " '" + node.text + "'") << number("  q %.3f", node.q)
        << number("  p %.3f", node.p) << number("  value %.3f", node.value) << number("  reach %.3f\n", node.reach);
    print_below(out, snapshot, static_cast<std::int32_t>(i), margin + (is_last ? "  " : "| "), palette);
  }
}

std::string tokens_text(const BudgetPoint& point) {
  return number("%.3f", 1.0 + point.accepted) +
         (point.standard_error ? number(" +-%.3f", *point.standard_error) : std::string());
}

void print_snapshot(std::ostream& out, const TreeExplorerSnapshot& snapshot) {
  const Palette palette(wants_colour(1));
  const TreeExplorerSettings& settings = snapshot.settings;
  out << palette.paint(Colour::bold, settings.builder + " tree of " + std::to_string(snapshot.nodes.size()) + " nodes")
      << ", " << printable_line(snapshot.pair) << ", verified by " << settings.verifier << ", seed " << settings.seed
      << "\n(+ accepted, - rejected; q draft, p target, value and reach their products along the path)\n";
  print_below(out, snapshot, kRootNode, "", palette);
  out << "\n" << palette.paint(Colour::bold, "Verification") << "\n";
  for (std::size_t i = 0; i < snapshot.walk.size(); ++i) out << "  " << i + 1 << ". " << snapshot.walk[i].text << "\n";
  out << "Emitted:";
  for (const std::string& text : snapshot.emitted) out << " '" << text << "'";
  out << number("\nExpected accepted drafts of this tree: %.3f by the draft's probabilities",
                snapshot.expected_by_draft)
      << number(", %.3f by the target's\n\n", snapshot.expected_by_target)
      << palette.paint(Colour::bold, "Tokens of a step by node budget") << "\n";
  for (const BudgetCurve& curve : snapshot.curves) {
    out << "  " << curve.builder << (curve.verifier.empty() ? " (likeliest tokens)" : ", " + curve.verifier) << ":";
    for (const BudgetPoint& point : curve.points) out << "  " << point.nodes << ": " << tokens_text(point);
    out << "\n";
  }
  if (snapshot.comparison) {
    const ChainComparison& c = *snapshot.comparison;
    out << "At the same verification cost: chain of " << c.chain.nodes << " " << tokens_text(c.chain) << " tokens ("
        << c.chain.depth << " draft passes), tree of " << c.tree.nodes << " " << tokens_text(c.tree) << " tokens ("
        << c.tree.depth << " draft passes)\n";
  }
  for (const std::string& note : snapshot.notes) out << note << "\n";
}

void run(const TreeArguments& arguments, const ProgramContext& context) {
  const TreeExplorerSettings& settings = arguments.settings;
  const double sum = std::accumulate(settings.rank_rates.begin(), settings.rank_rates.end(), 0.0);
  if (sum > 1.0 + 1e-9)
    throw usage_error("--rank-rates", "has the sum " + short_number(sum) +
                                          "; expected at most 1, since at most one child is the accepted one");
  require_artefacts(arguments.artefacts);
  const auto snapshot = last_snapshot<TreeExplorerSnapshot>(settings);
  write_artefacts(arguments.artefacts, "Nodes of a tree by " + settings.builder + ", verified by " + settings.verifier,
                  snapshot, context);
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document.update(to_json(snapshot));
    return print_json(document);
  }
  print_snapshot(std::cout, snapshot);
}

}  // namespace

void add_tree(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<TreeArguments>();
  TreeExplorerSettings& s = arguments->settings;
  std::vector<std::string> builders;
  for (const TreeBuilder builder : tree_builders()) builders.emplace_back(name_of(builder));
  options.choice("--builder", s.builder, builders, "How the tree is built");
  options.text("--verifier", s.verifier,
               "Who verifies it: a lossless verifier that takes such trees (draftproof verifiers)", "NAME");
  options.integer("--nodes", s.nodes, {1, kTreeNodesMax}, "Nodes of the tree: drafts verified in one step");
  options.integer("--depth", s.depth, {1, 32},
                  "Levels of the tree, and of those it is compared with; chains have as many as nodes");
  options.integer("--top-k", s.top_k, {1, 16},
                  "Children of a node, but of opt_tree; also of the trees it is compared with");
  options.text("--shape", s.shape, "Shape of a static tree, instead of --nodes: children by level, as 3x2x1", "SHAPE");
  options.numbers("--rank-rates", s.rank_rates, {0.0, 1.0},
                  "Rates for sequoia: how often the first, second, ... child is accepted; measured if not given");
  options.text("--model", s.model, "Target: synthetic, or smollm2, a GGUF file, a folder, ngram:ORDER[:FILE]", "MODEL");
  options.integer("--vocab", s.vocab_size, {2, 256}, "Synthetic: tokens");
  options.number("--sharpness", s.sharpness, {0.0, 20.0}, "Synthetic: standard deviation of the logits");
  options.number("--quality", s.quality, {0.0, 1.0}, "Synthetic: correlation of the draft's logits with the target's");
  options.text("--drafter", s.drafter, "Drafter of a model: model:PATH, layer_skip:LIST, requantised:BITS, ngram:ORDER",
               "NAME");
  options.text("--prompt", s.prompt, "Text to continue, for a model");
  options.number("--temperature", s.temperature, kTemperatureRange, "Temperature of target and draft, for a model");
  options.seed(s.seed, "Seed of the synthetic pair, of drafts that are drawn and of the verifier");
  options.integer("--samples", s.samples, {0, 1'000'000},
                  "Steps that an expectation over drawn drafts is estimated from; 0: none is");
  add_no_download(options, arguments->no_download);
  const auto is_synthetic = [arguments] { return arguments->settings.model == "synthetic"; };
  options.used_only({"--drafter", "--prompt", "--temperature", "--no-download"}, "without a --model",
                    [is_synthetic] { return !is_synthetic(); });
  options.used_only({"--vocab", "--sharpness", "--quality"}, "with a --model", is_synthetic);
  options.used_only({"--rank-rates"}, "without --builder sequoia",
                    [arguments] { return arguments->settings.builder == name_of(TreeBuilder::sequoia); });
  add_artefacts(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples({"", "--builder sequoia --nodes 8", "--builder static --shape 3x2x1 --json"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
