// Panel "Speculate": the project's engine decodes one prompt twice, plainly and with speculation, and everything that
// can be seen of it is recorded: where the time went, each draft tree with its probabilities, how each token came
// about.
//
// The two lanes share one time axis. Each has a clock of its own, that of the engine's steps in which it computed, and
// they take turns (the one that is behind goes on), so that neither is slowed down by the other.
//
// Guarantee: tokens, trees, probabilities and acceptance depend on the settings only; times are measured. They are
// those of `draftproof generate` with command_arguments().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/decode/generation.hpp"
#include "studies/figures/table.hpp"
#include "studies/job.hpp"
#include "studies/lesson.hpp"
#include "studies/opened_result.hpp"
#include "studies/palette.hpp"

namespace draftproof {

// An n-gram model of the system's licence texts, for where no language model has been fetched.
inline constexpr const char* kToyModel = "ngram:6";
// The shipped model where it has been fetched, else kToyModel.
std::string standard_model();
// An n-gram model: its passes take next to no time, so that what a clock says of speculation with it means nothing.
bool is_toy(const std::string& model);

inline constexpr double kNsPerMs = 1e6;
inline double ms(std::int64_t ns) {
  return static_cast<double>(ns) / kNsPerMs;
}

struct SpeculateSettings {
  std::string model = standard_model();
  std::string prompt = "You may copy and distribute the ";
  bool chat = false;
  std::int64_t max_tokens = 100;
  double temperature = 0.0;
  double top_p = 1.0;
  std::int64_t top_k = 0;
  double min_p = 0.0;
  double cfg_scale = 1.0;
  std::string negative_prompt;
  std::string grammar;  // regex:TEXT, choice:A,B, json_schema:FILE or gbnf:FILE; empty: none
  std::string drafter = "suffix";
  std::string verifier = "chain";
  std::string tree;                // children of a node by depth, as "3x2x1"; empty: a chain of K
  int num_speculative_tokens = 8;  // K
  std::int64_t outputs = 1;        // of the prompt, in one batch, with the seeds seed, seed + 1, ...
  bool ignore_eos = false;
  std::uint64_t seed = 0;
  int threads = 1;

  bool operator==(const SpeculateSettings&) const = default;
};

// Node of a draft of the first output, the one that is shown.
struct ShownNode {
  Token token = 0;
  std::int32_t parent = kRootNode;
  std::int32_t depth = 1;
  bool accepted = false;
  bool has_draft_probability = false;  // of drafters that look tokens up there is none
  float draft_probability = 0.0f;      // q: what it was drawn with
  float target_probability = 0.0f;     // p: of the target's row with the request's parameters, which judges it
  float model_probability = 0.0f;      // of the target's row as the model gave it
  std::string text;                    // fit for one line
};

struct ShownToken {
  Token token = 0;
  TokenOrigin origin = TokenOrigin::sampled;
  std::string text;  // fit for one line
};

// One step of the engine. Times are nanoseconds of the lane's clock.
struct SpeculateStep {
  std::int64_t begin_ns = 0;
  std::int64_t draft_ns = 0;
  std::int64_t prefill_ns = 0;  // a forward pass of the target that computed prompts too
  std::int64_t verify_ns = 0;   // any other; in plain decoding what computes the next token's row
  std::int64_t sample_ns = 0;   // rows processed, verification, stop conditions
  std::int64_t end_ns = 0;      // the rest is bookkeeping
  std::int32_t num_rows = 0;    // that the target computed, over all outputs and companions
  std::vector<ShownNode> draft;
  std::vector<std::int32_t> path;   // accepted nodes, from the context down
  float last_probability = 0.0f;    // p of the token behind the accepted ones, with speculation
  std::vector<ShownToken> emitted;  // by the output that is shown
  // After it, over all outputs.
  std::int64_t tokens = 0;
  AcceptanceCounts acceptance;
  // engine/metrics/metrics.hpp
  double acceptance_rate_p50 = 0.0, overhead_ratio = 0.0, effective_speedup = 0.0, tokens_per_row = 0.0;
};

// Parts of a step's time, in their order within it.
struct SpeculatePart {
  const char* name;
  std::int64_t SpeculateStep::*ns;
  const PaletteColour* colour;
};
inline constexpr std::array<SpeculatePart, 4> kSpeculateParts{
    {{"draft", &SpeculateStep::draft_ns, &palette::kDraft},
     {"prefill", &SpeculateStep::prefill_ns, &palette::kPrefill},
     {"verify", &SpeculateStep::verify_ns, &palette::kVerify},
     {"sample", &SpeculateStep::sample_ns, &palette::kSample}}};

// "sampled", "accepted", "recovered", "bonus".
std::string_view name_of(TokenOrigin origin);

// A part of the shown output that came about in one way.
struct TextPiece {
  std::string text;
  TokenOrigin origin = TokenOrigin::sampled;
  std::int32_t step = 0;
};

struct SpeculateLane {
  std::vector<std::shared_ptr<const SpeculateStep>> steps;
  std::vector<TextPiece> text;  // printable; a character of several tokens is its first one's
  std::int64_t num_prompt_tokens = 0;
  bool ended = false;
  std::vector<Generation> outputs;  // once it has ended

  std::int64_t time_ns() const { return steps.empty() ? 0 : steps.back()->end_ns; }
  std::int64_t tokens() const { return steps.empty() ? 0 : steps.back()->tokens; }
  double tokens_per_second() const;  // 0 before any time has passed
};

struct SpeculateSnapshot {
  SpeculateSettings settings;
  std::string model;       // as it was named
  std::string arithmetic;  // which target it is
  SpeculateLane plain;
  SpeculateLane speculation;
  // Is every token so far the one that plain decoding chose? must_agree: the verifier is lossless, and decoding is
  // greedy or coupled.
  bool agree = true;
  bool must_agree = false;

  double speedup() const;  // tokens per second with speculation / without; 0 before both have any
};

// Errors (usage, input): settings that `draftproof generate` refuses too, and drafter "none", which leaves nothing to
// compare; a draft that the verifier does not take.
void compute(const SpeculateSettings& settings, Job& job, const std::function<void(SpeculateSnapshot)>& publish);

// View of the lanes after they have run for `time_ns`: the first steps of each.
struct SpeculateView {
  std::size_t plain_steps = 0;
  std::size_t speculation_steps = 0;
  double plain_tokens_per_second = 0.0;
  double speculation_tokens_per_second = 0.0;
};
SpeculateView view_at(const SpeculateSnapshot& snapshot, std::int64_t time_ns);
// Up to which moment both lanes are known; the end of the longer one when both have ended.
std::int64_t known_until_ns(const SpeculateSnapshot& snapshot);

nlohmann::ordered_json to_json(const SpeculateSnapshot& snapshot);
Table to_table(const SpeculateSnapshot& snapshot);
std::string to_figure(const SpeculateSnapshot& snapshot);
std::vector<std::string> command_arguments(const SpeculateSettings& settings);

using SpeculatePreset = Lesson<SpeculateSettings>;
// For the shipped model, or for an n-gram model.
std::vector<SpeculatePreset> speculate_presets(const std::string& model);

// The settings of a run of `draftproof demo`, from the document that it wrote: those of the language model where the
// run had one, else those of the n-grams. expected_text: what the run gave with speculation, and this panel must
// give. Errors (input) name the file, and what it lacks or was made with that this panel has not.
struct DemoSettings {
  SpeculateSettings settings;
  std::string expected_text;  // bytes that are not UTF-8 are U+FFFD in the document
};
DemoSettings speculate_settings_of_demo(const OpenedResult& result);
// Text of the first output of a lane that has ended, as JSON documents carry it.
std::string text_in_json(const SpeculateLane& lane);

}  // namespace draftproof
