#include "cli/generate/options.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_lines.hpp"
#include "base/strict_number.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/sampling_options.hpp"
#include "engine/chat/chat_template.hpp"
#include "reference/step/draft_plan.hpp"
#include "reference/trace/trace_settings.hpp"

namespace draftproof {
namespace {

constexpr IntegerRange kTokens{1, 1'000'000};
constexpr NumberRange kFinite{-std::numeric_limits<float>::max(), std::numeric_limits<float>::max(), false,
                              "a finite number"};
constexpr NumberRange kAboveZero{1e-6, 1e6};
constexpr std::int64_t kLogprobsMax = 1000;

// Errors (usage): a value out of range; a sampler that has another number or state in every row, which a text that is
// made here has not got.
void require_stateless(const SamplerParameters& samplers, const std::string& where) {
  if (samplers.has_state())
    throw usage_error(where, std::string(samplers.mirostat != 0.0f ? "mirostat"
                                         : samplers.adapts()       ? "adaptive_target"
                                                                   : "xtc_probability") +
                                 " would need another number or state in every row; expected " +
                                 (samplers.mirostat != 0.0f ? "0"
                                  : samplers.adapts()       ? "-1"
                                                            : "0 or 1") +
                                 " here (files of single draws and of filters take any, docs/trace.md)");
  validate(samplers, where);
}

float SamplerParameters::*sampler_named(const std::string& name) {
  for (const SamplerParameterName& sampler : sampler_parameter_names())
    if (sampler.name == name) return sampler.value;
  return nullptr;
}

// Reads the fields of one line of --prompts.
class PromptLine {
 public:
  PromptLine(std::string where, const nlohmann::json& line) : where_(std::move(where)), line_(line) {}

  void read(PromptRequest& request) {
    RequestParameters& p = request.parameters;
    request.where = where_;
    for (const auto& [name, value] : line_.items()) {
      if (name == "prompt")
        request.prompt = text(name, value);
      else if (name == "chat")
        p.chat = flag(name, value);
      else if (name == "max_tokens")
        p.max_tokens = integer(name, value, kTokens.least, kTokens.most);
      else if (name == "temperature")
        p.temperature = number(name, value);
      else if (name == "top_p")
        p.top_p = top_p(name, value);
      else if (name == "top_k")
        p.top_k = integer(name, value, 0, std::numeric_limits<std::int32_t>::max());
      else if (name == "min_p")
        p.min_p = number(name, value);
      else if (const auto sampler = sampler_named(name))
        p.samplers.*sampler = static_cast<float>(number(name, value));
      else if (name == "cfg_scale")
        p.cfg_scale = number(name, value);
      else if (name == "negative_prompt")
        p.negative_prompt = text(name, value);
      else if (name == "seed")
        p.seed = static_cast<std::uint64_t>(integer(name, value, 0, std::numeric_limits<std::int64_t>::max()));
      else if (name == "stop")
        p.stop = texts(name, value);
      else if (is_grammar_field(name))
        own_grammar(p, grammar_field(name, value, where_));
      else
        throw fail("has the field \"" + name +
                   "\"; expected prompt, chat, max_tokens, temperature, top_p, top_k, min_p, "
                   "a further sampler (docs/trace.md), cfg_scale, negative_prompt, seed, stop, grammar, json_schema, "
                   "regex or choice");
    }
    if (!line_.contains("prompt")) throw fail("has no \"prompt\"");
  }

 private:
  Error fail(const std::string& what) const { return input_error(where_, what); }
  Error wrong(const std::string& name, const nlohmann::json& value, const std::string& expected) const {
    return fail("\"" + name + "\" is " + value.dump() + "; expected " + expected);
  }
  std::string text(const std::string& name, const nlohmann::json& value) const {
    if (!value.is_string()) throw wrong(name, value, "a text");
    return value.get<std::string>();
  }
  bool flag(const std::string& name, const nlohmann::json& value) const {
    if (!value.is_boolean()) throw wrong(name, value, "true or false");
    return value.get<bool>();
  }
  std::int64_t integer(const std::string& name, const nlohmann::json& value, std::int64_t least,
                       std::int64_t most) const {
    if (!value.is_number_integer() || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      throw wrong(name, value, "a whole number in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
    return value.get<std::int64_t>();
  }
  double number(const std::string& name, const nlohmann::json& value) const {
    if (!value.is_number()) throw wrong(name, value, "a number");
    return value.get<double>();
  }
  TopP top_p(const std::string& name, const nlohmann::json& value) const {
    if (!value.is_string()) return {number(name, value)};
    const std::optional<TopP> read = read_top_p(text(name, value));
    if (!read) throw wrong(name, value, kTopPExpected);
    return *read;
  }
  std::vector<std::string> texts(const std::string& name, const nlohmann::json& value) const {
    if (value.is_string()) return {value.get<std::string>()};
    if (!value.is_array()) throw wrong(name, value, "a text or a list of texts");
    std::vector<std::string> all;
    for (const nlohmann::json& entry : value) all.push_back(text(name, entry));
    return all;
  }

  void own_grammar(RequestParameters& p, GrammarSource source) {
    if (has_grammar_) throw fail("has two grammars; expected one of grammar, json_schema, regex and choice");
    has_grammar_ = true;
    p.grammar = std::move(source);
  }

  std::string where_;
  const nlohmann::json& line_;
  bool has_grammar_ = false;
};

// Declares where options have no use: beside others, and where nothing is sampled or drafted.
void add_uses(Options& command, GenerateOptions& options, const std::vector<std::string>& further_samplers) {
  const auto samples = [&options] { return !options.beams; };
  command.used_only({"--temperature", "--top-p", "--top-k", "--min-p", "--repetition-penalty", "--frequency-penalty",
                     "--presence-penalty", "--logit-bias", "--bad-words"},
                    "with --beams", samples);
  command.used_only({"--stop", "--min-tokens", "--logprobs", "--prompt-logprobs", "--cfg-scale", "--guidance-form",
                     "--negative-prompt", "--sampler", "--seed"},
                    "with --beams", samples);
  command.used_only({"--draft-temperature", "--guided-drafts", "--verifier", "--tree", "--num-speculative-tokens",
                     "--policy", "--cost", "--record-drafts"},
                    "with --beams", samples);
  command.used_only({"--context", "--kv-blocks", "--token-budget", "--metrics"}, "with --beams", samples);
  command.used_only(further_samplers, "with --beams", samples);
  command.used_only({"--grammar", "--json-schema", "--regex", "--choice"}, "with --beams", samples);
  command.used_only({"--logprob-token-ids"}, "without --logprobs, --prompt-logprobs or --trace",
                    [&options] { return options.logprobs || options.prompt_logprobs || !options.trace.empty(); });
  command.used_only({"--best-of", "--length-penalty", "--beam-stopping"}, "without --beams",
                    [&options] { return options.beams.has_value(); });
  const auto drafts = [&options] { return options.drafter != "none"; };
  command.used_only({"--draft-temperature", "--tree", "--num-speculative-tokens", "--policy", "--cost"},
                    "with --drafter none", drafts);
  command.used_only({"--verifier"}, "with --drafter none, unless it is a coupled one", [=, &options] {
    return drafts() || parse_verifier(options.verifier, "--verifier").info().is_coupled();
  });
  command.used_only({"--record-drafts"}, "without a drafter that is a head, head:PATH", [&options] {
    const DrafterChoice drafter = drafter_of(options);
    return drafter.kind == DrafterKind::head && drafter.first == DrafterKind::none;
  });
  command.used_only({"--draft-temperature"}, "with a drafter that has no probabilities",
                    [&options] { return drafter_of(options).has_probabilities(); });
  command.used_only({"--draft-kv"}, "with a drafter that is no model", [&options] {
    const DrafterKind kind = drafter_of(options).kind;
    return kind == DrafterKind::model || kind == DrafterKind::layer_skip || kind == DrafterKind::requantised;
  });
  command.used_only({"--heterogeneous-vocab"}, "with a drafter that is not model:PATH",
                    [&options] { return drafter_of(options).kind == DrafterKind::model; });
  command.used_only({"--sa-threshold"}, "with a drafter that is not suffix+NAME",
                    [&options] { return drafter_of(options).first == DrafterKind::suffix; });
  command.used_only({"--guided-drafts"}, "with a drafter that is no head",
                    [&options] { return drafter_of(options).kind == DrafterKind::head; });
  command.used_only(
      {"--negative-prompt", "--guidance-form", "--guided-drafts"}, "without a --cfg-scale other than 1",
      [&options] { return static_cast<float>(options.request.cfg_scale) != 1.0f || !options.prompts.empty(); });
  command.used_only({"--activations"}, "with an n-gram model",
                    [&options] { return !options.model.starts_with("ngram:"); });
}

}  // namespace

DrafterChoice drafter_of(const GenerateOptions& options) {
  if (options.beams) return {};
  const bool automatic = options.drafter == "auto";
  DrafterChoice choice =
      parse_drafter(automatic ? automatic_drafter(model_path(options.model)) : options.drafter, "--drafter");
  choice.guided = options.guided_drafts;
  choice.discards_kv = options.draft_kv == "discard";
  choice.matches_strings = choice.kind == DrafterKind::model && options.heterogeneous_vocab == "slem";
  choice.sa_threshold = options.sa_threshold;
  return choice;
}

void add_generate_options(Options& command, GenerateOptions& options) {
  RequestParameters& request = options.request;
  command.text("--model", options.model,
               "smollm2, a GGUF file, a Hugging Face folder, or ngram:ORDER[:FILE] (an n-gram model of a text)",
               "MODEL");
  command.option("--prompt", "TEXT", "", "Text to continue",
                 [&options](const std::string& text) { options.prompt = text; });
  command.file("--prompts", options.prompts,
               "Many: a JSON object a line, {\"prompt\": ..., \"chat\": ..., \"max_tokens\": ...}");
  command.integer("--outputs", options.outputs, {1, 4096},
                  "Outputs of the prompt, each a request, with the seeds S, S + 1, ...");
  command.flag("--chat", request.chat, "Put the prompt into the model's chat template");
  command.option("--chat-date", "YYYY-MM-DD", "", "The day that chat templates write (default: today)",
                 [&options](const std::string& text) { options.chat_date = parse_chat_date(text, "--chat-date"); });
  command.integer("--max-tokens", request.max_tokens, kTokens, "Tokens of the output");
  add_sampling_options(command, request.temperature, request.top_p, request.top_k, request.min_p);
  const std::vector<std::string> further_samplers =
      add_further_samplers(command, request.samplers, [&options] { return !options.prompts.empty(); });
  command.integer("--penalty-last-n", request.samplers.penalty_last_n, {-1, 16'777'216},
                  "Tokens of the output that penalties look at, beside the whole prompt for repetition (-1: all)");
  command.number("--repetition-penalty", options.repetition_penalty, kAboveZero,
                 "Penalty of tokens of prompt and output (1: off)");
  command.number("--frequency-penalty", options.frequency_penalty, kFinite, "Per occurrence in the output (0: off)");
  command.number("--presence-penalty", options.presence_penalty, kFinite, "Penalty of tokens of the output (0: off)");
  command.texts("--logit-bias", options.logit_bias, "Added to a token's logit; may be given again", "ID=VALUE");
  command.texts("--bad-words", options.bad_words, "Must not appear, as these tokens; may be given again", "TEXT");
  command.texts("--stop", request.stop, "Ends the output; may be given again", "TEXT");
  command.integer("--min-tokens", options.min_tokens, {0, 1'000'000}, "Tokens before which nothing ends the output");
  command.flag("--ignore-eos", options.ignore_eos, "Go on behind the token that ends a turn");
  add_grammar_options(command, options.grammar, [&options] { return !options.prompts.empty(); });
  command.integer("--logprobs", options.logprobs, {0, kLogprobsMax},
                  "Log-probabilities of each token and of the N likeliest");
  command.integer("--prompt-logprobs", options.prompt_logprobs, {0, kLogprobsMax},
                  "The same of each token of the prompt, which is computed whole");
  command.integers("--logprob-token-ids", options.logprob_token_ids, {0, std::numeric_limits<std::int32_t>::max()},
                   "Tokens whose log-probabilities both list, too, and --trace records; at most 128");
  command.integer("--beams", options.beams, {1, 64}, "Beam search of this width instead of sampling");
  command.integer("--best-of", options.best_of, {1, 64}, "Hypotheses that beam search keeps (default: as --beams)");
  command.number("--length-penalty", options.length_penalty, {-100.0, 100.0, false, "a number in [-100, 100]"},
                 "Score: sum of log-probabilities over length^this");
  command.choice("--beam-stopping", options.beam_stopping, {"exact", "current_length", "first_finished"},
                 "When beam search stops: nothing better can come, none is better at its length, enough have ended");
  command.number("--cfg-scale", request.cfg_scale, kFinite, "Classifier-free guidance (1: off)");
  command.choice("--guidance-form", options.guidance_form, values_of_setting("guidance_form"),
                 "What guidance combines: logits, or log(p + 1e-10), whose distance `verify` states for a --trace");
  command.free_text(
      "--negative-prompt", request.negative_prompt,
      "Text that guidance leads away from (default: an empty prompt; of a model without a start token the "
      "prompt's last one)");
  command.text(
      "--drafter", options.drafter,
      "none, prompt_lookup, suffix, model:PATH, head:PATH, layer_skip:LIST, requantised:BITS, or auto: a head in the "
      "model's folder or in its own files, else a draft model in the folder, else suffix; grammar: what the request's "
      "grammar forces, grammar+NAME: that, and else NAME; suffix+NAME: suffix behind tokens that occurred before, else "
      "NAME",
      "NAME");
  command.number("--draft-temperature", options.draft_temperature, kTemperatureRange,
                 "Temperature of drafters with probabilities (default: like the target)");
  command.choice("--draft-kv", options.draft_kv, {"keep", "discard"},
                 "KV of a model that drafts: rolled back to what was accepted, or read again in every step");
  command.choice("--heterogeneous-vocab", options.heterogeneous_vocab, {"tli", "slem"},
                 "How a model of another vocabulary drafts: the tokens that both have, or any, matched as strings");
  command.integer(
      "--sa-threshold", options.sa_threshold, {1, 63},
      "Of suffix+NAME: tokens that must have occurred before, at least (TensorRT-LLM's sa_config.threshold)");
  command.flag("--guided-drafts", options.guided_drafts,
               "Under guidance a head's drafts are guided too: its row behind the prompt, and behind the negative one");
  command.text("--verifier", options.verifier, "NAME:PARAMETER=VALUE,...; `draftproof verifiers` lists them", "NAME");
  command.option("--tree", "WIDTHS", "", "Children of a draft node at each depth, as 3x2x1",
                 [&options](const std::string& text) { options.tree = text; });
  command.integer("-k,--num-speculative-tokens", options.num_speculative_tokens, {0, kSpeculativeTokensMax},
                  "K, drafts per step at most");
  command.text(
      "--policy", options.policy,
      "How many to draft, up to K: off, fixed:K, threshold, cumulative, target_efficiency, schedule:1=5,8=3,32=0, "
      "goodput, tree:..., auto, likely: of "
      "prompt_lookup and suffix what is likely enough to be worth its rows, confidence:max=7,threshold=0.3,budget=0 of "
      "drafters with a confidence head (default: auto, as many as pay by what steps take here)",
      "RULE");
  command.file("--cost", options.cost,
               "With --policy auto, goodput or likely: what a step costs here, as `draftproof calibrate --this-machine "
               "--out` wrote it "
               "(default of auto and likely: as on a processor with AVX-512 VNNI)");
  command.choice("--sampler", options.sampler, {"inverse", "race"}, "Draw by inverse mass, or by exponential race");
  command.seed(request.seed, "Same seed, same bytes on any machine");
  command.integer("--batch", options.batch, {1, 4096}, "Requests, or with --beams prompts, that run at the same time");
  command.integer("--context", options.context, {2, std::numeric_limits<std::int32_t>::max()},
                  "Tokens of prompt and output (default: what the model takes, which is the most)");
  command.integer("--kv-blocks", options.kv_blocks, {1, std::numeric_limits<std::int32_t>::max() / 16},
                  "KV cache, in blocks of 16 tokens (default: room for the batch)");
  command.integer("--token-budget", options.token_budget, {1, 1'000'000}, "Tokens computed in one step at most");
  command.choice("--activations", options.activations, {"int8", "f32"},
                 "Arithmetic: int8 activations (fast), or f32; each has bits of its own");
  command.threads(options.threads);
  command.text("--simd", options.simd, "Row kernels (see draftproof machine); they change no result", "NAME");
  command.file("--trace", options.trace, "Writes every verification step, for draftproof verify");
  command.file("--metrics", options.metrics, "Writes Prometheus text with vLLM's names");
  command.file("--record-drafts", options.record_drafts,
               "With head:PATH, writes what it drafted and what was accepted, a JSON object a request, for draftproof "
               "audit (docs/heads.md)");
  add_no_download(command, options.no_download);
  add_uses(command, options, further_samplers);
  command.json(options.json);
}

void validate(const GenerateOptions& options) {
  if (options.prompt.has_value() == !options.prompts.empty())
    throw usage_error("--prompt", options.prompt ? "is given beside --prompts; expected one of them"
                                                 : "is not given; expected --prompt TEXT or --prompts FILE");
  if (options.outputs != 1 && !options.prompt)
    throw usage_error("--outputs", "is given with --prompts; expected a line for each request, or --prompt");
  if (options.prompt && options.min_tokens > options.request.max_tokens)
    throw usage_error("--min-tokens", "is " + std::to_string(options.min_tokens) + "; expected at most --max-tokens, " +
                                          std::to_string(options.request.max_tokens));
  const bool automatic = options.drafter == "auto";
  const DrafterChoice drafter = parse_drafter(automatic ? "suffix" : options.drafter, "--drafter");
  if ((drafter.kind == DrafterKind::grammar || drafter.first == DrafterKind::grammar) && !options.grammar.any() &&
      options.prompts.empty())
    throw usage_error("--drafter", "is " + options.drafter +
                                       ", and there is no grammar; expected --grammar, --json-schema, --regex or "
                                       "--choice beside it");
  const VerifierChoice verifier = parse_verifier(options.verifier, "--verifier");
  std::optional<TreeShape> tree;
  if (options.tree) tree = parse_tree(*options.tree, "--tree");
  plan_for(verifier, tree, options.num_speculative_tokens, "--tree");
  const bool by_goodput =
      !options.policy.empty() && parse_speculation(options.policy, "--policy").rule == SpeculationRule::goodput;
  if (by_goodput && options.cost.empty())
    throw usage_error("--policy", "is " + options.policy +
                                      ", which needs to know what a step costs; expected --cost FILE beside it, which "
                                      "draftproof calibrate --this-machine --out FILE writes");
  if (options.best_of && *options.best_of > *options.beams)
    throw usage_error("--best-of", "is " + std::to_string(*options.best_of) + "; expected at most --beams, " +
                                       std::to_string(*options.beams));
  if (options.beams && drafter.kind != DrafterKind::none && !automatic)
    throw usage_error("--beams", "is given with a drafter; expected --drafter none, beam search does not speculate");
  if (options.beams && !options.trace.empty())
    throw usage_error("--trace", "is given with --beams; expected one of them, beam search has no verification steps");
  if (!options.trace.empty() && drafter.kind == DrafterKind::none)
    throw usage_error("--trace", "is given without a drafter; expected one, plain decoding has no verification steps");
}

std::vector<PromptRequest> read_prompts(const GenerateOptions& options) {
  if (options.prompt) {
    std::vector<PromptRequest> outputs(static_cast<std::size_t>(options.outputs),
                                       {"--prompt", *options.prompt, options.request});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (i > 0) outputs[i].where = "--prompt, output " + std::to_string(i + 1);
      outputs[i].parameters.seed += i;
    }
    return outputs;
  }
  const InputFile file(options.prompts);
  std::vector<PromptRequest> requests;
  for_each_json_line(options.prompts, file.text(), R"({"prompt": "...", "max_tokens": 64})",
                     [&](const nlohmann::json& line, const std::string& where) {
                       PromptRequest& request = requests.emplace_back(PromptRequest{where, "", options.request});
                       // Requests of equal prompts and options should not be copies of one another.
                       request.parameters.seed += requests.size() - 1;
                       PromptLine(where, line).read(request);
                     });
  if (requests.empty()) throw input_error(options.prompts, "has no prompt; expected a JSON object a line");
  return requests;
}

RequestMaker::RequestMaker(const GenerateOptions& options, const TextModel& model)
    : options_(options),
      model_(model),
      end_tokens_(options.ignore_eos ? std::vector<Token>() : model.tokenizer->end_tokens()),
      grammars_(model.tokenizer, model.model->vocab_size(), end_tokens_) {
  const auto vocab_size = model.model->vocab_size();
  for (const std::string& text : options.logit_bias) {
    const std::size_t equals = text.find('=');
    const auto id = read_integer(text.substr(0, equals), 0, vocab_size - 1);
    const auto value = equals == std::string::npos ? std::nullopt : read_number(text.substr(equals + 1));
    if (!id || !value || std::abs(*value) > std::numeric_limits<float>::max())
      throw usage_error("--logit-bias", "is '" + text + "'; expected ID=VALUE with an id in [0, " +
                                            std::to_string(vocab_size) + ") and a finite number");
    logit_bias_.push_back({static_cast<Token>(*id), static_cast<float>(*value)});
  }
  // A word inside a text has a space before it, which is part of its tokens.
  std::vector<std::vector<Token>> sequences;
  for (const std::string& word : options.bad_words)
    for (const std::string& form : {word, " " + word})
      sequences.push_back(model.tokenizer->encode(form, {false, false}));
  if (!sequences.empty()) bad_words_.emplace(std::move(sequences), static_cast<std::size_t>(vocab_size));
  if (const std::optional<GrammarSource> source = grammar_source(options.grammar))
    grammar_ = grammars_.compile(*source);
}

std::vector<Token> RequestMaker::tokens_of(const PromptRequest& request) const {
  if (!request.parameters.chat) return model_.tokenizer->encode(request.prompt);
  return model_.chat_tokens(request.prompt, request.where);
}

DecodingOptions RequestMaker::decoding_options(const PromptRequest& request) const {
  const RequestParameters& p = request.parameters;
  DecodingOptions decoding;
  RowParameters& row = decoding.parameters;
  row = row_parameters(p.temperature, p.top_p, p.top_k, p.min_p);
  require_stateless(p.samplers, request.where);
  row.samplers = p.samplers;
  row.repetition_penalty = static_cast<float>(options_.repetition_penalty);
  row.frequency_penalty = static_cast<float>(options_.frequency_penalty);
  row.presence_penalty = static_cast<float>(options_.presence_penalty);
  row.guidance_scale = static_cast<float>(p.cfg_scale);
  TraceSettings named;
  named.set("guidance_form", options_.guidance_form, "--guidance-form");
  row.guidance_form = named.guidance_form;
  validate(row, request.where);
  decoding.constraints.logit_bias = logit_bias_;
  decoding.constraints.bad_words = bad_words_ ? &*bad_words_ : nullptr;
  decoding.constraints.min_tokens = options_.min_tokens;
  decoding.constraints.stop_ids = end_tokens_;
  if (row.guidance_scale != 1.0f) {
    // Guided requests compare the prompt with a chat that asks for nothing, or with the negative prompt.
    PromptRequest companion = request;
    companion.prompt = p.negative_prompt.value_or("");
    decoding.unconditional_prompt = tokens_of(companion);
    // A model without a start token cannot begin with nothing: its companion begins where the output does.
    const bool starts_with_nothing = decoding.unconditional_prompt.empty() && !model_.model->start_token();
    if (starts_with_nothing) {
      const std::vector<Token> prompt = tokens_of(request);
      if (!prompt.empty()) decoding.unconditional_prompt = {prompt.back()};
    }
  }
  decoding.grammar = {p.grammar ? grammars_.compile(*p.grammar) : grammar_, !options_.grammar.unmasked_drafts};
  decoding.stop.eos_ids = end_tokens_;
  decoding.stop.stop_strings = p.stop;
  decoding.stop.min_tokens = options_.min_tokens;
  decoding.stop.max_tokens = p.max_tokens;
  decoding.detokeniser = model_.tokenizer.get();
  decoding.seed = p.seed;
  decoding.verify.sampler = options_.sampler == "race" ? Sampler::race : Sampler::inverse;
  decoding.verify.logprobs = options_.logprobs.has_value();
  decoding.verify.raw_logprobs = false;
  decoding.verify.verifier = parse_verifier(options_.verifier, "--verifier");
  if (options_.tree) decoding.tree = parse_tree(*options_.tree, "--tree");
  decoding.num_speculative_tokens = options_.num_speculative_tokens;
  decoding.num_logprobs = options_.logprobs;
  decoding.num_prompt_logprobs = options_.prompt_logprobs;
  decoding.logprob_token_ids.assign(options_.logprob_token_ids.begin(), options_.logprob_token_ids.end());
  decoding.keep_steps = !options_.trace.empty();
  return decoding;
}

}  // namespace draftproof
