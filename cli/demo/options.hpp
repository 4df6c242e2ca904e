// The options of `draftproof demo`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/shared/grammar_options.hpp"
#include "cli/shared/options.hpp"
#include "cli/shared/top_p.hpp"
#include "engine/decode/decoding_options.hpp"

namespace draftproof {

enum class DemoDraft { ngram, ngram_lookup };

struct DemoOptions {
  std::string model = "smollm2";  // of the first part; "none": without it
  bool model_named = false;
  bool no_download = false;
  std::vector<std::string> corpus;  // empty: the licence texts of the system
  int order = 6;
  std::optional<int> draft_order;  // 3
  std::string draft = "ngram";
  int num_speculative_tokens = 5;
  std::string verifier = "chain";
  std::optional<std::string> tree;  // "2x2x1"; absent: two levels of two children, or a chain where trees do not fit
  std::int64_t tokens = 400;
  double temperature = 1.0;
  TopP top_p;
  std::int64_t top_k = 0;
  double min_p = 0.0;
  SamplerParameters samplers;
  GrammarOptions grammar;                   // of the language model's answer
  std::optional<double> draft_temperature;  // like the target's, as are the two below
  std::optional<TopP> draft_top_p;
  std::optional<std::int64_t> draft_top_k;
  double guidance_scale = 1.0;
  std::optional<std::string> negative_prompt;
  std::string prompt = "You may copy and distribute the ";
  std::uint64_t seed = 0;
  std::string sampler = "inverse";
  std::int64_t samples = 100'000;        // of either distribution in the chi-squared test
  std::int64_t continuations = 256;      // over which acceptance is measured
  std::int64_t continuation_steps = 40;  // verification steps of each
  int threads = 1;
  std::string simd;
  std::string out = "out/demo";
  bool json = false;

  DemoDraft draft_kind() const { return draft == "ngram" ? DemoDraft::ngram : DemoDraft::ngram_lookup; }
  int draft_order_or_default() const { return draft_order.value_or(3); }
};

void add_demo_options(Options& command, DemoOptions& options);

// Error (usage) naming an option that would have no effect, and what would give it one.
void validate(const DemoOptions& options);

// Meaning of the valid options for target and drafter.
DecodingOptions decoding_options(const DemoOptions& options);
RowParameters draft_parameters(const DemoOptions& options);
// The tree of the drafts as --tree would give it; nothing for chains and paths.
std::optional<std::string> tree_of(const DemoOptions& options);

// A text as tokens: its bytes.
std::vector<Token> tokens_of(const std::string& text);

}  // namespace draftproof
