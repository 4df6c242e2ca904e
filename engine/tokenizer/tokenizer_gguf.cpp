// The tokenizer that a GGUF file carries, under keys "tokenizer.ggml.*".
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/tokenizer/byte_level.hpp"
#include "engine/tokenizer/sentence_piece.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "engine/weights/gguf.hpp"

namespace draftproof {
namespace {

// The format's numbers for what a token is.
constexpr std::int64_t kUnknown = 2;
constexpr std::int64_t kControl = 3;
constexpr std::int64_t kUserDefined = 4;
constexpr std::int64_t kByte = 6;

std::string key_of(const char* name) {
  return std::string("tokenizer.ggml.") + name;
}

struct Source {
  const GgufFile& file;
  std::vector<std::string_view> texts;
  std::vector<std::int64_t> types;  // [V]; 1 (normal) where the file has none

  const GgufMetadata& metadata() const { return file.metadata(); }
  std::optional<Token> id(const char* name) const {
    const auto value = metadata().integer(key_of(name));
    if (!value || *value == -1) return std::nullopt;
    if (*value < 0 || *value >= std::ssize(texts))
      throw input_error(file.path(), "metadata " + in_quotes(key_of(name)) + " is " + std::to_string(*value) +
                                         "; expected an id below " + std::to_string(texts.size()));
    return static_cast<Token>(*value);
  }
  bool flag(const char* name, bool otherwise) const { return metadata().boolean(key_of(name)).value_or(otherwise); }
};

void check_length(const Source& source, const char* name, std::size_t length) {
  if (length != source.texts.size())
    throw input_error(source.file.path(), "metadata " + in_quotes(key_of(name)) + " has " + std::to_string(length) +
                                              " elements; expected one for each of the " +
                                              std::to_string(source.texts.size()) + " tokens");
}

Source source_of(const GgufFile& file) {
  auto texts = file.metadata().strings(key_of("tokens"));
  if (!texts || texts->empty())
    throw input_error(file.path(), "metadata 'tokenizer.ggml.tokens' is missing or empty; expected the vocabulary");
  Source source{file, *std::move(texts), {}};
  source.types =
      file.metadata().integers(key_of("token_type")).value_or(std::vector<std::int64_t>(source.texts.size(), 1));
  check_length(source, "token_type", source.types.size());
  return source;
}

std::vector<VocabularyEntry> vocabulary_of(const Source& source, bool is_byte_level) {
  std::vector<VocabularyEntry> vocabulary;
  for (std::size_t i = 0; i < source.texts.size(); ++i) {
    VocabularyEntry entry;
    entry.text = std::string(source.texts[i]);
    const std::int64_t type = source.types[i];
    entry.is_special = type == kControl || type == kUnknown;
    entry.is_added = entry.is_special || type == kUserDefined;
    if (type == kUserDefined) {
      entry.bytes = is_byte_level ? entry.text : with_spaces(entry.text);
    } else if (is_byte_level && !entry.is_special) {
      entry.bytes = bytes_of_byte_level(entry.text).value_or(entry.text);
    } else if (!entry.is_special) {
      const auto byte = type == kByte ? byte_of_byte_token(entry.text) : std::nullopt;
      entry.bytes = byte ? std::string(1, static_cast<char>(*byte)) : with_spaces(entry.text);
    }
    vocabulary.push_back(std::move(entry));
  }
  return vocabulary;
}

std::unique_ptr<const TextEncoder> byte_level_encoder(const Source& source, const std::string& pre_name,
                                                      const std::vector<VocabularyEntry>& vocabulary) {
  const std::string where = source.file.path() + ": metadata 'tokenizer.ggml.pre'";
  const std::vector<std::string> expressions = PreTokenizer::expressions_of(pre_name);
  if (expressions.empty())
    throw input_error(where, "is " + in_quotes(pre_name) + "; expected one of " + PreTokenizer::kKnownNames);
  ByteLevelEncoder::Parts parts{PreTokenizer(where, expressions), {}, {}, {}, pre_name.starts_with("llama")};
  for (std::size_t i = 0; i < vocabulary.size(); ++i)
    if (!vocabulary[i].is_added) parts.ids.emplace(vocabulary[i].bytes, static_cast<Token>(i));

  const auto merges = source.metadata().strings(key_of("merges"));
  if (!merges) throw input_error(source.file.path(), "metadata 'tokenizer.ggml.merges' is missing");
  for (std::size_t i = 0; i < merges->size(); ++i) {
    const std::string_view merge = (*merges)[i];
    const std::size_t space = merge.find(' ', 1);
    const auto left = bytes_of_byte_level(merge.substr(0, space));
    const auto right = space == merge.npos ? std::nullopt : bytes_of_byte_level(merge.substr(space + 1));
    const auto id = [&](const std::string& bytes) { return parts.ids.find(bytes); };
    const bool is_merge = left && right && id(*left) != parts.ids.end() && id(*right) != parts.ids.end() &&
                          id(*left + *right) != parts.ids.end();
    if (!is_merge)
      throw input_error(source.file.path(), "merge " + std::to_string(i) + " of 'tokenizer.ggml.merges' is " +
                                                in_quotes(merge) + "; expected two tokens whose join is a token");
    parts.merges.add(id(*left)->second, id(*right)->second, id(*left + *right)->second);
  }
  return std::make_unique<ByteLevelEncoder>(std::move(parts));
}

std::unique_ptr<const TextEncoder> sentence_piece_encoder(const Source& source, bool has_space_prefix) {
  SentencePieceEncoder::Parts parts;
  parts.prefix = has_space_prefix ? SpacePrefix::every_text : SpacePrefix::never;
  parts.byte_ids.fill(kPaddingToken);
  parts.unknown = source.id("unknown_token_id");
  auto scores = source.metadata().floats(key_of("scores"));
  if (!scores) throw input_error(source.file.path(), "metadata 'tokenizer.ggml.scores' is missing");
  check_length(source, "scores", scores->size());
  parts.scores = *std::move(scores);
  for (std::size_t i = 0; i < source.texts.size(); ++i) {
    const auto id = static_cast<Token>(i);
    if (std::isnan(parts.scores[i]))
      throw input_error(source.file.path(), "the score of token " + std::to_string(i) + " is NaN; expected a number");
    if (const auto byte = byte_of_byte_token(source.texts[i]); byte && source.types[i] == kByte) {
      parts.byte_ids[*byte] = id;
    } else if (source.types[i] != kControl && source.types[i] != kUnknown) {
      parts.ids.emplace(source.texts[i], id);
    }
  }
  return std::make_unique<SentencePieceEncoder>(std::move(parts));
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_of_gguf(const GgufFile& file) {
  const Source source = source_of(file);
  const std::string_view model = file.metadata().string(key_of("model")).value_or("missing");
  const bool is_byte_level = model == "gpt2";
  if (!is_byte_level && model != "llama")
    throw input_error(file.path(), "metadata 'tokenizer.ggml.model' is " + in_quotes(model) +
                                       "; expected gpt2 (byte-level BPE) or llama (SentencePiece-style BPE)");
  Tokenizer::Parts parts;
  parts.vocabulary = vocabulary_of(source, is_byte_level);
  const std::string pre_name(file.metadata().string(key_of("pre")).value_or("gpt-2"));
  if (is_byte_level) {
    parts.name = "byte-level BPE (" + printable_line(pre_name) + ")";
    parts.encoder = byte_level_encoder(source, pre_name, parts.vocabulary);
  } else {
    parts.name = "SentencePiece-style BPE";
    parts.strips_first_space = source.flag("add_space_prefix", true);
    parts.encoder = sentence_piece_encoder(source, parts.strips_first_space);
  }
  const std::optional<Token> start = source.id("bos_token_id");
  const std::optional<Token> end = source.id("eos_token_id");
  // Where the file does not say, its family does.
  if (start && source.flag("add_bos_token", !is_byte_level || pre_name.starts_with("llama"))) parts.prefix = {*start};
  if (end && source.flag("add_eos_token", false)) parts.suffix = {*end};
  for (const std::optional<Token> token : {end, source.id("eot_token_id")})
    if (token && std::find(parts.end_tokens.begin(), parts.end_tokens.end(), *token) == parts.end_tokens.end())
      parts.end_tokens.push_back(*token);
  return std::make_shared<const Tokenizer>(std::move(parts));
}

}  // namespace draftproof
