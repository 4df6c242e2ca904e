// A prediction as the configuration of an engine: how many drafts at which load, what each is expected to gain, and the
// command that starts the server.
//
// Names and rules, from the engines' own code (29 November 2026):
//   vLLM 0.33.0     vllm/v1/spec_decode/dynamic/utils.py: inclusive ranges [from, to, K] from 1 on that do not overlap;
//                   K = 0 is off; the last range holds beyond its end. Since 0.27; not with data parallelism
//   SGLang 0.5.23   srt/speculative/adaptive_spec_params.py: slots by their least batch; a slot of one candidate step
//                   has that K, 0 is off. EAGLE and EAGLE-3 alone, not with attention over data-parallel ranks
//   TensorRT-LLM    llmapi/llm_args.py, draft_len_schedule: a key is the least batch of its K and 1 is one of them;
//                   since pull request 10860 (2026) it is the largest, and off beyond the last one. Both ends of every
//                   range mean the same to either; the first value is max_draft_len
//   llama.cpp       common/arg.cpp: one number for all loads; b8210 knows --draft-max, b9014 refuses it for
//                   --spec-draft-n-max
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/predict/prediction_request.hpp"

namespace draftproof {

inline constexpr const char* kConfigEngines[] = {"vllm", "sglang", "trtllm", "llama.cpp"};

// Loads that have one number of drafts.
struct DraftsByLoad {
  LoadInterval loads;                 // requests at a time on one engine: of data parallelism, one rank
  std::int32_t drafts = 0;            // K of a chain; 0: off
  PredictionRow first;                // at its least load: these drafts, or the best ones where they are off
  PredictionRow worst;                // and where they gain least
  std::optional<PredictionRow> tree;  // the best draft there, where it is a tree at one of these loads: not written
};

// Up to what the memory holds. Off where the best chain loses with more than `loss_max` probability, or does not pay in
// the mean. K stays that of the load below unless another gains kGainWorthAChange: a load that goes up and down a
// little changes nothing.
std::vector<DraftsByLoad> draft_schedule(const PredictionInputs& inputs, double loss_max);

// Text of a shell script: comments with the gain of every line, what the engine reads, and the command. Errors (usage):
// the engine has no such drafter.
std::string engine_config(const std::string& engine, const PredictionInputs& inputs, double loss_max);

}  // namespace draftproof
