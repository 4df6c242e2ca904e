#include "cli/demo/run.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/stopwatch.hpp"
#include "engine/draft/model_drafter.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

// Suffixes that prompt lookup looks for, in bytes: below three they match anywhere, above sixteen nothing is gained.
constexpr int kLookupMin = 3;
constexpr int kLookupMax = 16;
// How much of the corpus stands before a measured continuation; prompt lookup finds its drafts there.
constexpr std::size_t kContinuationPromptBytes = 256;

// Families of seeds derived from the run's seed; the shown text uses that seed itself.
enum SeedFamily : std::uint64_t { kPositionSeed = 0, kContinuationSeeds = 1, kSpeculativeSeeds = 2, kDirectSeeds = 3 };

// The outcomes of `draw` for decoding options that differ in their seeds, in order; each thread has a worker.
template <class Draw>
auto draw_all(const DemoModels& models, const DemoOptions& options, const DecodingOptions& decoding, std::int64_t count,
              SeedFamily family, Progress& progress, Draw draw) {
  std::vector<std::unique_ptr<DemoWorker>> workers;
  for (int thread = 0; thread < options.threads; ++thread)
    workers.push_back(std::make_unique<DemoWorker>(models, options));
  std::vector<decltype(draw(*workers[0], decoding, std::int64_t{0}))> outcomes(static_cast<std::size_t>(count));
  parallel_for(count, options.threads, [&](std::int64_t i, int thread) {
    DecodingOptions one = decoding;
    one.seed = derive_seed(derive_seed(options.seed, family), static_cast<std::uint64_t>(i));
    outcomes[static_cast<std::size_t>(i)] = draw(*workers[static_cast<std::size_t>(thread)], one, i);
    progress.advance();
  });
  return outcomes;
}

// The bytes before a position that is uniform over the corpus.
std::vector<Token> continuation_prompt(const Corpus& corpus, std::uint64_t seed, std::uint32_t continuation) {
  std::uint64_t bytes = 0;
  for (const auto& text : corpus.texts) bytes += text.size();
  const RandomBlock block = PhiloxSource().block(seed, {continuation, 0, 0, Purpose::choice});
  std::uint64_t position = multiply_high(high_half(block), bytes);
  std::size_t document = 0;
  while (position >= corpus.texts[document].size()) position -= corpus.texts[document++].size();
  const auto end = corpus.texts[document].begin() + static_cast<std::ptrdiff_t>(position);
  return {end - static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(position, kContinuationPromptBytes)), end};
}

AcceptanceMetrics measure_acceptance(const DemoModels& models, const DemoOptions& options, DecodingOptions decoding) {
  Progress progress("measuring acceptance", static_cast<std::uint64_t>(options.continuations), "continuations");
  // A fixed number of steps rather than of tokens: no step is clipped, and lucky steps are not counted more seldom.
  decoding.stop.max_tokens.reset();
  decoding.max_steps = options.continuation_steps;
  return acceptance_metrics(draw_all(
      models, options, decoding, options.continuations, kContinuationSeeds, progress,
      [&](DemoWorker& worker, const DecodingOptions& continuation, std::int64_t i) {
        const std::vector<Token> prompt =
            continuation_prompt(models.corpus, derive_seed(options.seed, kPositionSeed), static_cast<std::uint32_t>(i));
        PhiloxSource source;
        return generate(worker.target_model(), &worker.drafter(), continuation, prompt, source).acceptance;
      }));
}

DistributionCheck check_distribution(const DemoModels& models, const DemoOptions& options,
                                     const DecodingOptions& decoding, std::span<const Token> prompt) {
  Progress progress("drawing samples", 2 * static_cast<std::uint64_t>(options.samples), "strings");
  const auto speculative =
      draw_all(models, options, decoding, options.samples, kSpeculativeSeeds, progress,
               [&](DemoWorker& worker, const DecodingOptions& sample, std::int64_t) {
                 return draw_speculatively(worker.target(), worker.drafter(), sample, prompt, worker.workspace());
               });
  const auto direct = draw_all(models, options, decoding, options.samples, kDirectSeeds, progress,
                               [&](DemoWorker& worker, const DecodingOptions& sample, std::int64_t) {
                                 return draw_directly(worker.target(), sample, prompt, worker.workspace());
                               });
  DemoWorker worker(models, options);
  DistributionCheck check = compare_distributions(
      speculative, direct, exact_distribution(worker.target(), decoding, prompt, worker.workspace()));
  check.lossless = decoding.verify.verifier.info().lossless;
  return check;
}

}  // namespace

DemoModels::DemoModels(const DemoOptions& options, Corpus corpus_read)
    : corpus(std::move(corpus_read)), target(NgramModel::train(corpus.texts, options.order)) {
  if (options.draft_kind() == DemoDraft::ngram)
    draft = NgramModel::train(corpus.texts, options.draft_order_or_default());
}

DemoWorker::DemoWorker(const DemoModels& models, const DemoOptions& options)
    : target_model_(models.target), target_(target_model_) {
  if (models.draft) {
    draft_model_.emplace(*models.draft);
    drafter_ = std::make_unique<ModelDrafter>(*draft_model_, draft_parameters(options));
  } else {
    drafter_ = std::make_unique<LookupDrafter>(PromptLookup(kLookupMin, kLookupMax));
  }
}

std::unique_ptr<DemoRun> run_demo(const DemoOptions& options) {
  auto run = std::make_unique<DemoRun>();
  run->prompt = tokens_of(options.prompt);
  run->decoding = decoding_options(options);
  Corpus corpus = load_corpus(options.corpus);
  const Stopwatch training;
  const DemoModels models(options, std::move(corpus));
  run->training_ms = training.elapsed_ms();

  PhiloxSource source;
  {
    // Each loop is timed with models that have not seen a context yet.
    DemoWorker worker(models, options);
    DecodingOptions kept = run->decoding;
    kept.keep_steps = true;
    const Stopwatch watch;
    run->speculative = generate(worker.target_model(), &worker.drafter(), kept, run->prompt, source);
    run->speculative_ms = watch.elapsed_ms();
  }
  {
    DemoWorker worker(models, options);
    const Stopwatch watch;
    run->plain = generate(worker.target_model(), nullptr, run->decoding, run->prompt, source);
    run->plain_ms = watch.elapsed_ms();
  }
  for (const SpeculativeStep& step : run->speculative.steps)
    run->requests.push_back(
        request_of(step, run->decoding, models.target.kVocabularySize, run->prompt, run->speculative.tokens));
  if (run->decoding.verify.verifier.info().proposal != DraftSampling::any)
    run->consistency = check_consistency(run->requests);

  const Stopwatch measuring;
  run->acceptance = measure_acceptance(models, options, run->decoding);
  run->acceptance_ms = measuring.elapsed_ms();
  const Stopwatch testing;
  run->distribution = check_distribution(models, options, run->decoding, run->prompt);
  run->distribution_ms = testing.elapsed_ms();
  return run;
}

}  // namespace draftproof
