#include "studies/speculate/speculate_request.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "engine/grammar/compile_grammar.hpp"
#include "reference/step/draft_plan.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kTokensMax = 4096;
constexpr std::int64_t kOutputsMax = 256;

void require_in(std::int64_t value, std::int64_t least, std::int64_t most, const char* name) {
  if (value < least || value > most)
    throw usage_error(name, "is " + std::to_string(value) + "; expected a whole number in [" + std::to_string(least) +
                                ", " + std::to_string(most) + "]");
}

std::vector<Token> tokens_of(const SpeculateSettings& settings, const TextModel& model, const std::string& text) {
  return settings.chat ? model.chat_tokens(text, "chat") : model.tokenizer->encode(text);
}

// Options that do not depend on the model.
DecodingOptions decoding_of(const SpeculateSettings& settings) {
  DecodingOptions decoding;
  decoding.parameters = row_parameters(settings.temperature, settings.top_p, settings.top_k, settings.min_p);
  decoding.parameters.guidance_scale = static_cast<float>(settings.cfg_scale);
  decoding.verify.verifier = parse_verifier(settings.verifier, "verifier");
  if (!settings.tree.empty()) decoding.tree = parse_tree(settings.tree, "tree");
  decoding.num_speculative_tokens = settings.num_speculative_tokens;
  return decoding;
}

}  // namespace

void validate(const SpeculateSettings& settings) {
  require_in(settings.max_tokens, 1, kTokensMax, "max tokens");
  require_in(settings.outputs, 1, kOutputsMax, "outputs");
  require_in(settings.num_speculative_tokens, 0, kSpeculativeTokensMax, "K");
  require_in(settings.top_k, 0, 1 << 30, "top_k");
  require_in(settings.threads, 1, kModelThreadsMax, "threads");
  if (parse_drafter(settings.drafter, "drafter").kind == DrafterKind::none)
    throw usage_error("drafter", "is none; expected one that drafts: plain decoding is the lane above");
  validate(decoding_of(settings).parameters, "target parameters");
  speculation_of(settings);
}

std::vector<DecodeJob> jobs_of(const SpeculateSettings& settings, const TextModel& model) {
  DecodeJob job{tokens_of(settings, model, settings.prompt), decoding_of(settings), "prompt"};
  DecodingOptions& decoding = job.decoding;
  if (decoding.parameters.guidance_scale != 1.0f)
    decoding.unconditional_prompt = tokens_of(settings, model, settings.negative_prompt);
  if (!settings.ignore_eos) decoding.stop.eos_ids = model.tokenizer->end_tokens();
  if (!settings.grammar.empty()) {
    GrammarCompiler grammars(model.tokenizer, model.model->vocab_size(), decoding.stop.eos_ids);
    decoding.grammar.grammar = grammars.compile(parse_grammar(settings.grammar, "grammar"));
  }
  decoding.stop.max_tokens = settings.max_tokens;
  decoding.detokeniser = model.tokenizer.get();
  decoding.verify.logprobs = false;
  decoding.verify.raw_logprobs = false;
  std::vector<DecodeJob> jobs(static_cast<std::size_t>(settings.outputs), job);
  for (std::size_t output = 0; output < jobs.size(); ++output) jobs[output].decoding.seed = settings.seed + output;
  return jobs;
}

SpeculationChoice speculation_of(const SpeculateSettings& settings) {
  return whole_drafts(decoding_of(settings), "tree");
}

}  // namespace draftproof
