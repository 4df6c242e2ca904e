#include "cli/speculate/measure.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/files/inputs_read.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/this_machine.hpp"
#include "engine/draft/drafter_factory.hpp"
#include "reference/step/draft_plan.hpp"

namespace draftproof {
namespace {

DecodedTime time_of(const DecodedJobs& jobs) {
  return {jobs.prompt_steps.wall_ms(), jobs.prompt_steps.tokens, jobs.other_steps.wall_ms(), jobs.other_steps.tokens};
}

}  // namespace

Measurement::Measurement(const SpeculateOptions& options, const TextModel& model)
    : options_(options),
      model_(model),
      grammars_(model.tokenizer, model.model->vocab_size(), model.tokenizer->end_tokens()) {
  const ContentsRead contents;
  cost_ = read_step_cost(options.cost, 0.0);
  if (!options.cost.empty()) cost_sha256_ = contents.sha256();
  grammar_ = grammar_source(options.grammar);
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
    if (auto* const head = dynamic_cast<HeadDrafter*>(drafter.get()); head != nullptr && options_.oracle) {
      oracles_.push_back(std::make_unique<AcceptanceOracle>(head->head().shared_weights(), *model_.transformer));
      oracles_.back()->attach(*head);
    }
    drafter_sha256_[configuration.drafter] = contents.sha256();
  }
}

Json Measurement::oracle_json() {
  if (!options_.oracle) return nullptr;
  if (oracles_.empty())
    throw usage_error("--oracle", "compares drafts of heads, and none of the drafters is one; expected head:PATH");
  Json json{{"rows", 0}, {"drafts", 0}, {"different", 0}, {"first", nullptr}};
  for (const auto& oracle : oracles_) {
    json["rows"] = json.at("rows").get<std::int64_t>() + oracle->rows_compared();
    json["drafts"] = json.at("drafts").get<std::int64_t>() + oracle->drafts_compared();
    json["different"] = json.at("different").get<std::int64_t>() + oracle->num_different();
    if (json.at("first").is_null() && oracle->first()) json["first"] = oracle->first()->text();
  }
  return json;
}

std::string Measurement::inputs_sha256(const Configuration& configuration) const {
  if (configuration.by_cost()) return cost_sha256_;
  const auto found = drafter_sha256_.find(configuration.drafter);
  return found == drafter_sha256_.end() ? "" : found->second;
}

// One comes first in every other batch.
PairOrder Measurement::order_of(std::size_t begin) const {
  return begin / static_cast<std::size_t>(options_.batch) % 2 == 0 ? PairOrder::plain_first
                                                                   : PairOrder::speculative_first;
}

// Drafters that remember earlier requests begin anew, so that no row depends on those before it.
std::shared_ptr<Drafter> Measurement::drafter_of(const Configuration& configuration) {
  const auto found = drafters_.find({configuration.drafter, configuration.draft_temperature()});
  return found != drafters_.end() ? found->second : make(configuration);
}

std::span<const WorkPrompt> Measurement::wanted(const Work& work) const {
  return first_prompts(work, options_.prompts_per_work());
}

void Measurement::require_readable(const PromptSet& prompts) const {
  for (const Work& work : prompts.works)
    for (const WorkPrompt& prompt : wanted(work)) {
      tokens_of(prompt, model_);
      grammar_of(prompt);
    }
}

std::shared_ptr<const Grammar> Measurement::grammar_of(const WorkPrompt& prompt) const {
  const std::optional<GrammarSource>& source = prompt.grammar ? prompt.grammar : grammar_;
  return source ? grammars_.compile(*source) : nullptr;
}

DecodeJob Measurement::job_of(const WorkPrompt& prompt, const Configuration& configuration, std::uint64_t seed) const {
  DecodeJob job{tokens_of(prompt, model_), {}, prompt.where};
  DecodingOptions& decoding = job.decoding;
  decoding.parameters.temperature = static_cast<float>(configuration.temperature);
  decoding.stop.eos_ids = model_.tokenizer->end_tokens();
  decoding.stop.max_tokens = options_.output_tokens();
  decoding.seed = seed;
  decoding.grammar = {grammar_of(prompt), !options_.grammar.unmasked_drafts};
  decoding.verify.verifier = parse_verifier(configuration.verifier, "--verifier");
  if (configuration.tree) decoding.tree = parse_tree(*configuration.tree, "--trees");
  decoding.num_speculative_tokens = configuration.k;
  return job;
}

std::vector<DecodeJob> Measurement::jobs_from(std::span<const WorkPrompt> prompts, std::size_t begin,
                                              const Configuration& configuration) const {
  const std::size_t end = std::min(begin + static_cast<std::size_t>(options_.batch), prompts.size());
  std::vector<DecodeJob> jobs;
  for (std::size_t i = begin; i < end; ++i) jobs.push_back(job_of(prompts[i], configuration, options_.seed + i));
  return jobs;
}

void Measurement::warm_up(const WorkPrompt& prompt) const {
  draftproof::warm_up(*model_.model, job_of(prompt, {"none", 1, std::nullopt, "chain", 0.0}, 0));
}

const std::vector<PairedTime>& Measurement::plain_pairs(const Work& work, const Configuration& configuration) {
  const auto [found, is_new] = plain_pairs_.try_emplace({work.name, configuration.temperature});
  if (!is_new) return found->second;
  const std::span<const WorkPrompt> prompts = wanted(work);
  DecodeRoom room;
  room.batch = options_.batch;
  for (std::size_t begin = 0; begin < prompts.size(); begin += static_cast<std::size_t>(options_.batch)) {
    const auto pair =
        run_pair(*model_.model, nullptr, jobs_from(prompts, begin, configuration), room, {}, order_of(begin));
    found->second.push_back(paired_time(time_of(pair.plain), time_of(pair.speculative)));
  }
  return found->second;
}

SpeculateRow Measurement::measure(const Work& work, const Configuration& configuration) {
  const std::span<const WorkPrompt> prompts = wanted(work);
  const std::shared_ptr<Drafter> drafter = drafter_of(configuration);
  const auto batch = static_cast<std::size_t>(options_.batch);
  const auto vocab_size = static_cast<std::size_t>(model_.model->vocab_size());
  DecodeRoom room;
  room.batch = options_.batch;
  SpeculateRow row;
  std::optional<SpeculationPolicy> policy;
  row.prompts = static_cast<std::int64_t>(prompts.size());
  row.inputs_sha256 = inputs_sha256(configuration);
  row.plain_pairs = plain_pairs(work, configuration);
  for (std::size_t begin = 0; begin < prompts.size(); begin += batch) {
    const std::vector<DecodeJob> jobs = jobs_from(prompts, begin, configuration);
    const DecodingOptions& decoding = jobs.front().decoding;
    // Copies share what was measured, from batch to batch.
    if (!policy)
      policy.emplace(whole_drafts(decoding, "--trees", parse_speculation(configuration.policy, "--policy").rule),
                     cost_);
    const PairedRun pair =
        run_pair(*model_.model, drafter.get(), jobs, room, *policy, order_of(begin),
                 [&](const SpeculativeStep& step, const TargetRows&) { row.ranks.add(step, vocab_size); });

    for (const auto& oracle : oracles_) oracle->end_run();
    if (begin == 0 && promises_equal_tokens(decoding)) row.equal = true;
    row.pairs.push_back(paired_time(time_of(pair.plain), time_of(pair.speculative)));
    row.plain += pair.plain.other_steps;
    row.speculative += pair.speculative.other_steps;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::vector<Token>& plain = pair.plain.generations[i].tokens;
      const std::vector<Token>& tokens = pair.speculative.generations[i].tokens;
      const AcceptanceCounts& counts = row.acceptance.emplace_back(pair.speculative.generations[i].acceptance);
      const auto length_of = [](const std::vector<Token>& list) { return static_cast<std::int64_t>(list.size()); };
      row.plain_tokens += length_of(plain);
      row.requests.push_back({length_of(jobs[i].prompt), length_of(plain), length_of(tokens), counts.steps,
                              counts.drafts, counts.draft_tokens});
      const auto differs = first_difference(plain, tokens);
      if (!row.equal.value_or(false) || !differs) continue;
      row.equal = false;
      row.difference =
          jobs[i].where + ": the output differs from plain decoding from token " + std::to_string(*differs) + " on";
    }
  }
  return row;
}

}  // namespace draftproof
