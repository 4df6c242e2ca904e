#include "cli/speculate/measure.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/files/inputs_read.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/stopwatch.hpp"
#include "engine/decode/engine.hpp"
#include "engine/draft/drafter_factory.hpp"
#include "reference/step/draft_plan.hpp"
#include "sim/machine/machine_profile.hpp"

namespace draftproof {
namespace {

constexpr double kMsPerNs = 1e-6;
constexpr std::int32_t kTokenBudget = 2 * kDraftNodesMax;
constexpr std::int64_t kWarmUpTokens = 4;

DecodingOptions decoding_options(const SpeculateOptions& options, const Configuration& configuration,
                                 const TextModel& model, std::uint64_t seed) {
  DecodingOptions decoding;
  decoding.parameters.temperature = static_cast<float>(configuration.temperature);
  decoding.stop.eos_ids = model.tokenizer->end_tokens();
  decoding.stop.max_tokens = options.output_tokens();
  decoding.seed = seed;
  decoding.verify.verifier = parse_verifier(configuration.verifier, "--verifier");
  if (configuration.tree) decoding.tree = parse_tree(*configuration.tree, "--trees");
  decoding.num_speculative_tokens = configuration.k;
  return decoding;
}

SpeculationPolicy policy_of(const Configuration& configuration, const DecodingOptions& decoding,
                            std::shared_ptr<const StepCost> cost) {
  const DraftPlan plan = plan_for(decoding.verify.verifier, decoding.tree, decoding.num_speculative_tokens, "--trees");
  SpeculationChoice choice;
  choice.rule = configuration.likely ? SpeculationRule::likely : SpeculationRule::fixed;
  choice.num_drafts = plan.num_paths * plan.shape.size();
  return SpeculationPolicy(choice, configuration.likely ? std::move(cost) : nullptr);
}

// Is the output the same tokens as without speculation, and not only of the same distribution?
bool promises_equal_tokens(const VerifierChoice& verifier, double temperature) {
  return verifier.info().lossless && (temperature == 0.0 || verifier.info().is_coupled());
}

std::string difference_of(const WorkPrompt& prompt, const std::vector<Token>& plain, const std::vector<Token>& other) {
  const auto at = std::ranges::mismatch(plain, other).in1 - plain.begin();
  return prompt.where + ": the output differs from plain decoding from token " + std::to_string(at) + " on";
}

}  // namespace

struct Measurement::Decoded {
  std::vector<Generation> generations;
  std::vector<std::int64_t> prompt_tokens;  // of each
  std::int64_t tokens = 0;
  double ms = 0.0;
  StepTimes times;

  DecodedTime time() const { return {ms - times.ms, tokens - times.tokens, times.ms, times.tokens}; }

  void add_to(StepTimes& all) const {
    all.steps += times.steps;
    all.tokens += times.tokens;
    all.ms += times.ms;
    all.draft_ms += times.draft_ms;
    all.verify_ms += times.verify_ms;
    all.sample_ms += times.sample_ms;
  }
};

Measurement::Measurement(const SpeculateOptions& options, const TextModel& model) : options_(options), model_(model) {
  if (options.cost.empty()) {
    cost_ = std::make_shared<DefaultStepCost>();
  } else {
    const ContentsRead contents;
    cost_ = std::make_shared<MachineCost>(read_machine_profile(options.cost), 0.0);
    cost_sha256_ = contents.sha256();
  }
}

std::shared_ptr<Drafter> Measurement::make(const Configuration& configuration) const {
  DrafterChoice choice = parse_drafter(configuration.drafter, "--drafters");
  if (choice.kind == DrafterKind::model) choice.path = model_path(choice.path);
  return make_drafter(choice, model_, static_cast<float>(configuration.draft_temperature()),
                      {options_.activations == "f32", options_.threads}, "--drafters");
}

void Measurement::open_drafters(const std::vector<Configuration>& configurations) {
  for (const Configuration& configuration : configurations) {
    if (!parse_drafter(configuration.drafter, "--drafters").has_probabilities()) continue;
    std::shared_ptr<Drafter>& drafter = drafters_[{configuration.drafter, configuration.draft_temperature()}];
    if (drafter != nullptr) continue;
    const ContentsRead contents;
    drafter = make(configuration);
    drafter_sha256_[configuration.drafter] = contents.sha256();
  }
}

std::string Measurement::inputs_sha256(const Configuration& configuration) const {
  if (configuration.likely) return cost_sha256_;
  const auto found = drafter_sha256_.find(configuration.drafter);
  return found == drafter_sha256_.end() ? "" : found->second;
}

// Drafters that remember earlier requests begin anew, so that no row depends on those before it.
std::shared_ptr<Drafter> Measurement::drafter_of(const Configuration& configuration) {
  const auto found = drafters_.find({configuration.drafter, configuration.draft_temperature()});
  return found != drafters_.end() ? found->second : make(configuration);
}

std::vector<Token> Measurement::tokens_of(const WorkPrompt& prompt) const {
  return prompt.chat ? model_.chat_tokens(prompt.prompt, prompt.where) : model_.tokenizer->encode(prompt.prompt);
}

std::span<const WorkPrompt> Measurement::wanted(const Work& work) const {
  const std::span<const WorkPrompt> prompts(work.prompts);
  const auto most = static_cast<std::size_t>(options_.prompts_per_work());
  return most > 0 ? prompts.first(std::min(prompts.size(), most)) : prompts;
}

void Measurement::require_readable(const PromptSet& prompts) const {
  for (const Work& work : prompts.works)
    for (const WorkPrompt& prompt : wanted(work)) tokens_of(prompt);
}

Measurement::Decoded Measurement::decode(std::span<const WorkPrompt> prompts, const Configuration& configuration,
                                         Drafter* drafter, RankCounts& ranks, std::uint64_t first_seed) const {
  std::vector<std::vector<Token>> tokens;
  std::vector<DecodingOptions> decodings;
  EngineOptions engine_options;
  SchedulerOptions& scheduler = engine_options.scheduler;
  scheduler.num_blocks = 0;
  for (const WorkPrompt& prompt : prompts) {
    tokens.push_back(tokens_of(prompt));
    decodings.push_back(decoding_options(options_, configuration, model_, first_seed + decodings.size()));
    const std::int64_t longest = static_cast<std::int64_t>(tokens.back().size()) + 1 + options_.output_tokens();
    scheduler.num_blocks += static_cast<std::int32_t>((longest + kDraftNodesMax) / kKvBlockSlots + 2);
  }
  if (drafter != nullptr) engine_options.policy = policy_of(configuration, decodings.front(), cost_);
  scheduler.context_len_max =
      static_cast<std::int32_t>(std::min<std::int64_t>(model_.model->context_len_max(), 1 << 20));
  scheduler.running_max = static_cast<std::int32_t>(options_.batch);
  scheduler.token_budget = kTokenBudget;
  engine_options.share_prefixes = false;  // nothing to share but with the other run, which must not profit

  PhiloxSource source;
  SourceSampler<PhiloxSource> drawing(source);
  RankSampler sampler(drawing);
  Engine engine(*model_.model, drafter, sampler, engine_options);
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    ids.push_back(engine.submit(tokens[i], decodings[i], drafter != nullptr, prompts[i].where));

  Decoded decoded;
  const EngineMetrics& metrics = engine.scheduler().metrics();
  for (;;) {
    const std::int64_t prompt_tokens = metrics.prompt_tokens;
    const std::int64_t emitted = metrics.generation_tokens();
    const std::int64_t draft_ns = metrics.draft_ns;
    const std::int64_t verify_ns = metrics.verify_ns;
    const std::int64_t sample_ns = metrics.sample_ns;
    const double ranking_ms = sampler.own_ms();
    const Stopwatch watch;
    if (!engine.step()) break;
    const double ranked_ms = sampler.own_ms() - ranking_ms;
    const double ms = watch.elapsed_ms() - ranked_ms;
    decoded.ms += ms;
    if (metrics.prompt_tokens != prompt_tokens) continue;
    ++decoded.times.steps;
    decoded.times.tokens += metrics.generation_tokens() - emitted;
    decoded.times.ms += ms;
    decoded.times.draft_ms += kMsPerNs * static_cast<double>(metrics.draft_ns - draft_ns);
    decoded.times.verify_ms += kMsPerNs * static_cast<double>(metrics.verify_ns - verify_ns);
    decoded.times.sample_ms += kMsPerNs * static_cast<double>(metrics.sample_ns - sample_ns) - ranked_ms;
  }
  for (const std::vector<Token>& prompt : tokens)
    decoded.prompt_tokens.push_back(static_cast<std::int64_t>(prompt.size()));
  for (const std::uint64_t id : ids) {
    Generation& generation = decoded.generations.emplace_back(*engine.take(id));
    if (generation.failure) std::rethrow_exception(generation.failure);
    decoded.tokens += static_cast<std::int64_t>(generation.tokens.size());
  }
  ranks.positions += sampler.counts().positions;
  ranks.has_candidates |= sampler.counts().has_candidates;
  for (std::size_t i = 0; i < kRanks; ++i) ranks.by_rank[i] += sampler.counts().by_rank[i];
  return decoded;
}

void Measurement::warm_up(const WorkPrompt& prompt) const {
  SpeculateOptions few = options_;
  few.max_tokens = kWarmUpTokens;
  RankCounts unused;
  Measurement(few, model_).decode({&prompt, 1}, {"none", 1, std::nullopt, "chain", 0.0}, nullptr, unused, 0);
}

SpeculateRow Measurement::measure(const Work& work, const Configuration& configuration) {
  const std::span<const WorkPrompt> prompts = wanted(work);
  const std::shared_ptr<Drafter> drafter = drafter_of(configuration);
  SpeculateRow row;
  row.prompts = static_cast<std::int64_t>(prompts.size());
  row.inputs_sha256 = inputs_sha256(configuration);
  if (promises_equal_tokens(parse_verifier(configuration.verifier, "--verifier"), configuration.temperature))
    row.equal = true;
  const auto batch = static_cast<std::size_t>(options_.batch);
  for (std::size_t begin = 0; begin < prompts.size(); begin += batch) {
    const auto group = prompts.subspan(begin, std::min(batch, prompts.size() - begin));
    const auto run = [&](Drafter* with) {
      return decode(group, configuration, with, row.ranks, options_.seed + begin);
    };
    const bool plain_first = begin / batch % 2 == 0;
    Decoded plain;
    if (plain_first) plain = run(nullptr);
    const Decoded speculative = run(drafter.get());
    if (!plain_first) plain = run(nullptr);

    row.plain_tokens += plain.tokens;
    row.pairs.push_back(paired_time(plain.time(), speculative.time()));
    plain.add_to(row.plain);
    speculative.add_to(row.speculative);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const AcceptanceCounts& counts = row.acceptance.emplace_back(speculative.generations[i].acceptance);
      row.requests.push_back({speculative.prompt_tokens[i],
                              static_cast<std::int64_t>(plain.generations[i].tokens.size()),
                              static_cast<std::int64_t>(speculative.generations[i].tokens.size()), counts.steps,
                              counts.drafts, counts.draft_tokens});
      if (!row.equal.value_or(false) || plain.generations[i].tokens == speculative.generations[i].tokens) continue;
      row.equal = false;
      row.difference = difference_of(group[i], plain.generations[i].tokens, speculative.generations[i].tokens);
    }
  }
  return row;
}

}  // namespace draftproof
