#include "studies/heads/heads.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/printable.hpp"
#include "engine/draft/drafter_factory.hpp"
#include "engine/heads/head_files.hpp"
#include "engine/model/prompt_set.hpp"
#include "engine/transformer/transformer_model.hpp"
#include "studies/acceptance/counted_rate.hpp"
#include "studies/speculate/model_shelf.hpp"
#include "studies/token_label.hpp"

namespace draftproof {
namespace {

constexpr int kDraftsWhereOpen = 4;
constexpr std::size_t kShownBytes = 200;

void require_between(std::int64_t value, std::int64_t least, std::int64_t most, const char* name) {
  if (value < least || value > most)
    throw usage_error(name, "is " + std::to_string(value) + "; expected a whole number in [" + std::to_string(least) +
                                ", " + std::to_string(most) + "]");
}

void validate(const HeadsSettings& settings) {
  require_between(settings.per_work, 0, 1'000'000, "prompts of each work");
  require_between(settings.max_tokens, 1, 1'000'000, "max tokens");
  require_between(settings.num_speculative_tokens, 0, kSpeculativeTokensMax, "K");
  require_between(settings.threads, 1, kModelThreadsMax, "threads");
  validate(row_parameters(settings.temperature, 1.0, 0, 0.0), "temperature");
}

std::shared_ptr<DraftHead> open_head_of(const HeadsSettings& settings, const TextModel& model,
                                        const TextModelOptions& options) {
  const bool has_kind = settings.head.starts_with("head:") || settings.head.starts_with("head@");
  return open_head(parse_drafter(has_kind ? settings.head : "head:" + settings.head, "head"), model, options, "head");
}

int drafts_of(const HeadsSettings& settings, const DraftHead& head) {
  const int most = head.draft_len_max();
  const int asked = settings.num_speculative_tokens;
  if (most != 0 && asked > most)
    throw usage_error("K", "is " + std::to_string(asked) + ", and the head drafts " + std::to_string(most) +
                               " tokens at once; expected at most as many");
  if (asked != 0) return asked;
  if (most != 0) return most;
  return head.description().trained_len != 0 ? head.description().trained_len : kDraftsWhereOpen;
}

DecodeJob job_of(const WorkPrompt& prompt, const TextModel& model, const HeadsSettings& settings, int num_drafts,
                 std::uint64_t seed) {
  DecodeJob job{tokens_of(prompt, model), {}, prompt.where};
  DecodingOptions& decoding = job.decoding;
  decoding.parameters = row_parameters(settings.temperature, 1.0, 0, 0.0);
  decoding.stop.eos_ids = model.tokenizer->end_tokens();
  decoding.stop.max_tokens = settings.max_tokens;
  decoding.seed = seed;
  decoding.verify.verifier = parse_verifier("chain", "verifier");
  decoding.num_speculative_tokens = num_drafts;
  return job;
}

// States have served where the drift is known.
void finish(std::vector<HeadStep>& steps, const Tokenizer& tokenizer) {
  const auto label = [&](HeadCandidate& candidate) { candidate.text = token_label(tokenizer, candidate.token); };
  for (HeadStep& step : steps) {
    step.states = {};
    label(step.next);
    for (HeadSlot& slot : step.slots) {
      label(slot.draft);
      if (slot.emitted) label(*slot.emitted);
      for (HeadCandidate& candidate : slot.candidates) label(candidate);
    }
  }
}

// The beginning, whole characters.
std::string beginning_of(const std::string& text) {
  std::size_t length = std::min(text.size(), kShownBytes);
  while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
  return printable_line(text.substr(0, length));
}

HeadsWork work_of(const std::string& name, const std::vector<AcceptanceCounts>& clusters) {
  HeadsWork work{name, std::ssize(clusters), acceptance_metrics(clusters), {}};
  const AcceptanceCounts& counts = work.metrics.counts;
  for (std::size_t i = 0; i < counts.reached.size(); ++i) {
    SlotRate& slot = work.slots.emplace_back();
    slot.reached = counts.reached[i];
    slot.accepted = counts.accepted[i];
    const std::optional<RateEstimate>& estimate = work.metrics.conditional[i];
    if (!estimate) continue;
    slot.rate = estimate->rate;
    const auto trials = static_cast<double>(slot.reached);
    slot.interval = counted_interval(slot.rate, trials,
                                     independent_share_of(slot.rate, trials, estimate->standard_error), kHeadsLevel);
  }
  return work;
}

// All, and each kind of work that was begun.
std::vector<HeadsWork> works_of(const std::vector<std::shared_ptr<const HeadsPrompt>>& prompts) {
  std::vector<std::string> names;
  std::vector<AcceptanceCounts> all;
  for (const auto& prompt : prompts) {
    all.push_back(prompt->acceptance);
    if (std::ranges::find(names, prompt->work) == names.end()) names.push_back(prompt->work);
  }
  std::vector<HeadsWork> works{work_of("all", all)};
  for (const std::string& name : names) {
    std::vector<AcceptanceCounts> of_work;
    for (const auto& prompt : prompts)
      if (prompt->work == name) of_work.push_back(prompt->acceptance);
    works.push_back(work_of(name, of_work));
  }
  return works;
}

std::vector<Reliability> reliability_by_slot(const std::vector<std::shared_ptr<const HeadsPrompt>>& prompts) {
  std::vector<std::vector<JudgedConfidence>> judged(1);
  for (const auto& prompt : prompts)
    for (const HeadStep& step : prompt->steps)
      for (std::size_t i = 0; i < step.slots.size() && step.slots[i].reached; ++i) {
        const JudgedConfidence one{static_cast<double>(step.slots[i].confidence), step.slots[i].accepted};
        if (judged.size() < i + 2) judged.resize(i + 2);
        judged[0].push_back(one);
        judged[i + 1].push_back(one);
      }
  std::vector<Reliability> reliability;
  for (const std::vector<JudgedConfidence>& of : judged) reliability.push_back(reliability_of(of));
  return reliability;
}

void require_shown(const HeadsSnapshot& snapshot) {
  const HeadsSettings& settings = snapshot.settings;
  require_between(settings.shown_prompt, 1, std::ssize(snapshot.prompts), "prompt to show");
  const auto steps = std::ssize(snapshot.shown_prompt()->steps);
  if (steps > 0 || settings.shown_step != 1) require_between(settings.shown_step, 1, steps, "step to show");
}

}  // namespace

std::string shipped_head_path() {
  namespace fs = std::filesystem;
  const fs::path path = own_file("experiments/heads/smollm2-eagle3/eagle3.gguf");
  std::error_code ignored;
  const fs::path near = path.lexically_relative(fs::current_path(ignored));
  return near.empty() || *near.begin() == ".." ? path.string() : near.string();
}

const HeadsPrompt* HeadsSnapshot::shown_prompt() const {
  const std::int64_t at = settings.shown_prompt;
  return at >= 1 && at <= std::ssize(prompts) ? prompts[static_cast<std::size_t>(at) - 1].get() : nullptr;
}

const HeadStep* HeadsSnapshot::shown_step() const {
  const HeadsPrompt* const prompt = shown_prompt();
  const std::int64_t at = settings.shown_step;
  if (prompt == nullptr || at < 1 || at > std::ssize(prompt->steps)) return nullptr;
  return &prompt->steps[static_cast<std::size_t>(at) - 1];
}

void compute(const HeadsSettings& settings, Job& job, const std::function<void(HeadsSnapshot)>& publish) {
  validate(settings);
  HeadsSnapshot snapshot;
  snapshot.settings = settings;
  if (settings.head.empty()) {
    snapshot.note = "No head is chosen: name one, and the model that it drafts for.";
    return publish(std::move(snapshot));
  }
  const PromptSet set = read_prompt_set(settings.prompts.empty() ? own_prompts() : settings.prompts);
  const TextModelOptions model_options{false, settings.threads};
  job.report(0.0, "opening " + settings.model);
  const std::shared_ptr<TextModel> model = borrow_text_model(settings.model, model_options, "model");
  job.check();
  job.report(0.0, "opening " + settings.head);
  const std::shared_ptr<DraftHead> head = open_head_of(settings, *model, model_options);
  job.check();
  HeadRecorder recorder(head);
  SlowHead slow(head->shared_weights(), *model->transformer, transformer_kernels());
  snapshot.model = model->name;
  snapshot.arithmetic = model->arithmetic;
  snapshot.family = name_of(head->description().family);
  snapshot.drafts_in_parallel = drafts_in_parallel(head->description().family);
  snapshot.has_confidence_head = !head->weights().confidence.empty();
  snapshot.num_speculative_tokens = drafts_of(settings, *head);
  std::vector<DriftSample> drift;
  for (const Work& work : set.works) snapshot.prompts_asked += std::ssize(first_prompts(work, settings.per_work));
  require_between(settings.shown_prompt, 1, snapshot.prompts_asked, "prompt to show");
  for (const Work& work : set.works) {
    std::uint64_t seed = settings.seed;
    for (const WorkPrompt& prompt : first_prompts(work, settings.per_work)) {
      job.report(static_cast<double>(snapshot.prompts.size()) / static_cast<double>(snapshot.prompts_asked),
                 work.name + ", prompt " + std::to_string(snapshot.prompts.size() + 1) + " of " +
                     std::to_string(snapshot.prompts_asked));
      RecordedHeadRun run =
          run_recorded(*model->model, recorder, recorder,
                       job_of(prompt, *model, settings, snapshot.num_speculative_tokens, seed++), [&] { job.check(); });
      std::ranges::copy(drift_of(slow, run.steps, run.stream), std::back_inserter(drift));
      finish(run.steps, *model->tokenizer);
      snapshot.prompts.push_back(std::make_shared<const HeadsPrompt>(HeadsPrompt{
          work.name, prompt.where, beginning_of(prompt.prompt), run.generation.acceptance, std::move(run.steps)}));
      snapshot.works = works_of(snapshot.prompts);
      snapshot.drift = summarise_drift(drift);
      snapshot.reliability = reliability_by_slot(snapshot.prompts);
      if (std::ssize(snapshot.prompts) == snapshot.prompts_asked) require_shown(snapshot);
      publish(snapshot);
    }
  }
}

}  // namespace draftproof
