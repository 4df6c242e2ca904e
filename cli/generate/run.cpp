#include "cli/generate/run.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/stopwatch.hpp"
#include "cli/shared/this_machine.hpp"
#include "engine/draft/drafter_factory.hpp"
#include "engine/metrics/prometheus.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/trace/trace_writer.hpp"
#include "sim/machine/machine_profile.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kContextMax = 1 << 20;

std::int64_t context_of(const GenerateOptions& options, const LanguageModel& model) {
  const std::int64_t most = std::min(model.context_len_max(), kContextMax);
  if (options.context && *options.context > most)
    throw usage_error("--context", "is " + std::to_string(*options.context) + "; expected at most " +
                                       std::to_string(most) +
                                       (most == kContextMax ? "" : ", the context of the model"));
  return options.context.value_or(most);
}

SpeculationPolicy policy_of(const GenerateOptions& options, const GenerateRun& run, const DrafterChoice& drafter,
                            const DecodingOptions& decoding) {
  SpeculationChoice choice;
  if (!options.policy.empty()) {
    choice = parse_speculation(options.policy, "--policy");
  } else if (drafter.kind != DrafterKind::none) {
    const DraftPlan plan = plan_for(decoding.verify.verifier, decoding.tree, decoding.num_speculative_tokens, "--tree");
    choice.rule = drafter.has_probabilities() ? SpeculationRule::fixed : SpeculationRule::likely;
    choice.num_drafts = plan.num_paths * plan.shape.size();
  }
  const bool by_cost = choice.rule == SpeculationRule::goodput || choice.rule == SpeculationRule::likely;
  if (!by_cost && !options.cost.empty())
    throw usage_error("--cost", "is given for " + drafter.text +
                                    " without --policy goodput or likely, which alone ask "
                                    "for it");
  if (!by_cost) return SpeculationPolicy(choice);
  if (options.cost.empty()) return SpeculationPolicy(choice, std::make_shared<DefaultStepCost>());
  const double share = draft_share(drafter, run.model, {options.activations == "f32", options.threads}, "--drafter");
  return SpeculationPolicy(choice, std::make_shared<MachineCost>(read_machine_profile(options.cost), share));
}

EngineOptions engine_options(const GenerateOptions& options, const GenerateRun& run, const DrafterChoice& drafter,
                             const DecodingOptions& decoding) {
  EngineOptions engine;
  engine.policy = policy_of(options, run, drafter, decoding);
  engine.scheduler.context_len_max = static_cast<std::int32_t>(context_of(options, *run.model.model));
  engine.scheduler.running_max = static_cast<std::int32_t>(options.batch);
  engine.scheduler.token_budget = static_cast<std::int32_t>(options.token_budget);
  std::int64_t blocks = 0;
  std::vector<std::int64_t> needs;
  for (const GeneratedRequest& request : run.requests) {
    const std::int64_t longest = std::min<std::int64_t>(static_cast<std::int64_t>(request.prompt_tokens.size()) + 1 +
                                                            request.prompt.parameters.max_tokens,
                                                        engine.scheduler.context_len_max) +
                                 kDraftNodesMax;
    const bool guided = request.prompt.parameters.cfg_scale != 1.0;
    needs.push_back((longest / kKvBlockSlots + 2) * (guided ? 2 : 1));
  }
  std::ranges::sort(needs, std::greater());
  for (std::size_t i = 0; i < needs.size() && i < static_cast<std::size_t>(options.batch); ++i) blocks += needs[i];
  engine.scheduler.num_blocks =
      static_cast<std::int32_t>(options.kv_blocks.value_or(std::max<std::int64_t>(blocks, 1)));
  return engine;
}

void search_beams(const GenerateOptions& options, const RequestMaker& maker, GenerateRun& run,
                  GeneratedRequest& request) {
  const DecodingOptions decoding = maker.decoding_options(request.prompt);
  validate(decoding, request.prompt_tokens, run.model.model->vocab_size());
  ModelSession session(*run.model.model);
  BeamSearchParameters parameters;
  parameters.beam_width = *options.beams;
  parameters.best_of = *options.beams;
  parameters.eos_ids = decoding.stop.eos_ids;
  parameters.max_tokens = request.prompt.parameters.max_tokens;
  const auto vocab_size = static_cast<std::size_t>(session.vocab_size());
  std::vector<float> logits(vocab_size);
  LogitsDistribution distribution;
  request.beams = beam_search(request.prompt_tokens, vocab_size, parameters,
                              [&](std::span<const Token> context, std::span<float> log_probs) {
                                session.logits(context, logits);
                                distribution.assign(logits, RowName{});
                                for (std::size_t i = 0; i < vocab_size; ++i)
                                  log_probs[i] = distribution.log_probability(static_cast<Token>(i));
                              });
  for (const BeamHypothesis& beam : request.beams) {
    std::span<const Token> tokens(beam.tokens);
    if (beam.finish_reason == FinishReason::eos) tokens = tokens.first(tokens.size() - 1);
    request.beam_texts.push_back(run.model.tokenizer->decode(tokens));
  }
  request.generation.tokens = request.beams.front().tokens;
  request.generation.text = request.beam_texts.front();
  request.generation.finish_reason = request.beams.front().finish_reason;
  run.tokens += static_cast<std::int64_t>(request.generation.tokens.size());
}

// Runs `action`; what it throws becomes the request's error.
template <class Action>
void guarded(GeneratedRequest& request, Action action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    request.error = error.what();
  }
}

void write_steps(const GenerateOptions& options, const RequestMaker& maker, const GenerateRun& run) {
  std::vector<VerifyRequest> steps;
  std::vector<DecodingOptions> decodings;
  decodings.reserve(run.requests.size());
  for (const GeneratedRequest& request : run.requests) {
    decodings.push_back(maker.decoding_options(request.prompt));
    for (const SpeculativeStep& step : request.generation.steps)
      steps.push_back(request_of(step, decodings.back(), run.model.model->vocab_size(), request.prompt_tokens,
                                 request.generation.tokens));
  }
  if (steps.empty()) throw input_error(options.trace, "there is no verification step to write");
  write_trace(options.trace, steps, decodings.front().verify);
}

}  // namespace

GenerateRun run_generate(const GenerateOptions& options) {
  DrafterChoice choice = drafter_of(options);
  if (choice.kind == DrafterKind::model) choice.path = model_path(choice.path);
  const TextModelOptions model_options{options.activations == "f32", options.threads};
  std::vector<PromptRequest> prompts = read_prompts(options);
  GenerateRun run;
  run.model = open_text_model(options.model, model_path(options.model), model_options, "--model");
  run.drafter = choice.text;
  run.verifier = options.verifier;
  const RequestMaker maker(options, run.model);
  for (PromptRequest& prompt : prompts) {
    GeneratedRequest& request = run.requests.emplace_back();
    request.prompt = std::move(prompt);
    guarded(request, [&] { request.prompt_tokens = maker.tokens_of(request.prompt); });
  }
  std::optional<float> draft_temperature;
  if (options.draft_temperature >= 0.0) draft_temperature = static_cast<float>(options.draft_temperature);
  const std::shared_ptr<Drafter> drafter =
      make_drafter(choice, run.model, draft_temperature, model_options, "--drafter");
  const Stopwatch watch;
  if (options.beams) {
    for (GeneratedRequest& request : run.requests)
      if (request.error.empty()) guarded(request, [&] { search_beams(options, maker, run, request); });
    run.generation_ms = watch.elapsed_ms();
    return run;
  }
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  Engine engine(*run.model.model, drafter.get(), sampler,
                engine_options(options, run, choice, maker.decoding_options(run.requests.front().prompt)));
  std::int64_t longest = 0;
  std::map<std::uint64_t, GeneratedRequest*> submitted;
  for (GeneratedRequest& request : run.requests)
    if (request.error.empty())
      guarded(request, [&] {
        submitted[engine.submit(request.prompt_tokens, maker.decoding_options(request.prompt), true,
                                request.prompt.where)] = &request;
        longest += request.prompt.parameters.max_tokens;
      });
  {
    Progress progress("generating", static_cast<std::uint64_t>(longest), "tokens");
    engine.on_tokens([&](const ActiveRequest&, std::size_t tokens, const std::string&) {
      run.tokens += static_cast<std::int64_t>(tokens);
      progress.advance(tokens);
    });
    engine.run();
  }
  run.generation_ms = watch.elapsed_ms();
  for (const auto& [id, request] : submitted) {
    request->generation = *engine.take(id);
    if (request->generation.failure) guarded(*request, [&] { std::rethrow_exception(request->generation.failure); });
  }
  run.metrics = engine.scheduler().metrics();
  if (!options.trace.empty()) write_steps(options, maker, run);
  if (!options.metrics.empty()) {
    AtomicFile file(options.metrics);
    file.stream() << prometheus_text(run.metrics, run.model.name);
    file.commit();
  }
  return run;
}

}  // namespace draftproof
