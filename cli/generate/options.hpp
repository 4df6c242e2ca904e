// The options of `draftproof generate`, and the requests that they make.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "cli/shared/grammar_options.hpp"
#include "cli/shared/options.hpp"
#include "cli/shared/top_p.hpp"
#include "engine/decode/decoding_options.hpp"
#include "engine/decode/engine.hpp"
#include "engine/draft/drafter_choice.hpp"
#include "engine/grammar/compile_grammar.hpp"
#include "engine/model/text_model.hpp"

namespace draftproof {

// Parameters that may differ between the requests of a run; what a line of --prompts leaves out is as the options say.
struct RequestParameters {
  bool chat = false;
  std::int64_t max_tokens = 128;
  double temperature = 0.0;
  TopP top_p;
  std::int64_t top_k = 0;
  double min_p = 0.0;
  SamplerParameters samplers;
  double cfg_scale = 1.0;
  std::optional<std::string> negative_prompt;
  std::uint64_t seed = 0;
  std::vector<std::string> stop;
  std::optional<GrammarSource> grammar;
};

struct GenerateOptions {
  std::string model = "smollm2";
  std::optional<std::time_t> chat_date;
  std::optional<std::string> prompt;
  std::string prompts;  // a JSONL file
  std::int64_t outputs = 1;
  RequestParameters request;
  double repetition_penalty = 1.0;
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  std::vector<std::string> logit_bias;  // ID=VALUE
  std::vector<std::string> bad_words;
  std::int64_t min_tokens = 0;
  bool ignore_eos = false;
  GrammarOptions grammar;  // of requests that have none of their own
  std::string guidance_form = "logits";
  std::optional<std::int64_t> logprobs;
  std::optional<std::int64_t> prompt_logprobs;
  std::vector<int> logprob_token_ids;
  std::optional<std::int64_t> beams;
  std::optional<std::int64_t> best_of;  // nothing: all beams
  double length_penalty = 1.0;
  std::string beam_stopping = "exact";

  std::string drafter = "auto";     // see automatic_drafter()
  double draft_temperature = -1.0;  // below 0: like the request's
  bool guided_drafts = false;
  std::string draft_kv = "keep";
  std::string heterogeneous_vocab = "tli";
  int sa_threshold = kSaThreshold;
  std::string verifier = "chain";
  std::optional<std::string> tree;
  int num_speculative_tokens = 8;
  std::string policy;  // empty: auto, of all drafts up to K
  std::string cost;    // of the goodput and the likely policy: what calibrate --this-machine wrote
  std::string sampler = "inverse";

  std::int64_t batch = 8;
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> kv_blocks;
  std::int64_t token_budget = 2048;
  std::string activations = "int8";
  int threads = 1;
  std::string simd;
  std::string trace;          // a file
  std::string metrics;        // a file
  std::string record_drafts;  // a file
  bool no_download = false;
  bool json = false;
};

void add_generate_options(Options& command, GenerateOptions& options);

// Meaning of --drafter: nothing with --beams. Errors (usage, input) as of parse_drafter() and model_path().
DrafterChoice drafter_of(const GenerateOptions& options);

// Errors (usage) naming an option whose value does not go with the others.
void validate(const GenerateOptions& options);

struct PromptRequest {
  std::string where;  // "--prompt", or "FILE, line 3"
  std::string prompt;
  RequestParameters parameters;
};

// The prompt of --prompt, or those of --prompts: a JSON object a line, with "prompt" and what RequestParameters names.
// Errors (input) name file and line.
std::vector<PromptRequest> read_prompts(const GenerateOptions& options);

// The part that does not depend on the request; its spans point into the object.
class RequestMaker {
 public:
  // Errors: those of the options' grammar.
  RequestMaker(const GenerateOptions& options, const TextModel& model);

  // The prompt as tokens, the model's chat template around it where asked for.
  std::vector<Token> tokens_of(const PromptRequest& request) const;
  DecodingOptions decoding_options(const PromptRequest& request) const;

 private:
  const GenerateOptions& options_;
  const TextModel& model_;
  std::vector<LogitBias> logit_bias_;
  std::optional<BadWords> bad_words_;
  std::vector<Token> end_tokens_;
  mutable GrammarCompiler grammars_;
  std::shared_ptr<const Grammar> grammar_;  // of the options
};

}  // namespace draftproof
