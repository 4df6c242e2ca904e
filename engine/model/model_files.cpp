#include "engine/model/model_files.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "engine/weights/gguf.hpp"
#include "engine/weights/json_fields.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

// The template from chat_template.jinja, or from tokenizer_config.json.
void read_chat_of_folder(const std::string& folder, ModelFiles& model) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 20;
  std::error_code ignored;  // what cannot be looked at is not there
  const std::string config = (fs::path(folder) / "tokenizer_config.json").string();
  if (fs::exists(config, ignored)) {
    TokenizerConfig read = parse_tokenizer_config(JsonFields::read(config));
    model.chat_template = std::move(read.chat_template);
    model.chat_context = std::move(read.context);
  }
  const std::string own = (fs::path(folder) / "chat_template.jinja").string();
  if (fs::exists(own, ignored)) model.chat_template = InputFile(own, kBytesMax).text();
}

void read_chat_of_gguf(const GgufFile& file, ModelFiles& model) {
  const auto text_of = [&](const char* key) -> std::optional<std::string> {
    const auto id = file.metadata().integer(key);
    if (!id || *id < 0 || *id >= model.tokenizer->vocab_size()) return std::nullopt;
    return model.tokenizer->entry(static_cast<Token>(*id)).text;
  };
  if (const auto text = file.metadata().string("tokenizer.chat_template")) model.chat_template = std::string(*text);
  model.chat_context.start = text_of("tokenizer.ggml.bos_token_id");
  model.chat_context.end = text_of("tokenizer.ggml.eos_token_id");
}

void check_vocabulary_of_gguf(const ModelFiles& model) {
  const std::int64_t tokens = model.tokenizer->vocab_size();
  const std::int64_t rows = model.weights.description.vocab_size;
  if (tokens != rows)
    throw input_error(model.path, "metadata 'tokenizer.ggml.tokens' has " + std::to_string(tokens) +
                                      " elements; expected one for each of the " + std::to_string(rows) +
                                      " rows of the embedding");
}

// Rows beyond the vocabulary are padding.
void check_vocabulary_of_folder(const ModelFiles& model) {
  const std::int64_t rows = model.weights.description.vocab_size;
  if (model.tokenizer->vocab_size() <= rows) return;
  const auto last = static_cast<Token>(model.tokenizer->vocab_size() - 1);
  throw input_error((fs::path(model.path) / "tokenizer.json").string(),
                    "the token " + in_quotes(model.tokenizer->entry(last).text) + " has the id " +
                        std::to_string(last) + ", but the embedding has " + std::to_string(rows) +
                        " rows; expected ids below that");
}

// A special token is a text, or an object with one.
std::optional<std::string> special_token(const JsonFields& config, const char* key) {
  const nlohmann::json* const token = config.find(key);
  if (token == nullptr) return std::nullopt;
  if (token->is_string()) return config.string(key);
  if (!token->is_object()) config.fail(key, "a text or an object with 'content'");
  return config.object(key)->required_string("content");
}

}  // namespace

TokenizerConfig parse_tokenizer_config(const JsonFields& config) {
  TokenizerConfig read;
  read.context.start = special_token(config, "bos_token");
  read.context.end = special_token(config, "eos_token");
  for (const char* const key : {"unk_token", "pad_token"}) special_token(config, key);
  const nlohmann::json* const text = config.find("chat_template");
  if (text == nullptr) return read;
  if (text->is_string()) {
    read.chat_template = config.string("chat_template");
    return read;
  }
  if (!text->is_array()) config.fail("chat_template", "a text or an array of named ones");
  for (const JsonFields& named : config.objects("chat_template"))
    if (named.required_string("name") == "default") {
      read.chat_template = named.required_string("template");
      break;
    }
  return read;
}

ChatTemplate ModelFiles::chat(std::optional<std::time_t> now) const {
  if (!chat_template) throw input_error(path, "has no chat template; expected one, or a prompt without it");
  ChatContext context = chat_context;
  context.now = now;
  return {path, *chat_template, std::move(context)};
}

ModelFiles open_model_files(const std::string& path) {
  ModelFiles model;
  model.path = path;
  std::error_code ignored;  // what is no folder is opened as a file, which says what is wrong
  const bool is_folder = fs::is_directory(path, ignored);
  if (is_folder) {
    model.weights = weights_of_folder(path);
    model.tokenizer = tokenizer_of_folder(path);
    read_chat_of_folder(path, model);
    check_vocabulary_of_folder(model);
  } else {
    const auto file = std::make_shared<const GgufFile>(GgufFile::open(path));
    model.weights = weights_of_gguf(file);
    model.tokenizer = tokenizer_of_gguf(*file);
    read_chat_of_gguf(*file, model);
    check_vocabulary_of_gguf(model);
  }
  return model;
}

}  // namespace draftproof
