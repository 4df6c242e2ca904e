#include "cli/generate/run.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/stopwatch.hpp"
#include "cli/shared/this_machine.hpp"
#include "engine/decode/paired_run.hpp"
#include "engine/draft/drafter_factory.hpp"
#include "engine/heads/lab/recorded_run.hpp"
#include "engine/metrics/prometheus.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/trace/trace_writer.hpp"

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
    choice = whole_drafts(decoding, "--tree", SpeculationRule::automatic);
  }
  const bool by_cost = choice.rule == SpeculationRule::goodput || choice.rule == SpeculationRule::likely ||
                       choice.rule == SpeculationRule::automatic;
  if (!options.cost.empty() && !by_cost)
    throw usage_error("--cost", "is given for --policy " + text_of(choice) +
                                    "; expected one that asks for it: auto, likely or goodput");
  if (!by_cost) return SpeculationPolicy(choice);
  double share = 0.0;
  if (!options.cost.empty())
    share = draft_share(drafter, run.model, {options.activations == "f32", options.threads}, "--drafter");
  return SpeculationPolicy(choice, read_step_cost(options.cost, share));
}

DecodeRoom room_of(const GenerateOptions& options, const LanguageModel& model) {
  DecodeRoom room;
  room.batch = options.batch;
  room.context_len_max = context_of(options, model);
  room.num_blocks = options.kv_blocks;
  room.token_budget = options.token_budget;
  room.share_prefixes = true;
  return room;
}

BeamRequest beams_of(const GenerateOptions& options, const RequestMaker& maker, const GenerateRun& run,
                     const GeneratedRequest& request) {
  const DecodingOptions decoding = maker.decoding_options(request.prompt);
  validate(decoding, request.prompt_tokens, run.model.model->vocab_size());
  BeamSearchParameters parameters;
  parameters.beam_width = *options.beams;
  parameters.best_of = options.best_of.value_or(*options.beams);
  parameters.length_penalty = options.length_penalty;
  parameters.stopping = options.beam_stopping == "exact"            ? BeamStopping::exact
                        : options.beam_stopping == "current_length" ? BeamStopping::current_length
                                                                    : BeamStopping::first_finished;
  parameters.eos_ids = decoding.stop.eos_ids;
  parameters.max_tokens = request.prompt.parameters.max_tokens;
  return {request.prompt_tokens, parameters};
}

void set_beams(GenerateRun& run, GeneratedRequest& request, BeamOutcome outcome) {
  if (outcome.failure) std::rethrow_exception(outcome.failure);
  request.beams = std::move(outcome.hypotheses);
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

// All prompts, --batch of them at a time.
void search_beams(const GenerateOptions& options, const RequestMaker& maker, GenerateRun& run) {
  std::vector<BeamRequest> searches;
  std::vector<GeneratedRequest*> requests;  // of the searches
  std::vector<std::int64_t> blocks;
  for (GeneratedRequest& request : run.requests) {
    if (!request.error.empty()) continue;
    guarded(request, [&] {
      searches.push_back(beams_of(options, maker, run, request));
      requests.push_back(&request);
      // The hypotheses share the prompt's; each may copy its last block, and what has been left is the next step's.
      blocks.push_back(blocks_for(static_cast<std::int64_t>(request.prompt_tokens.size()) + 1) +
                       *options.beams * (blocks_for(searches.back().parameters.max_tokens) + 2));
    });
  }
  std::ranges::sort(blocks, std::greater<>());
  blocks.resize(std::min(blocks.size(), static_cast<std::size_t>(options.batch)));
  EngineOptions engine_options;
  engine_options.scheduler.running_max = static_cast<std::int32_t>(*options.beams * options.batch);
  engine_options.scheduler.num_blocks =
      static_cast<std::int32_t>(std::accumulate(blocks.begin(), blocks.end(), std::int64_t{1}));
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  Engine engine(*run.model.model, nullptr, sampler, engine_options);
  std::vector<BeamOutcome> outcomes =
      beam_search(engine, searches, static_cast<std::size_t>(run.model.model->vocab_size()),
                  static_cast<std::size_t>(options.batch));
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    guarded(*requests[i], [&] { set_beams(run, *requests[i], std::move(outcomes[i])); });
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
  choice.as_in_file = choice.as_in_file || !options.record_drafts.empty();  // what `audit` compares with
  choice = with_packed_head(std::move(choice));                             // so that the report names it
  const TextModelOptions model_options{options.activations == "f32", options.threads, options.chat_date};
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
  if (drafter) run.shared_tokens = drafter->shared_tokens();
  const Stopwatch watch;
  if (options.beams) {
    search_beams(options, maker, run);
    run.generation_ms = watch.elapsed_ms();
    return run;
  }
  const SpeculationPolicy policy = policy_of(options, run, choice, maker.decoding_options(run.requests.front().prompt));
  const DecodeRoom room = room_of(options, *run.model.model);
  std::vector<DecodeJob> jobs;
  std::vector<GeneratedRequest*> requests;  // of the jobs
  for (GeneratedRequest& request : run.requests)
    if (request.error.empty())
      guarded(request, [&] {
        jobs.push_back({request.prompt_tokens, maker.decoding_options(request.prompt), request.prompt.where});
        requests.push_back(&request);
      });
  std::optional<DraftRecorder> recorder;
  if (!options.record_drafts.empty()) {
    auto& head = dynamic_cast<HeadDrafter&>(*drafter);
    recorder.emplace(head, &head.head());
    head.on_row = [&](const HeadRow& row) { recorder->add(row); };
  }
  Drafter* const drafting = recorder ? &*recorder : drafter.get();
  DecodeRun decoding(*run.model.model, drafting, engine_options(jobs, room, *run.model.model, policy));
  std::int64_t longest = 0;
  std::vector<GeneratedRequest*> submitted;  // by the number of the job
  for (std::size_t i = 0; i < jobs.size(); ++i)
    guarded(*requests[i], [&] {
      decoding.submit(jobs[i]);
      submitted.push_back(requests[i]);
      longest += requests[i]->prompt.parameters.max_tokens;
    });
  {
    Progress progress("generating", static_cast<std::uint64_t>(longest), "tokens");
    decoding.engine().on_tokens([&](const ActiveRequest& request, std::size_t tokens, const std::string&) {
      if (recorder) recorder->keep(request.id, request.step.draft.tree);
      run.tokens += static_cast<std::int64_t>(tokens);
      progress.advance(tokens);
    });
    while (decoding.step()) {
    }
  }
  run.generation_ms = watch.elapsed_ms();
  for (std::size_t job = 0; job < submitted.size(); ++job) {
    GeneratedRequest& request = *submitted[job];
    request.generation = *decoding.engine().take(job);
    if (request.generation.failure) guarded(request, [&] { std::rethrow_exception(request.generation.failure); });
  }
  run.metrics = decoding.engine().scheduler().metrics();
  if (!options.trace.empty()) write_steps(options, maker, run);
  if (recorder) {
    AtomicFile file(options.record_drafts);
    for (std::size_t job = 0; job < submitted.size(); ++job) {
      const GeneratedRequest& request = *submitted[job];
      if (request.generation.failure) continue;
      file.stream() << recorded_line(
          recorder->take(job, request.generation.tokens.size(), request.prompt.parameters.temperature));
    }
    file.commit();
  }
  if (!options.metrics.empty()) {
    AtomicFile file(options.metrics);
    file.stream() << prometheus_text(run.metrics, run.model.name);
    file.commit();
  }
  return run;
}

}  // namespace draftproof
