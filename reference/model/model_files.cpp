#include "reference/model/model_files.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "reference/error.hpp"
#include "reference/files/input_file.hpp"
#include "reference/model/weights/gguf.hpp"
#include "reference/model/weights/json_fields.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

// From chat_template.jinja, or from tokenizer_config.json, where it is a text or a list of named ones.
std::optional<std::string> template_of_folder(const std::string& folder) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 20;
  const std::string own = (fs::path(folder) / "chat_template.jinja").string();
  std::error_code ignored;  // what cannot be looked at is not there
  if (fs::exists(own, ignored)) return std::string(InputFile(own, kBytesMax).text());
  const std::string path = (fs::path(folder) / "tokenizer_config.json").string();
  if (!fs::exists(path, ignored)) return std::nullopt;
  const JsonFields config = JsonFields::read(path);
  const nlohmann::json* const text = config.find("chat_template");
  if (text == nullptr || !text->is_array()) return config.string("chat_template");
  for (const JsonFields& named : config.objects("chat_template"))
    if (named.required_string("name") == "default") return named.required_string("template");
  return std::nullopt;
}

void check_vocabulary(const ModelFiles& model, bool may_be_padded) {
  const std::int64_t tokens = model.tokenizer->vocab_size();
  const std::int64_t rows = model.weights.description.vocab_size;
  if (tokens > rows || (tokens < rows && !may_be_padded))
    throw input_error(model.path, "its tokenizer has " + std::to_string(tokens) + " tokens and its embedding " +
                                      std::to_string(rows) + " rows; expected one vocabulary");
}

}  // namespace

ChatTemplate ModelFiles::chat() const {
  if (!chat_template) throw input_error(path, "has no chat template; expected one, or a prompt without it");
  return ChatTemplate::recognise(path, *chat_template);
}

ModelFiles open_model_files(const std::string& path) {
  ModelFiles model;
  model.path = path;
  std::error_code ignored;  // what is no folder is opened as a file, which says what is wrong
  const bool is_folder = fs::is_directory(path, ignored);
  if (is_folder) {
    model.weights = weights_of_folder(path);
    model.tokenizer = tokenizer_of_folder(path);
    model.chat_template = template_of_folder(path);
  } else {
    const auto file = std::make_shared<const GgufFile>(GgufFile::open(path));
    model.weights = weights_of_gguf(file);
    model.tokenizer = tokenizer_of_gguf(*file);
    const auto text = file->metadata().string("tokenizer.chat_template");
    if (text) model.chat_template = std::string(*text);
  }
  check_vocabulary(model, is_folder);
  return model;
}

}  // namespace draftproof
