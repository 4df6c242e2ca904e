// Output of `draftproof features`: the target's own answers with its hidden features, in shards of a fixed number of
// prompts each, FOLDER/shard-00000.safetensors, ...
//
//   tokens        I32 [n]               prompt and answer, one text behind another; the last token of a text, of which
//                                       there are no features, is left out
//   cu_tokens     I64 [texts]           where each text ends in `tokens`
//   prompt_len    I32 [texts]
//   prompt_index  I32 [texts]           line of --prompts, counted from 0
//   features      F16 [n, layers, width] residual stream behind the layers
//   layers        I32 [layers]          counted from 1
//
// Metadata: `settings`, a JSON object of what the bytes depend on. The bytes of a shard depend on its prompts, the
// options and the model alone, not on threads, other shards or where an earlier run was interrupted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/generate/options.hpp"

namespace draftproof {

struct FeaturesOptions {
  GenerateOptions generate;  // of the texts: model, prompts, sampling, batch, arithmetic
  std::string out;           // a folder
  std::vector<int> layers;   // empty: those of EAGLE-3, and the last
  std::int64_t prompts_per_shard = 128;
  std::int64_t tokens = 0;  // shards are written until there are as many; 0: of all prompts
};

struct WrittenShard {
  std::string path;
  std::int64_t texts = 0;
  std::int64_t tokens = 0;
  std::int64_t prompt_tokens = 0;
  bool found = false;  // it was there, of an earlier run with the same settings
};

struct FeaturesRun {
  std::string model;
  std::string arithmetic;
  std::vector<std::int32_t> layers;
  std::int64_t width = 0;
  std::vector<WrittenShard> shards;
  std::int64_t generated_tokens = 0;  // by this run
  double wall_ms = 0.0;
};

// Errors (usage): a layer that the model has not; (input) a model without layers, a line of the prompts, a prompt that
// the model does not take, a feature outside the range of binary16, a shard that was made with other settings.
FeaturesRun write_features(const FeaturesOptions& options);

}  // namespace draftproof
