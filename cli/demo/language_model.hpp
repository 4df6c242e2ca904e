// The first part of the demo: a real language model answers, with speculation and without, on this computer.
#pragma once

#include <ostream>
#include <string>

#include "cli/demo/options.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"
#include "engine/decode/generation.hpp"
#include "engine/model/text_model.hpp"

namespace draftproof {

struct LanguageModelRun {
  TextModel model;
  std::string drafter;
  std::string prompt;
  Generation speculative;
  Generation plain;
  double speculative_ms = 0.0;  // both with the prompt
  double plain_ms = 0.0;

  // At temperature 0 speculation must change no token.
  bool is_finding() const { return speculative.tokens != plain.tokens; }
  double tokens_per_second(bool with_speculation) const;
};

// Both times greedy, the same prompt, the one after the other. Errors (input): the model.
LanguageModelRun run_language_model(const DemoOptions& options);

void print_language_model(std::ostream& out, const LanguageModelRun& run, const Palette& palette);

Json language_model_json(const LanguageModelRun& run);

}  // namespace draftproof
