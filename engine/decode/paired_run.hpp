// The same requests with and without speculation: jobs that run beside each other, what their steps took, and the first
// token in which two outputs differ.
//
//   DecodeRun    jobs on an engine of their own, step by step (draftproof generate, a lane of panel "Speculate")
//   run_pair()   the same jobs plainly and with a drafter (draftproof speculate, the first part of the demo)
//
// Guarantee: the tokens of a job depend on the job, drafter and policy alone, not on the observers.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/engine.hpp"

namespace draftproof {

struct DecodeJob {
  std::vector<Token> prompt;
  DecodingOptions decoding;
  std::string where = "request";  // what its errors name
};

// Where jobs run.
struct DecodeRoom {
  std::int64_t batch = 1;                  // jobs at the same time
  std::int64_t context_len_max = 1 << 20;  // prompt and output; lowered to the model's
  std::optional<std::int64_t> num_blocks;  // of the KV cache; absent: enough for the batch
  std::int64_t token_budget = 2048;        // rows of the target in one step
  bool share_prefixes = false;             // else no job profits from what another computed
};

// Options of an engine for these jobs. The cache has room for the largest `batch` of them, each with its longest
// output, the largest draft behind it and, of guided ones, the companion.
EngineOptions engine_options(std::span<const DecodeJob> jobs, const DecodeRoom& room, const LanguageModel& target,
                             SpeculationPolicy policy = SpeculationPolicy());

// Every draft as large as the request's shape and K allow; rule likely: of those nodes the likely ones. Errors (usage)
// at `where`: the verifier does not take the tree.
SpeculationChoice whole_drafts(const DecodingOptions& decoding, const std::string& where,
                               SpeculationRule rule = SpeculationRule::fixed);

// Counts and times of steps; the times exclude the observer's.
struct StepTimes {
  std::int64_t steps = 0;
  std::int64_t prompt_tokens = 0;  // computed
  std::int64_t tokens = 0;         // emitted
  std::int64_t rows = 0;           // of requests' steps and their drafts
  std::int64_t drafts = 0;         // verified
  std::int64_t wall_ns = 0;
  std::int64_t engine_ns = 0;  // on the engine's clock: the four parts below, and bookkeeping
  std::int64_t draft_ns = 0;
  std::int64_t verify_ns = 0;  // forward passes of the target
  std::int64_t sample_ns = 0;  // its rows, the verifier, stop conditions
  std::int64_t mask_ns = 0;    // masks of grammars

  StepTimes& operator+=(const StepTimes& other);
  double wall_ms() const { return 1e-6 * static_cast<double>(wall_ns); }
};

struct DecodedJobs {
  std::vector<Generation> generations;  // as the jobs
  StepTimes prompt_steps;               // that computed prompts
  StepTimes other_steps;

  double wall_ms() const { return prompt_steps.wall_ms() + other_steps.wall_ms(); }
  double tokens_per_second() const;  // 0 before any time has passed
};

// Called with each verified step of a job, and the rows of the target that judged it, which are valid until the next
// forward pass.
using OnVerified = std::function<void(const SpeculativeStep& step, const TargetRows& rows)>;

class DecodeRun {
 public:
  // drafter null: plain decoding. Target and drafter must outlive the object. Errors (usage): those of Engine.
  DecodeRun(LanguageModel& target, Drafter* drafter, EngineOptions options);
  DecodeRun(const DecodeRun&) = delete;
  DecodeRun& operator=(const DecodeRun&) = delete;

  void on_verified(OnVerified callback) { sampler_.on_verified = std::move(callback); }
  // The job by its number, 0, 1, ... Errors as of Engine::submit().
  std::uint64_t submit(const DecodeJob& job) { return engine_.submit(job.prompt, job.decoding, true, job.where); }
  // One step of all jobs; nothing where nothing was left to do.
  std::optional<StepTimes> step();
  bool ended() const { return engine_.scheduler().idle(); }
  // Steps until all jobs have ended, and takes what came of them. Errors: what made a job impossible.
  DecodedJobs run();

  // Its observers, its metrics, and outcomes of single jobs.
  Engine& engine() { return engine_; }

 private:
  struct ObservedSampler final : SourceSampler<PhiloxSource> {
    ObservedSampler() : SourceSampler(source) {}
    void verify(const TargetRows& rows, const DecodingOptions& options, std::int64_t vocab_size,
                const Sequence& sequence, SpeculativeStep& step) override;

    PhiloxSource source;
    OnVerified on_verified;
    std::int64_t observer_ns = 0;
  };
  StepTimes all_steps() const;

  bool drafts_;
  ObservedSampler sampler_;
  Engine engine_;
  std::int64_t wall_ns_ = 0;
  DecodedJobs decoded_;
};

struct PairedRun {
  DecodedJobs plain;
  DecodedJobs speculative;
};

enum class PairOrder : std::uint8_t { plain_first, speculative_first };

// Decodes the jobs both ways, on two engines one after the other; drafter null: plainly both times, which shows by how
// much two runs of the same differ. on_verified sees the steps of the speculative run.
// Errors: what makes a job impossible.
PairedRun run_pair(LanguageModel& target, Drafter* drafter, std::span<const DecodeJob> jobs, const DecodeRoom& room,
                   const SpeculationPolicy& policy, PairOrder order, const OnVerified& on_verified = nullptr);

// Decodes a few tokens of the job plainly: the first passes of all read the weights from cold memory, and are no run's.
void warm_up(LanguageModel& target, DecodeJob job);

// The first token in which the outputs differ; their common length where one goes on; nothing where they are equal.
std::optional<std::size_t> first_difference(std::span<const Token> plain, std::span<const Token> speculative);

}  // namespace draftproof
