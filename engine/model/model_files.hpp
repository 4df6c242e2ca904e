// All that a program needs of a model: its weights, its tokenizer and its chat template, from one GGUF file or one
// Hugging Face folder.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/tokenizer/chat_template.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "engine/weights/model_weights.hpp"

namespace draftproof {

struct ModelFiles {
  std::string path;
  ModelWeights weights;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<std::string> chat_template;  // as the file has it; chat() recognises it

  // Input error: there is none, or it is of an unknown form.
  ChatTemplate chat() const;
};

// The chat template in a tokenizer_config.json, where it is a text or a list of named ones, of which "default" is
// taken. Input errors naming file and field: a template or a special token of another type.
std::optional<std::string> parse_tokenizer_config(const JsonFields& config);

// Input errors naming the file: those of its readers, and a token whose id is not below the rows of the embedding. A
// folder may have more rows than tokens, which are padding; a GGUF file has one token for each row.
ModelFiles open_model_files(const std::string& path);

}  // namespace draftproof
