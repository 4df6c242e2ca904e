// A language model with the tokenizer that goes with it: what turns text into text.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/language_model.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

class NgramModel;
class TransformerModel;

// Most threads that may be asked for.
#ifdef __EMSCRIPTEN__
inline constexpr int kModelThreadsMax = 1;  // a page has no more
#else
inline constexpr int kModelThreadsMax = 1024;
#endif

struct TextModelOptions {
  bool float_activations = false;  // of transformers: f32 activations instead of int8
  int threads = 1;
  std::optional<std::time_t> chat_date = {};  // of chat templates that write one; none: today
};

struct TextModel {
  std::string name;        // what was asked for: "smollm2", a path, "ngram:6"
  std::string arithmetic;  // which target it is: "int8 activations, Q4_1 weights", "counts"
  std::unique_ptr<LanguageModel> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  // A user's turn as tokens, up to where the answer begins. Errors: (input) at `where`, the model has no chat template;
  // those of ChatTemplate::encode.
  std::function<std::vector<Token>(const std::string& user, const std::string& where)> chat_tokens;

  // The same object as `model`, by its kind; null if it is of the other.
  TransformerModel* transformer = nullptr;
  std::shared_ptr<const NgramModel> ngram;
  std::vector<std::vector<std::uint8_t>> corpus;  // of an n-gram model
};

// `name`: ngram:ORDER[:FILE], or what reports call the GGUF file or Hugging Face folder at `path`. Errors (input,
// usage) name the file or the option `where`, and what is wrong.
TextModel open_text_model(const std::string& name, const std::string& path, const TextModelOptions& options,
                          const std::string& where);

// Do two models mean the same by every token id?
bool have_same_vocabulary(const TextModel& a, const TextModel& b);

}  // namespace draftproof
