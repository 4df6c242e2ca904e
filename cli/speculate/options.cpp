#include "cli/speculate/options.hpp"

#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "cli/shared/model_path.hpp"
#include "engine/decode/decoding_options.hpp"
#include "engine/draft/drafter_choice.hpp"
#include "reference/step/draft_plan.hpp"

namespace draftproof {
namespace {

constexpr IntegerRange kTokens{1, 1'000'000};
constexpr const char* kNoTree = "none";

std::vector<std::string> parts_of(const std::string& name, const std::string& text, const char* expected) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(text, ',')) {
    if (part.empty()) throw usage_error("", name + " is '" + text + "'; expected " + expected);
    parts.emplace_back(part);
  }
  return parts;
}

// A part that begins with a digit goes on with a list of layers: layer_skip:10-14,20.
std::vector<std::string> drafters_of(const std::string& text) {
  std::vector<std::string> drafters;
  for (const std::string& part : parts_of("--drafters", text, "names of drafters with a comma between two")) {
    if (!drafters.empty() && std::isdigit(static_cast<unsigned char>(part.front())) != 0) {
      drafters.back() += "," + part;
    } else {
      drafters.push_back(part);
    }
  }
  return drafters;
}

// Why the drafter cannot draft this for the verifier; empty where it can.
std::string misfit(const DrafterChoice& drafter, const VerifierChoice& verifier, const DraftPlan& plan) {
  if (!plan.is_chain() && plan.num_paths == 1 &&
      (drafter.kind == DrafterKind::prompt_lookup || drafter.kind == DrafterKind::grammar))
    return "prompt lookup and grammars draft chains";
  // Tokens of siblings differ.
  std::vector<Token> tokens;
  for (Token token = 0; token < plan.shape.size(); ++token) tokens.push_back(token);
  try {
    require_fit(verifier, DraftTree(tokens, plan.shape.parents), drafter.has_probabilities(), "");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

void add_speculate_options(Options& command, SpeculateOptions& options) {
  command.text("--model", options.model, "smollm2, a GGUF file, a Hugging Face folder, or ngram:ORDER[:FILE]", "MODEL");
  command.file("--prompts", options.prompts,
               "A JSON object a line, {\"work\": ..., \"prompt\": ..., \"chat\": ...} (default: 40 prompts of code, "
               "prose, question and editing)");
  command.option("--drafters", "NAME,...", "prompt_lookup,suffix,layer_skip:10-14,requantised:3",
                 "As --drafter of generate",
                 [&options](const std::string& text) { options.drafters = drafters_of(text); });
  command.integers("-k,--num-speculative-tokens", options.num_speculative_tokens, {1, kSpeculativeTokensMax},
                   "K, lengths of chains (default: 2,4,8)");
  command.option("--trees", "WIDTHS,...", kNoTree, "Draft trees as 3x2x1; none: chains", [&options](const auto& text) {
    options.trees = parts_of("--trees", text, "trees as 3x2x1, or none, with a comma between two");
  });
  command.numbers("--temperatures", options.temperatures, kTemperatureRange, "0 is greedy");
  command.text("--verifier", options.verifier, "Verifier of chains; `draftproof verifiers` lists them", "NAME");
  command.text("--tree-verifier", options.tree_verifier, "Verifier of trees", "NAME");
  command.choice(
      "--policy", options.policy, {"likely", "fixed", "auto"},
      "likely: of looked-up drafts what is likely enough to be worth its rows; fixed: all up to K; auto, the "
      "default of generate: of looked-up drafts the same, of others as many as pay most here, while an account of what "
      "drafts gained is not below 0");
  command.file("--cost", options.cost,
               "Cost of a step here, as `draftproof calibrate --this-machine --out` wrote it (default: as on a "
               "processor with AVX-512 VNNI)");
  command.integer("--per-work", options.per_work, {1, 1'000'000}, "Prompts of each kind of work (default: all)");
  command.integer("--max-tokens", options.max_tokens, kTokens, "Tokens of an output (default: 64)");
  command.integer("--batch", options.batch, {1, 4096}, "Prompts that run at the same time");
  command.choice("--activations", options.activations, {"int8", "f32"}, "Arithmetic of the model");
  command.threads(options.threads);
  command.seed(options.seed, "Seed of the draws at temperatures above 0");
  command.text("--out", options.out, "Folder of the table; rows that it holds already are not measured again",
               "FOLDER");
  command.flag("--quick", options.quick, "2 prompts of each work, 24 tokens, where nothing else is said");
  add_no_download(command, options.no_download);
  const auto has_chains = [&options] { return std::ranges::find(options.trees, kNoTree) != options.trees.end(); };
  command.used_only({"--tree-verifier"}, "without --trees", [&options] {
    return std::ranges::any_of(options.trees, [](const std::string& tree) { return tree != kNoTree; });
  });
  command.used_only({"--num-speculative-tokens", "--verifier"}, "where --trees has no `none`, which means chains",
                    has_chains);
  command.used_only({"--activations"}, "with an n-gram model",
                    [&options] { return !options.model.starts_with("ngram:"); });
  command.flag(
      "--oracle", options.oracle,
      "Compare every draft of heads, as they are measured, with a slow head that sees the tokens alone (times are "
      "then no measure)");
  add_grammar_options(command, options.grammar, [&options] { return !options.prompts.empty(); });
  command.used_only({"--oracle"},
                    "with drafts that follow a grammar, which are not the head's alone; give "
                    "--unmasked-drafts beside it",
                    [&options] { return !options.grammar.any() || options.grammar.unmasked_drafts; });
  add_artefacts(command, options.artefacts);
  command.json(options.json);
}

SpeculateGrid grid_of(const SpeculateOptions& options) {
  if (options.policy == "fixed" && !options.cost.empty())
    throw usage_error("--cost",
                      "is given with --policy " + options.policy + "; expected likely or auto, which alone ask for it");
  const VerifierChoice chain_verifier = parse_verifier(options.verifier, "--verifier");
  const VerifierChoice tree_verifier = parse_verifier(options.tree_verifier, "--tree-verifier");
  SpeculateGrid grid;
  for (const std::string& name : options.drafters) {
    const DrafterChoice drafter = parse_drafter(name, "--drafters");
    if ((drafter.kind == DrafterKind::grammar || drafter.first == DrafterKind::grammar) && !options.grammar.any() &&
        options.prompts.empty())
      throw usage_error("--drafters", "has " + name +
                                          ", and there is no grammar; expected --grammar, --json-schema, "
                                          "--regex or --choice beside it");
    if (drafter.kind == DrafterKind::none)
      throw usage_error("--drafters", "has none; expected drafters, plain decoding is measured beside each of them");
    for (const std::string& tree : options.trees) {
      const bool is_tree = tree != kNoTree;
      const VerifierChoice& verifier = is_tree ? tree_verifier : chain_verifier;
      std::optional<TreeShape> shape;
      if (is_tree) shape = parse_tree(tree, "--trees");
      std::vector<int> lengths = options.num_speculative_tokens;
      if (is_tree) lengths = {DraftPlan{*shape}.draft_len_max()};
      for (const int k : lengths) {
        std::string reason;
        try {
          reason = misfit(drafter, verifier, plan_for(verifier, shape, k, ""));
        } catch (const Error& error) {
          reason = error.what();
        }
        if (!reason.empty()) {
          grid.left_out.push_back({name, tree, reason});
          break;
        }
        for (const double temperature : options.temperatures)
          grid.configurations.push_back(
              {name, k, is_tree ? std::optional(tree) : std::nullopt, text_of(verifier), temperature,
               options.policy == "likely" && drafter.has_probabilities() ? "fixed" : options.policy});
      }
    }
  }
  if (!options.cost.empty() && std::ranges::none_of(grid.configurations, &Configuration::by_cost))
    throw usage_error("--cost", "has no use: none of the drafters looks its drafts up");
  if (grid.configurations.empty())
    throw usage_error("--drafters", "no combination is left: " + grid.left_out.front().drafter + ", tree " +
                                        grid.left_out.front().tree + ": " + grid.left_out.front().reason +
                                        "; expected a drafter that goes with a tree and its verifier");
  return grid;
}

}  // namespace draftproof
