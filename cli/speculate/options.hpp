// The options of `draftproof speculate`: what is measured, and on what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/shared/artefacts.hpp"
#include "cli/shared/grammar_options.hpp"
#include "cli/shared/options.hpp"

namespace draftproof {

struct SpeculateOptions {
  std::string model = "smollm2";
  std::string prompts;  // a JSONL file; empty: the project's own
  std::vector<std::string> drafters{"prompt_lookup", "suffix", "layer_skip:10-14", "requantised:3"};
  std::vector<int> num_speculative_tokens{2, 4, 8};
  std::vector<std::string> trees{"none"};
  std::vector<double> temperatures{0.0, 1.0};
  std::string verifier = "chain";
  std::string tree_verifier = "target_only";
  std::string policy = "likely";
  bool oracle = false;
  GrammarOptions grammar;
  std::string cost;                      // of the likely policy: what calibrate --this-machine wrote
  std::optional<std::int64_t> per_work;  // absent: every prompt
  std::optional<std::int64_t> max_tokens;
  std::int64_t batch = 1;
  std::string activations = "int8";
  int threads = 1;
  std::uint64_t seed = 0;
  std::string out = "out/speculate";
  bool quick = false;
  bool no_download = false;
  Artefacts artefacts;
  bool json = false;

  std::int64_t prompts_per_work() const { return per_work.value_or(quick ? 2 : 0); }  // 0: all
  std::int64_t output_tokens() const { return max_tokens.value_or(quick ? 24 : 64); }
};

void add_speculate_options(Options& command, SpeculateOptions& options);

// Settings of one row of the table, apart from the kind of work.
struct Configuration {
  std::string drafter;
  int k = 0;                        // drafts in a row at most: length of a chain, depth of a tree
  std::optional<std::string> tree;  // absent: chains
  std::string verifier;
  double temperature = 0.0;
  std::string policy = "fixed";  // likely: of looked-up drafts; auto: of all drafters

  bool by_cost() const { return policy != "fixed"; }
  // Temperature of drafters with probabilities: the request's. But a greedy draft has no second child, so that trees of
  // greedy requests are drafted at 1.
  double draft_temperature() const { return tree && temperature == 0.0 ? 1.0 : temperature; }
};

struct LeftOut {
  std::string drafter;
  std::string tree;
  std::string reason;
};

struct SpeculateGrid {
  std::vector<Configuration> configurations;
  std::vector<LeftOut> left_out;  // drafters with trees, and verifiers, that do not go together
};

// Every drafter, length or tree, and temperature. Errors (usage): a drafter, tree or verifier that there is not, an
// empty list, no combination that fits.
SpeculateGrid grid_of(const SpeculateOptions& options);

}  // namespace draftproof
