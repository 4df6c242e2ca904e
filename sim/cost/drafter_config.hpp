// The config.json of a drafting head: its method by what it calls itself, and its own figures.
#pragma once

#include <optional>
#include <string>

#include "sim/cost/drafter.hpp"

namespace draftproof {

struct HeadConfigFile {
  std::string method;                // a preset of sim/presets/drafters
  std::optional<ModelShape> layers;  // what it says of its own; nothing: the head has the target's form
  double target_width = 0.0;         // of the features that it reads; 0: not said
  double draft_vocab = 0.0;          // 0: not said
  double output_heads = 0.0;         // Medusa's; 0: not said
  double features = 0.0;             // layers of the target that it reads; 0: not said
  double markov_rank = 0.0;
  int drafts = 0;    // of one step where nothing else is said; 0: not said
  DraftCount count;  // of any step
};

// The method of a config.json that calls itself a head's, without a look at its figures; empty: a language model's, or
// no JSON object.
std::string head_method_in(const std::string& text, const std::string& path);

// Told by `speculators_model_type`, `architectures` and keys that only one kind of head has; a single layer of the
// target's width is EAGLE's. Nothing: it is a language model's. Input error naming `path`: no JSON object, or a kind of
// head that is not known. Without a target (null) neither its width decides anything nor is it compared.
std::optional<HeadConfigFile> read_head_config(const std::string& text, const std::string& path,
                                               const ModelShape* target);

}  // namespace draftproof
