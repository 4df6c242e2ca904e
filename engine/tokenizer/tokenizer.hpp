// Text to token ids and back, with the vocabulary of a model file.
//
// Two families: byte-level BPE (GPT-2, Llama 3, Qwen2, SmolLM2: text is cut into pieces, whose bytes merge by rank) and
// SentencePiece-style BPE (Llama 2, Mistral: characters merge by score or rank, spaces are U+2581, what is not in the
// vocabulary becomes byte tokens). Text need not be UTF-8. A byte that the vocabulary has no token for is left out, as
// by the reference implementations, unless the file names a token for the unknown.
// Text is composed to NFC where a tokenizer.json asks for it, as those of Qwen do; GGUF files do not say so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/token.hpp"
#include "engine/tokenizer/detokeniser.hpp"

namespace draftproof {

class GgufFile;
class JsonFields;

// How the text between special tokens becomes ids.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Appends. A text that is not the first one stands behind a special token.
  virtual void encode(std::string_view text, bool is_first, std::vector<Token>& ids) const = 0;
};

struct VocabularyEntry {
  std::string text;         // as the file has it
  std::string bytes;        // what it adds to a text; nothing for control tokens
  bool is_special = false;  // taken from text only where the caller asks for it
  bool is_added = false;    // found in text before it is cut: special tokens, and words that the user defined
};

struct EncodeOptions {
  bool parse_special =
      false;                // "<|im_end|>" in the text is the token, not its characters: for templates, not for users
  bool add_special = true;  // what the file puts in front of and behind a text (a BOS token)
  std::string_view left_out = {};  // taken out of the text after special tokens were looked for, which it breaks apart
};

class Tokenizer final : public Detokeniser {
 public:
  struct Parts {
    std::string name;  // "byte-level BPE (smollm)"
    std::vector<VocabularyEntry> vocabulary;
    std::unique_ptr<const TextEncoder> encoder;
    std::vector<Token> prefix;        // in front of a text
    std::vector<Token> suffix;        // behind it
    std::vector<Token> end_tokens;    // that end a request
    bool strips_first_space = false;  // of a decoded text: the space that the encoder put there
  };
  explicit Tokenizer(Parts parts);

  const std::string& name() const { return parts_.name; }
  std::int64_t vocab_size() const { return static_cast<std::int64_t>(parts_.vocabulary.size()); }
  const std::vector<Token>& end_tokens() const { return parts_.end_tokens; }
  // First token of encode(); none where the model has no such token.
  std::optional<Token> start_token() const;
  const VocabularyEntry& entry(Token token) const { return parts_.vocabulary[static_cast<std::size_t>(token)]; }
  // The special or user-defined token that is written like this.
  std::optional<Token> added_token(std::string_view text) const;

  // The leftmost added token in the text from `from` on, and there the longest.
  struct Found {
    std::size_t begin;
    Token token;
  };
  std::optional<Found> next_added(std::string_view text, std::size_t from, bool parse_special) const;

  std::vector<Token> encode(std::string_view text, EncodeOptions options = {}) const;

  std::string_view bytes_of(Token token) const override { return entry(token).bytes; }
  // The bytes of all tokens, which are in [0, V).
  std::string decode(std::span<const Token> tokens) const;

 private:
  Parts parts_;
  std::unordered_map<std::string_view, Token> added_;
  std::vector<std::vector<Token>> added_by_first_byte_;  // [256], longest first
};

// Input errors naming the file and what is wrong: a model or pre-tokenizer of another kind, lists whose lengths differ,
// ids outside the vocabulary, a merge whose parts or result are no tokens.
std::shared_ptr<const Tokenizer> tokenizer_of_gguf(const GgufFile& file);
// Parses the text of a tokenizer.json; its end_tokens stand elsewhere.
Tokenizer::Parts parse_tokenizer_json(const JsonFields& root);
// `folder` holds tokenizer.json and, for the tokens that end a request, generation_config.json or config.json.
std::shared_ptr<const Tokenizer> tokenizer_of_folder(const std::string& folder);

}  // namespace draftproof
