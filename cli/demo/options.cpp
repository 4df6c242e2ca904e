#include "cli/demo/options.hpp"

#include <limits>

#include "base/error.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/sampling_options.hpp"
#include "engine/model/ngram_model.hpp"
#include "reference/step/draft_plan.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kTokensMax = 20'000;
constexpr std::int64_t kSamplesMin = 1'000;
constexpr std::int64_t kSamplesMax = 10'000'000;
constexpr std::int64_t kContinuationsMax = 1'000'000;
constexpr IntegerRange kOrderRange{1, NgramModel::kOrderMax};
constexpr NumberRange kGuidanceRange{-std::numeric_limits<float>::max(), std::numeric_limits<float>::max(), false,
                                     "a finite number (1: off)"};
void check_has_effect(bool given, bool has_effect, const char* option, const char* remedy) {
  if (given && !has_effect) throw usage_error(option, std::string("would have no effect: ") + remedy);
}

void check_options_of_the_drafter(const DemoOptions& options) {
  const bool is_model = options.draft_kind() == DemoDraft::ngram;
  const char* remedy = "prompt lookup has no model and no probabilities; leave it out, or use --draft ngram";
  check_has_effect(options.draft_order.has_value(), is_model, "--draft-order", remedy);
  check_has_effect(options.draft_temperature.has_value(), is_model, "--draft-temperature", remedy);
  check_has_effect(options.draft_top_p.has_value(), is_model, "--draft-top-p", remedy);
  check_has_effect(options.draft_top_k.has_value(), is_model, "--draft-top-k", remedy);
}

}  // namespace

void add_demo_options(Options& command, DemoOptions& options) {
  command.option("--model", "MODEL", options.model,
                 "Language model of the first part: smollm2, a GGUF file, a Hugging Face folder, or none (default with "
                 "--corpus)",
                 [&options](const std::string& text) {
                   options.model = text;
                   options.model_named = true;
                 });
  add_no_download(command, options.no_download);
  command.files("--corpus", options.corpus, "Text files to train on (default: the system's licence texts)");
  command.integer("--order", options.order, kOrderRange, "Order of the target's n-gram model");
  command.integer("--draft-order", options.draft_order, kOrderRange, "Order of the drafter's n-gram model (default 3)");
  command.choice("--draft", options.draft, {"ngram", "ngram-lookup"}, "Drafter: n-gram model, or prompt lookup");
  command.integer("-k,--num-speculative-tokens", options.num_speculative_tokens, {0, kSpeculativeTokensMax},
                  "K, drafts per step");
  command.text("--verifier", options.verifier, "NAME:PARAMETER=VALUE,...; `draftproof verifiers` lists them", "NAME");
  command.option("--tree", "WIDTHS", "",
                 "Children of a node at each depth, as 3x2x1 (default for verifiers of trees: 2x2x1..., K deep)",
                 [&options](const std::string& text) { options.tree = text; });
  command.integer("--tokens", options.tokens, {1, kTokensMax}, "Tokens (bytes) of the text that is shown");
  add_grammar_options(command, options.grammar);
  add_sampling_options(command, options.temperature, options.top_p, options.top_k, options.min_p);
  add_further_samplers(command, options.samplers);
  command.number("--draft-temperature", options.draft_temperature, kTemperatureRange,
                 "Temperature of the drafter (default: like the target)");
  add_top_p(command, "--draft-top-p", options.draft_top_p, "Top-p of the drafter (default: like the target)");
  command.integer("--draft-top-k", options.draft_top_k, kTopKRange, "Top-k of the drafter (default: like the target)");
  command.number("--cfg-scale", options.guidance_scale, kGuidanceRange, "Classifier-free guidance (1: off)");
  command.free_text("--negative-prompt", options.negative_prompt,
                    "Text that guidance leads away from (default: empty)");
  command.free_text("--prompt", options.prompt, "Text to continue; the continuations are shown where it is given");
  command.seed(options.seed, "Same seed, same bytes on any machine");
  command.choice("--sampler", options.sampler, {"inverse", "race"}, "Draw by inverse mass, or by exponential race");
  command.integer("--samples", options.samples, {kSamplesMin, kSamplesMax},
                  "Draws of either distribution in the chi-squared test");
  command.integer("--continuations", options.continuations, {1, kContinuationsMax},
                  "Continuations of the corpus over which acceptance is measured");
  command.threads(options.threads);
  command.text("--simd", options.simd, "Row kernels (see draftproof machine); they change no result", "NAME");
  command.text("--out", options.out, "Folder of the files it writes", "FOLDER");
  command.json(options.json);
}

void validate(const DemoOptions& options) {
  if (options.tree) parse_tree(*options.tree, "--tree");
  plan_for(parse_verifier(options.verifier, "--verifier"), decoding_options(options).tree,
           options.num_speculative_tokens, "--tree");
  check_has_effect(options.tree.has_value(), options.draft_kind() == DemoDraft::ngram, "--tree",
                   "prompt lookup drafts chains; leave it out, or use --draft ngram");
  check_options_of_the_drafter(options);
  check_has_effect(options.negative_prompt.has_value(), static_cast<float>(options.guidance_scale) != 1.0f,
                   "--negative-prompt", "guidance is off; give a --cfg-scale other than 1");
}

RowParameters draft_parameters(const DemoOptions& options) {
  return row_parameters(options.draft_temperature.value_or(options.temperature),
                        options.draft_top_p.value_or(options.top_p), options.draft_top_k.value_or(options.top_k),
                        options.min_p);
}

DecodingOptions decoding_options(const DemoOptions& options) {
  DecodingOptions decoding;
  decoding.parameters = row_parameters(options.temperature, options.top_p, options.top_k, options.min_p);
  decoding.parameters.samplers = options.samplers;
  decoding.parameters.guidance_scale = static_cast<float>(options.guidance_scale);
  decoding.unconditional_prompt = tokens_of(options.negative_prompt.value_or(""));
  decoding.stop.max_tokens = options.tokens;
  decoding.seed = options.seed;
  decoding.verify.sampler = options.sampler == "race" ? Sampler::race : Sampler::inverse;
  decoding.verify.raw_logprobs = false;
  decoding.verify.verifier = parse_verifier(options.verifier, "--verifier");
  if (const auto tree = tree_of(options)) decoding.tree = parse_tree(*tree, "--tree");
  decoding.num_speculative_tokens = options.num_speculative_tokens;
  return decoding;
}

std::optional<std::string> tree_of(const DemoOptions& options) {
  if (options.tree) return options.tree;
  const VerifierInfo& info = parse_verifier(options.verifier, "--verifier").info();
  if (info.draft == DraftForm::chain || info.takes_paths() || options.num_speculative_tokens == 0 ||
      options.draft_kind() != DemoDraft::ngram)
    return std::nullopt;
  std::string tree = "2";
  for (int depth = 1; depth < options.num_speculative_tokens; ++depth) tree += depth == 1 ? "x2" : "x1";
  return tree;
}

std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

}  // namespace draftproof
