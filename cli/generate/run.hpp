// Computation of `draftproof generate`, before any of it is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/generate/options.hpp"
#include "engine/decode/beam_search.hpp"
#include "engine/decode/generation.hpp"
#include "engine/draft/drafter.hpp"
#include "engine/metrics/metrics.hpp"

namespace draftproof {

struct GeneratedRequest {
  PromptRequest prompt;
  std::vector<Token> prompt_tokens;
  Generation generation;
  std::string error;                  // why it could not go on, or be taken; empty where it could
  std::vector<BeamHypothesis> beams;  // with --beams
  std::vector<std::string> beam_texts;
};

struct GenerateRun {
  TextModel model;
  std::string drafter;
  std::optional<SharedTokens> shared_tokens;  // of a draft model with another vocabulary
  std::string verifier;
  std::vector<GeneratedRequest> requests;
  EngineMetrics metrics;
  std::int64_t tokens = 0;  // that all requests received
  double generation_ms = 0.0;
};

// The options must be valid. A request that cannot be served has an error; the others go on. Errors (input, usage): the
// model, the drafter, the file of prompts.
GenerateRun run_generate(const GenerateOptions& options);

}  // namespace draftproof
