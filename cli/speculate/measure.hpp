// Measures one row of the table: the prompts of one kind of work, decoded plainly and with speculation in turns.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "cli/shared/speedup.hpp"
#include "cli/speculate/options.hpp"
#include "cli/speculate/rank_counts.hpp"
#include "engine/decode/paired_run.hpp"
#include "engine/draft/drafter.hpp"
#include "engine/grammar/compile_grammar.hpp"
#include "engine/heads/lab/acceptance_oracle.hpp"
#include "engine/metrics/acceptance.hpp"
#include "engine/model/prompt_set.hpp"
#include "engine/model/text_model.hpp"
#include "engine/scheduler/step_cost.hpp"
#include "sim/machine/speedup_prediction.hpp"

namespace draftproof {

struct SpeculateRow {
  std::int64_t prompts = 0;
  std::int64_t plain_tokens = 0;
  std::vector<AcceptanceCounts> acceptance;  // of each prompt
  std::vector<CountedRequest> requests;      // likewise
  RankCounts ranks;
  std::vector<PairedTime> pairs;        // a pair for each batch
  std::vector<PairedTime> plain_pairs;  // likewise, of plain decoding and plain decoding again
  StepTimes plain;                      // of steps that computed no prompt
  StepTimes speculative;                // likewise
  // Whether the tokens are those of plain decoding; nothing where only their distribution is.
  std::optional<bool> equal;
  std::string difference;     // the first one, in words
  std::string inputs_sha256;  // Measurement::inputs_sha256()
};

class Measurement {
 public:
  // Both must outlive the object. Error (input): the file of costs.
  Measurement(const SpeculateOptions& options, const TextModel& model);

  // Checks the prompts that are measured, and compiles their grammars. Errors (input): one asks for a chat, and the
  // model has no chat template; a grammar's own.
  void require_readable(const PromptSet& prompts) const;
  // Makes the drafters of the configurations. Errors (usage, input): one that the model has not got.
  void open_drafters(const std::vector<Configuration>& configurations);
  // The digest of the files, besides the target's, that a configuration's rows come from: of the drafter's model, or of
  // the costs of the likely policy. Empty: none. Precondition: open_drafters().
  std::string inputs_sha256(const Configuration& configuration) const;
  // So that the first row finds the weights in memory.
  void warm_up(const WorkPrompt& prompt) const;
  // The prompts of `work` in batches. Plain decoding comes first in every other batch, speculation in the others.
  // Errors: a prompt that is too long, a model without a chat template.
  SpeculateRow measure(const Work& work, const Configuration& configuration);
  // Comparisons of --oracle so far: {"rows", "drafts", "different", "first"}; null without it. Errors (usage): it is
  // asked for, and no drafter is a head.
  Json oracle_json();

 private:
  std::span<const WorkPrompt> wanted(const Work& work) const;
  // Of the same prompts and temperature, measured once: what the clock makes of no speedup at all.
  const std::vector<PairedTime>& plain_pairs(const Work& work, const Configuration& configuration);
  DecodeJob job_of(const WorkPrompt& prompt, const Configuration& configuration, std::uint64_t seed) const;
  PairOrder order_of(std::size_t begin) const;
  // Of one batch.
  std::vector<DecodeJob> jobs_from(std::span<const WorkPrompt> prompts, std::size_t begin,
                                   const Configuration& configuration) const;
  std::shared_ptr<const Grammar> grammar_of(const WorkPrompt& prompt) const;
  std::shared_ptr<Drafter> drafter_of(const Configuration& configuration);
  std::shared_ptr<Drafter> make(const Configuration& configuration) const;

  const SpeculateOptions& options_;
  const TextModel& model_;
  std::shared_ptr<const StepCost> cost_;  // of the likely policy
  std::string cost_sha256_;
  mutable GrammarCompiler grammars_;
  std::optional<GrammarSource> grammar_;  // of prompts that have none of their own
  std::map<std::pair<std::string, double>, std::vector<PairedTime>> plain_pairs_;  // by work and temperature
  std::map<std::string, std::string> drafter_sha256_;                              // by name
  // With a model of their own, by name and draft temperature.
  std::map<std::pair<std::string, double>, std::shared_ptr<Drafter>> drafters_;
  std::vector<std::unique_ptr<AcceptanceOracle>> oracles_;  // one for each head
};

}  // namespace draftproof
