// All that a program needs of a model: its weights, its tokenizer and its chat template, from one GGUF file or one
// Hugging Face folder.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "reference/model/tokenizer/chat_template.hpp"
#include "reference/model/tokenizer/tokenizer.hpp"
#include "reference/model/weights/model_weights.hpp"

namespace draftproof {

struct ModelFiles {
  std::string path;
  ModelWeights weights;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<std::string> chat_template;  // as the file has it; chat() recognises it

  // Input error: there is none, or it is of an unknown form.
  ChatTemplate chat() const;
};

// Input errors naming the file: those of its readers, and a vocabulary that disagrees with the tokenizer. (A folder may
// have fewer tokens than rows, which are padded there.)
ModelFiles open_model_files(const std::string& path);

}  // namespace draftproof
