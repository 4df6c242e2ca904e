#include "reference/model/text_model.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

#include "reference/error.hpp"
#include "reference/model/corpus.hpp"
#include "reference/model/ngram_language_model.hpp"
#include "reference/model/transformer/transformer_model.hpp"
#include "reference/model/weights/gguf.hpp"
#include "reference/model/weights/model_weights.hpp"
#include "reference/strict_number.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShippedName = "smollm2";
constexpr const char* kShippedFile = "SmolLM2-135M-Instruct.gguf";

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

std::string path_of(const std::string& name, const std::string& where) {
  if (name != kShippedName) return name;
  const char* const folder = std::getenv("DRAFTPROOF_MODELS");
  const fs::path path = fs::path(folder != nullptr ? folder : ".") / kShippedFile;
  if (!fs::exists(path))
    throw input_error(where, "is smollm2, and " + path.string() +
                                 " is not there; ./draftproof fetch smollm2 downloads it, or name a GGUF file or a "
                                 "Hugging Face folder");
  return path.string();
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

}  // namespace

TextModel open_text_model(const std::string& name, const TextModelOptions& options, const std::string& where) {
  if (name.starts_with("ngram:")) return open_ngram(name, std::string_view(name).substr(6), where);
  const std::string path = path_of(name, where);
  if (!fs::exists(path))
    throw input_error(path,
                      "there is no such model; expected smollm2, a GGUF file, a Hugging Face "
                      "folder or ngram:ORDER");
  ModelWeights weights;
  TextModel text;
  if (fs::is_directory(path)) {
    weights = weights_of_folder(path);
    text.tokenizer = tokenizer_of_folder(path);
  } else {
    const auto file = std::make_shared<GgufFile>(GgufFile::open(path));
    weights = weights_of_gguf(file);
    text.tokenizer = tokenizer_of_gguf(*file);
  }
  if (text.tokenizer->vocab_size() > weights.description.vocab_size)
    throw input_error(path, "the tokenizer has " + std::to_string(text.tokenizer->vocab_size()) +
                                " tokens and the model rows for " + std::to_string(weights.description.vocab_size) +
                                "; expected no more tokens than rows");
  text.name = name;
  text.arithmetic =
      (options.float_activations ? "f32 activations, " : "int8 activations, ") + main_kind(weights) + " weights";
  const Arithmetic arithmetic = options.float_activations ? Arithmetic::f32 : Arithmetic::int8;
  auto packed = std::make_shared<const TransformerWeights>(pack_weights(weights, options.threads));
  auto model =
      std::make_unique<TransformerModel>(std::move(packed), arithmetic, options.threads, text.tokenizer->start_token());
  text.transformer = model.get();
  text.model = std::move(model);
  return text;
}

std::string vocabulary_difference(const TextModel& a, const TextModel& b) {
  if (a.model->vocab_size() != b.model->vocab_size())
    return "it has " + std::to_string(b.model->vocab_size()) + " token ids, and the target has " +
           std::to_string(a.model->vocab_size());
  const std::int64_t shared = std::min(a.tokenizer->vocab_size(), b.tokenizer->vocab_size());
  for (std::int64_t id = 0; id < shared; ++id) {
    const auto token = static_cast<Token>(id);
    if (a.tokenizer->bytes_of(token) != b.tokenizer->bytes_of(token))
      return "token " + std::to_string(id) + " is \"" + std::string(b.tokenizer->bytes_of(token)) +
             "\", and the target's is \"" + std::string(a.tokenizer->bytes_of(token)) + "\"";
  }
  return "";
}

}  // namespace draftproof
