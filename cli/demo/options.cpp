#include "cli/demo/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <system_error>
#include <thread>

#include "cli/shared/command.hpp"
#include "reference/draft/draft_plan.hpp"
#include "reference/error.hpp"
#include "reference/model/ngram_model.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kTokensMax = 20'000;
constexpr std::int64_t kSamplesMin = 1'000;
constexpr std::int64_t kSamplesMax = 10'000'000;
constexpr std::int64_t kContinuationsMax = 1'000'000;
constexpr int kThreadsMax = 1024;
// Below it, divided logits leave the range of the fixed-point masses.
constexpr double kTemperatureMin = 1e-6;

void check_count(const char* option, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    throw usage_error(option, "it is " + std::to_string(value) + "; a count from " + std::to_string(least) + " to " +
                                  std::to_string(most) + " is right");
}

void require(bool right, const char* option, double value, const char* range) {
  if (right) return;
  std::ostringstream text;
  text << "it is " << value << "; " << range << " is right";
  throw usage_error(option, text.str());
}

void check_temperature(const char* option, double value) {
  const bool is_float = value <= static_cast<double>(std::numeric_limits<float>::max());
  require(value == 0.0 || (value >= kTemperatureMin && is_float), option, value,
          "0 (greedy) or a finite number from 1e-6");
}

void check_top_p(const char* option, double value) {
  require(value > 0.0 && value <= 1.0 && static_cast<float>(value) > 0.0f, option, value, "a number in (0, 1]");
}

void check_one_of(const char* option, const std::string& value, std::initializer_list<const char*> names) {
  if (std::find(names.begin(), names.end(), value) != names.end()) return;
  std::string known;
  for (const char* name : names) known.append(known.empty() ? "" : " or ").append(name);
  throw usage_error(option, "it is '" + value + "'; " + known + " is right");
}

void check_has_effect(bool given, bool has_effect, const char* option, const char* remedy) {
  if (given && !has_effect) throw usage_error(option, std::string("would have no effect: ") + remedy);
}

std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc{} || end != text.data() + text.size())
    throw usage_error("--seed", "it is '" + text + "'; a whole number in [0, 2^64) is right");
  return seed;
}

void check_options_of_the_drafter(const DemoOptions& options) {
  const bool is_model = options.draft_kind() == DemoDraft::ngram;
  const char* remedy = "prompt lookup has no model and no probabilities; leave it out, or use --draft ngram";
  check_has_effect(options.draft_order.has_value(), is_model, "--draft-order", remedy);
  check_has_effect(options.draft_temperature.has_value(), is_model, "--draft-temperature", remedy);
  check_has_effect(options.draft_top_p.has_value(), is_model, "--draft-top-p", remedy);
  check_has_effect(options.draft_top_k.has_value(), is_model, "--draft-top-k", remedy);
  if (options.draft_temperature) check_temperature("--draft-temperature", *options.draft_temperature);
  if (options.draft_top_p) check_top_p("--draft-top-p", *options.draft_top_p);
  if (options.draft_top_k)
    check_count("--draft-top-k", *options.draft_top_k, 0, std::numeric_limits<std::int32_t>::max());
  check_count("--draft-order", options.draft_order_or_default(), 1, NgramModel::kOrderMax);
}

}  // namespace

void add_demo_options(CLI::App& command, DemoOptions& options) {
  options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  command.add_option("--corpus", options.corpus, "Text files to train on (default: the system's licence texts)")
      ->type_name("FILE");
  command.add_option("--order", options.order, "Order of the target's n-gram model (default 6)");
  command.add_option("--draft-order", options.draft_order, "Order of the drafter's n-gram model (default 3)");
  command.add_option("--draft", options.draft, "Drafter: ngram (default), or ngram-lookup (prompt lookup)");
  command.add_option("-k,--num-speculative-tokens", options.num_speculative_tokens, "K, drafts per step (default 5)");
  command.add_option("--verifier", options.verifier,
                     "NAME or NAME:PARAMETER=VALUE,... (default chain); `draftproof verifiers` lists them");
  command.add_option("--tree", options.tree,
                     "Children of a node at each depth, as 3x2x1 (default for verifiers of trees: 2x2x1..., K deep)");
  command.add_option("--tokens", options.tokens, "Tokens (bytes) of the text that is shown (default 400)");
  command.add_option("--temperature", options.temperature, "0 is greedy (default 1)");
  command.add_option("--top-p", options.top_p, "Nucleus (default 1: off)");
  command.add_option("--top-k", options.top_k, "Tokens kept (default 0: off)");
  command.add_option("--min-p", options.min_p, "Least share of the likeliest token (default 0: off)");
  command.add_option("--draft-temperature", options.draft_temperature, "Of the drafter (default: like the target)");
  command.add_option("--draft-top-p", options.draft_top_p, "Of the drafter (default: like the target)");
  command.add_option("--draft-top-k", options.draft_top_k, "Of the drafter (default: like the target)");
  command.add_option("--guidance-scale", options.guidance_scale, "Classifier-free guidance (default 1: off)");
  command.add_option("--negative-prompt", options.negative_prompt, "What guidance leads away from (default: empty)");
  command.add_option("--prompt", options.prompt, "Text to continue");
  // CLI11 would wrap a negative number around.
  command
      .add_option_function<std::string>(
          "--seed", [&options](const std::string& text) { options.seed = parse_seed(text); },
          "Same seed, same bytes on any machine (default 0)")
      ->type_name("UINT");
  command.add_option("--sampler", options.sampler, "inverse (default) or race");
  command.add_option("--samples", options.samples,
                     "Draws of either distribution in the chi-squared test (default 100000)");
  command.add_option("--continuations", options.continuations,
                     "Continuations of the corpus over which acceptance is measured (default 256)");
  command.add_option("--threads", options.threads, "Threads; they change no result (default: all cores)");
  command.add_option("--simd", options.simd, "Row kernels (see draftproof machine); they change no result");
  command.add_option("--out", options.out, "Folder of the files it writes (default out/demo)");
  add_json_flag(command, options.json);
}

void validate(const DemoOptions& options) {
  check_count("--order", options.order, 1, NgramModel::kOrderMax);
  check_one_of("--draft", options.draft, {"ngram", "ngram-lookup"});
  check_one_of("--sampler", options.sampler, {"inverse", "race"});
  check_count("--num-speculative-tokens", options.num_speculative_tokens, 0, kSpeculativeTokensMax);
  parse_verifier(options.verifier, "--verifier");
  if (options.tree) parse_tree(*options.tree, "--tree");
  plan_for(parse_verifier(options.verifier, "--verifier"), decoding_options(options).tree,
           options.num_speculative_tokens, "--tree");
  check_has_effect(options.tree.has_value(), options.draft_kind() == DemoDraft::ngram, "--tree",
                   "prompt lookup drafts chains; leave it out, or use --draft ngram");
  check_count("--tokens", options.tokens, 1, kTokensMax);
  check_temperature("--temperature", options.temperature);
  check_top_p("--top-p", options.top_p);
  check_count("--top-k", options.top_k, 0, std::numeric_limits<std::int32_t>::max());
  require(options.min_p >= 0.0 && options.min_p <= 1.0, "--min-p", options.min_p, "a number in [0, 1]");
  check_options_of_the_drafter(options);
  require(std::abs(options.guidance_scale) <= static_cast<double>(std::numeric_limits<float>::max()),
          "--guidance-scale", options.guidance_scale, "a finite number (1: off)");
  check_has_effect(options.negative_prompt.has_value(), static_cast<float>(options.guidance_scale) != 1.0f,
                   "--negative-prompt", "guidance is off; give a --guidance-scale other than 1");
  check_count("--samples", options.samples, kSamplesMin, kSamplesMax);
  check_count("--continuations", options.continuations, 1, kContinuationsMax);
  check_count("--threads", options.threads, 1, kThreadsMax);
  if (options.out.empty()) throw usage_error("--out", "it is empty; the name of a folder is right");
}

RowParameters draft_parameters(const DemoOptions& options) {
  RowParameters parameters;
  parameters.temperature = static_cast<float>(options.draft_temperature.value_or(options.temperature));
  parameters.filters.top_p = static_cast<float>(options.draft_top_p.value_or(options.top_p));
  parameters.filters.top_k = static_cast<std::int32_t>(options.draft_top_k.value_or(options.top_k));
  parameters.filters.min_p = static_cast<float>(options.min_p);
  return parameters;
}

DecodingOptions decoding_options(const DemoOptions& options) {
  DecodingOptions decoding;
  decoding.parameters.temperature = static_cast<float>(options.temperature);
  decoding.parameters.filters.top_p = static_cast<float>(options.top_p);
  decoding.parameters.filters.top_k = static_cast<std::int32_t>(options.top_k);
  decoding.parameters.filters.min_p = static_cast<float>(options.min_p);
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
  const bool draws_paths = info.verifier == Verifier::greedy_multipath || info.verifier == Verifier::coupled_list;
  if (info.draft == DraftForm::chain || draws_paths || options.num_speculative_tokens == 0 ||
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
