#include "studies/speculate/speculate_request.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "reference/step/draft_plan.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kTokensMax = 4096;
constexpr std::int64_t kOutputsMax = 256;
constexpr std::int32_t kTokenBudget = 2048;

void require_in(std::int64_t value, std::int64_t least, std::int64_t most, const char* name) {
  if (value < least || value > most)
    throw usage_error(name, "is " + std::to_string(value) + "; expected a whole number in [" + std::to_string(least) +
                                ", " + std::to_string(most) + "]");
}

std::optional<TreeShape> tree_of(const SpeculateSettings& settings) {
  if (settings.tree.empty()) return std::nullopt;
  return parse_tree(settings.tree, "tree");
}

std::vector<Token> tokens_of(const SpeculateSettings& settings, const TextModel& model, const std::string& text) {
  return settings.chat ? model.chat_tokens(text, "chat") : model.tokenizer->encode(text);
}

RowParameters parameters_of(const SpeculateSettings& settings) {
  RowParameters parameters;
  parameters.temperature = static_cast<float>(settings.temperature);
  parameters.filters.top_p = static_cast<float>(settings.top_p);
  parameters.filters.top_k = static_cast<std::int32_t>(settings.top_k);
  parameters.filters.min_p = static_cast<float>(settings.min_p);
  parameters.guidance_scale = static_cast<float>(settings.cfg_scale);
  return parameters;
}

}  // namespace

void validate(const SpeculateSettings& settings) {
  require_in(settings.max_tokens, 1, kTokensMax, "max tokens");
  require_in(settings.outputs, 1, kOutputsMax, "outputs");
  require_in(settings.num_speculative_tokens, 0, kSpeculativeTokensMax, "K");
  require_in(settings.top_k, 0, 1 << 30, "top_k");
  require_in(settings.threads, 1, 1024, "threads");
  validate(parameters_of(settings), "target parameters");
  if (parse_drafter(settings.drafter, "drafter").kind == DrafterKind::none)
    throw usage_error("drafter", "is none; expected one that drafts: plain decoding is the lane above");
  speculation_of(settings);
}

SpeculateRequest::SpeculateRequest(const SpeculateSettings& settings, const TextModel& model)
    : prompt(tokens_of(settings, model, settings.prompt)) {
  decoding.parameters = parameters_of(settings);
  if (decoding.parameters.guidance_scale != 1.0f)
    decoding.unconditional_prompt = tokens_of(settings, model, settings.negative_prompt);
  if (!settings.ignore_eos) decoding.stop.eos_ids = model.tokenizer->end_tokens();
  decoding.stop.max_tokens = settings.max_tokens;
  decoding.detokeniser = model.tokenizer.get();
  decoding.seed = settings.seed;
  decoding.verify.logprobs = false;
  decoding.verify.raw_logprobs = false;
  decoding.verify.verifier = parse_verifier(settings.verifier, "verifier");
  decoding.tree = tree_of(settings);
  decoding.num_speculative_tokens = settings.num_speculative_tokens;
}

SpeculationChoice speculation_of(const SpeculateSettings& settings) {
  const DraftPlan plan = plan_for(parse_verifier(settings.verifier, "verifier"), tree_of(settings),
                                  settings.num_speculative_tokens, "tree");
  SpeculationChoice choice;
  choice.rule = SpeculationRule::fixed;
  choice.num_drafts = plan.num_paths * plan.shape.size();
  return choice;
}

EngineOptions engine_options(const SpeculateSettings& settings, const SpeculateRequest& request, bool speculates) {
  const DecodingOptions& decoding = request.decoding;
  EngineOptions options;
  if (speculates) options.policy = SpeculationPolicy(speculation_of(settings));
  // Room for all outputs at the same time, with the largest draft behind each.
  const auto blocks_of = [&](std::size_t prompt_len) {
    return blocks_for(static_cast<std::int64_t>(prompt_len) + 1 + settings.max_tokens + kDraftNodesMax) + 1;
  };
  std::int64_t blocks = blocks_of(request.prompt.size());
  if (decoding.parameters.guidance_scale != 1.0f) blocks += blocks_of(decoding.unconditional_prompt.size());
  options.scheduler.num_blocks = static_cast<std::int32_t>(blocks * settings.outputs);
  options.scheduler.context_len_max = 1 << 20;  // lowered to the model's
  options.scheduler.running_max = static_cast<std::int32_t>(settings.outputs);
  options.scheduler.token_budget = kTokenBudget;
  return options;
}

}  // namespace draftproof
