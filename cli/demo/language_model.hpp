// The first part of the demo: a real language model answers, with speculation and without, on this computer.
#pragma once

#include <ostream>
#include <string>

#include "cli/demo/options.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"
#include "engine/decode/paired_run.hpp"
#include "engine/model/text_model.hpp"

namespace draftproof {

struct LanguageModelRun {
  TextModel model;
  std::string prompt;
  PairedRun pair;  // of the one request

  const Generation& plain() const { return pair.plain.generations.front(); }
  const Generation& speculative() const { return pair.speculative.generations.front(); }
  // At temperature 0 speculation must change no token.
  bool is_finding() const { return first_difference(plain().tokens, speculative().tokens).has_value(); }
};

// Both times greedy, the same prompt, the one after the other. Errors (input): the model.
LanguageModelRun run_language_model(const DemoOptions& options);

void print_language_model(std::ostream& out, const LanguageModelRun& run, const Palette& palette);

Json language_model_json(const LanguageModelRun& run);

}  // namespace draftproof
