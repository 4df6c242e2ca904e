#include "engine/model/text_model.hpp"

#include <filesystem>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/strict_number.hpp"
#include "engine/model/corpus.hpp"
#include "engine/model/model_files.hpp"
#include "engine/model/ngram_language_model.hpp"
#include "engine/transformer/transformer_model.hpp"

namespace draftproof {
namespace {

// One token a byte.
class ByteEncoder final : public TextEncoder {
 public:
  void encode(std::string_view text, bool, std::vector<Token>& ids) const override {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
};

std::shared_ptr<const Tokenizer> byte_tokenizer() {
  Tokenizer::Parts parts;
  parts.name = "bytes";
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(static_cast<unsigned char>(byte)));
    parts.vocabulary.push_back({text, text, false, false});
  }
  parts.encoder = std::make_unique<ByteEncoder>();
  return std::make_shared<const Tokenizer>(std::move(parts));
}

// "6" or "6:FILE".
TextModel open_ngram(const std::string& name, std::string_view argument, const std::string& where) {
  const std::size_t colon = argument.find(':');
  const auto order = read_integer(argument.substr(0, colon), 1, NgramModel::kOrderMax);
  if (!order || (colon != std::string_view::npos && colon + 1 == argument.size()))
    throw usage_error(where, "is '" + name + "'; expected ngram:ORDER or ngram:ORDER:FILE, with an order from 1 to " +
                                 std::to_string(NgramModel::kOrderMax));
  std::vector<std::string> files;
  if (colon != std::string_view::npos) files.emplace_back(argument.substr(colon + 1));
  TextModel text;
  text.corpus = load_corpus(files).texts;
  auto counts = std::make_shared<const NgramModel>(NgramModel::train(text.corpus, static_cast<int>(*order)));
  text.name = name;
  text.arithmetic = "counts of bytes";
  text.model = std::make_unique<NgramLanguageModel>(*counts);
  text.ngram = std::move(counts);
  text.tokenizer = byte_tokenizer();
  text.chat_tokens = [name](const std::string&, const std::string& at) -> std::vector<Token> {
    throw input_error(at, "asks for a chat, and " + name + " has no chat template; expected a prompt to continue");
  };
  return text;
}

// "Q4_1" of the matrices, by the most bytes.
std::string main_kind(const ModelWeights& weights) {
  std::map<TensorKind, std::size_t> bytes;
  for (const LayerWeights& layer : weights.layers)
    for (const WeightTensor* tensor : {&layer.query, &layer.output, &layer.gate, &layer.up, &layer.down})
      bytes[tensor->kind] += tensor->bytes.size();
  auto most = bytes.begin();
  for (auto entry = bytes.begin(); entry != bytes.end(); ++entry)
    if (entry->second > most->second) most = entry;
  return std::string(info_of(most->first).name);
}

TransformerWeights pack_weights_of(const ModelFiles& files, const std::string& path, int threads) {
  try {
    return pack_weights(files.weights, threads);
  } catch (const Error& error) {
    throw Error(error.kind(), path, error.what());
  }
}

}  // namespace

TextModel open_text_model(const std::string& name, const std::string& path, const TextModelOptions& options,
                          const std::string& where) {
  if (name.starts_with("ngram:")) return open_ngram(name, std::string_view(name).substr(6), where);
  if (std::error_code ignored; !std::filesystem::exists(path, ignored))
    throw input_error(
        where, "there is no model " + path + "; expected smollm2, a GGUF file, a Hugging Face folder or ngram:ORDER");
  const auto files = std::make_shared<const ModelFiles>(open_model_files(path));
  TextModel text;
  text.name = name;
  text.tokenizer = files->tokenizer;
  text.arithmetic =
      (options.float_activations ? "f32 activations, " : "int8 activations, ") + main_kind(files->weights) + " weights";
  const Arithmetic arithmetic = options.float_activations ? Arithmetic::f32 : Arithmetic::int8;
  const auto packed = std::make_shared<const TransformerWeights>(pack_weights_of(*files, path, options.threads));
  auto model = std::make_unique<TransformerModel>(packed, arithmetic, options.threads, text.tokenizer->start_token());
  text.transformer = model.get();
  text.model = std::move(model);
  std::optional<ChatTemplate> chat;
  if (files->chat_template) chat = files->chat(options.chat_date);
  text.chat_tokens = [tokenizer = files->tokenizer, chat, path](const std::string& user, const std::string& at) {
    if (!chat)
      throw input_error(at, "asks for a chat, and " + path + " has no chat template; expected a prompt to continue");
    const ChatMessage message{"user", user};
    return chat->encode(*tokenizer, std::span(&message, 1));
  };
  return text;
}

bool have_same_vocabulary(const TextModel& a, const TextModel& b) {
  if (a.model->vocab_size() != b.model->vocab_size()) return false;
  const std::int64_t shared = std::min(a.tokenizer->vocab_size(), b.tokenizer->vocab_size());
  for (Token token = 0; token < shared; ++token)
    if (a.tokenizer->bytes_of(token) != b.tokenizer->bytes_of(token)) return false;
  return true;
}

}  // namespace draftproof
