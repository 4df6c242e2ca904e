// All that a program needs of a model: its weights, its tokenizer and its chat template, from one GGUF file or one
// Hugging Face folder.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/chat/chat_template.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "engine/weights/model_weights.hpp"

namespace draftproof {

struct ModelFiles {
  std::string path;
  ModelWeights weights;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<std::string> chat_template;  // as the file has it
  ChatContext chat_context;                  // the texts of the special tokens that templates name

  // Input error: there is none.
  ChatTemplate chat(std::optional<std::time_t> now = {}) const;
};

// The special tokens' texts and the chat template in a tokenizer_config.json, where it is a text or a list of named
// ones, of which "default" is taken. Input errors naming file and field: a template or a special token of another type.
struct TokenizerConfig {
  std::optional<std::string> chat_template;
  ChatContext context;
};
TokenizerConfig parse_tokenizer_config(const JsonFields& config);

// Input errors naming the file: those of its readers, and a token whose id is not below the rows of the embedding. A
// folder may have more rows than tokens, which are padding; a GGUF file has one token for each row.
ModelFiles open_model_files(const std::string& path);

}  // namespace draftproof
