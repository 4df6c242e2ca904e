// The tokenizer of a Hugging Face folder: tokenizer.json, as the library `tokenizers` writes it.
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/tokenizer/byte_level.hpp"
#include "engine/tokenizer/sentence_piece.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "engine/weights/json_fields.hpp"

namespace draftproof {
namespace {

// Unicode normalisation, which some tokenizers do before anything else.

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

const utf8proc_uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

// Bytes of the UTF-8 that a text begins with.
std::size_t valid_len(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    utf8proc_int32_t character = 0;
    const std::string_view rest = text.substr(length);
    const auto taken = utf8proc_iterate(bytes_of(rest), static_cast<utf8proc_ssize_t>(rest.size()), &character);
    if (taken <= 0) break;
    length += static_cast<std::size_t>(taken);
  }
  return length;
}

// The composed form, NFC. Text need not be UTF-8: what is between bytes that are none is normalised, and they stay.
std::string to_nfc(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return std::string(text);
  std::string normal;
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, valid_len(text));
    if (!valid.empty()) {
      utf8proc_uint8_t* mapped = nullptr;
      const auto length = utf8proc_map(bytes_of(valid), static_cast<utf8proc_ssize_t>(valid.size()), &mapped,
                                       static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      const std::unique_ptr<utf8proc_uint8_t, Free> owner(mapped);
      if (length < 0) throw std::bad_alloc();  // of valid text the only failure
      normal.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
    }
    text.remove_prefix(valid.size());
    if (text.empty()) break;
    normal += text.front();
    text.remove_prefix(1);
  }
  return normal;
}

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void refuse(const JsonFields& part, const std::string& what, const std::string& expected) {
  throw input_error(part.where(), what + "; expected " + expected);
}

// Settings of the normaliser and pre-tokenizer.
struct Cutting {
  bool is_byte_level = false;
  bool replaces_spaces = false;  // by U+2581
  bool composes = false;         // to NFC, first of all
  SpacePrefix prefix = SpacePrefix::never;
  std::vector<std::string> expressions;
};

// A text as an expression that matches it alone.
std::string literal(const std::string& text) {
  std::string expression;
  for (const char c : text) {
    const bool is_word = static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!is_word) expression += '\\';
    expression += c;
  }
  return expression;
}

void add_split(const JsonFields& step, Cutting& cutting) {
  const std::optional<JsonFields> pattern = step.object("pattern");
  if (!pattern) step.fail("pattern", "an object with 'Regex' or 'String'");
  const std::optional<std::string> text = pattern->string("String");
  const bool inverts = step.boolean("invert").value_or(false);
  const std::string behavior = step.required_string("behavior");
  if (behavior != (inverts ? "Removed" : "Isolated"))
    refuse(step, "'behavior' is " + in_quotes(behavior) + (inverts ? " of what does not match" : ""), "Isolated");
  cutting.expressions.push_back(text ? literal(*text) : pattern->required_string("Regex"));
}

void add_pre_tokenizer(const JsonFields& step, Cutting& cutting) {
  const std::string type = step.required_string("type");
  if (type == "Sequence") {
    for (const JsonFields& inner : step.objects("pretokenizers")) add_pre_tokenizer(inner, cutting);
  } else if (type == "ByteLevel") {
    if (step.boolean("add_prefix_space").value_or(true)) refuse(step, "'add_prefix_space' is true", "false");
    if (step.boolean("use_regex").value_or(true)) cutting.expressions.emplace_back(PreTokenizer::kGpt2);
    cutting.is_byte_level = true;
  } else if (type == "Digits") {
    const bool one_by_one = step.boolean("individual_digits").value_or(false);
    cutting.expressions.push_back(std::string(PreTokenizer::kDigit) + (one_by_one ? "" : "+"));
  } else if (type == "Split") {
    add_split(step, cutting);
  } else if (type == "Metaspace") {
    if (step.boolean("split").value_or(false)) refuse(step, "'split' is true", "false");
    const std::string scheme =
        step.string("prepend_scheme").value_or(step.boolean("add_prefix_space").value_or(true) ? "always" : "never");
    if (scheme != "always" && scheme != "first" && scheme != "never")
      refuse(step, "'prepend_scheme' is " + in_quotes(scheme), "always, first or never");
    cutting.replaces_spaces = true;
    cutting.prefix = scheme == "always"  ? SpacePrefix::every_text
                     : scheme == "first" ? SpacePrefix::first_text
                                         : SpacePrefix::never;
  } else {
    refuse(step, "'type' is " + in_quotes(type), "one of Sequence, ByteLevel, Digits, Split, Metaspace");
  }
}

void add_normalizer(const JsonFields& step, Cutting& cutting) {
  const std::string type = step.required_string("type");
  if (type == "Sequence") {
    for (const JsonFields& inner : step.objects("normalizers")) add_normalizer(inner, cutting);
  } else if (type == "Prepend") {
    if (step.required_string("prepend") != "\u2581") refuse(step, "'prepend' is another text", "U+2581");
    cutting.prefix = SpacePrefix::every_text;
  } else if (type == "Replace") {
    const std::optional<JsonFields> pattern = step.object("pattern");
    const bool is_space = pattern && pattern->string("String") == " " && step.required_string("content") == "\u2581";
    if (!is_space) refuse(step, "replaces something else", "spaces by U+2581");
    cutting.replaces_spaces = true;
  } else if (type == "NFC") {
    cutting.composes = true;
  } else {
    refuse(step, "'type' is " + in_quotes(type), "one of Sequence, Prepend, Replace, NFC");
  }
}

Token read_id(const JsonFields& where, const json& value, const std::string& of, std::int64_t limit) {
  if (!value.is_number_integer() || value < 0 || value >= limit)
    throw input_error(where.where(), "the id of " + of + " is " +
                                         printable_line(value.dump(-1, ' ', true)).substr(0, 40) +
                                         "; expected an integer from 0 to " + std::to_string(limit - 1));
  return value.get<Token>();
}

// An added token that the vocabulary has too stands there under the same id and text.
void check_added(const JsonFields& added, const std::string& content, Token id, const VocabularyEntry& entry,
                 const std::unordered_map<std::string, Token>& added_ids, const json& vocab) {
  const std::string token = in_quotes(content) + " with the id " + std::to_string(id);
  if (content.empty()) refuse(added, "'content' is empty", "a text");
  if (entry.is_added)
    refuse(added, "it is " + token + ", which is that of " + in_quotes(entry.text) + " too", "an id of its own");
  if (const auto other = added_ids.find(content); other != added_ids.end())
    refuse(added, "it is " + token + ", and " + std::to_string(other->second) + " is that text too", "each text once");
  if (!entry.text.empty() && entry.text != content)
    refuse(added, "it is " + token + ", which is that of " + in_quotes(entry.text) + " in the vocabulary",
           "one text for each id");
  if (const auto same = vocab.find(content); same != vocab.end() && *same != id)
    refuse(added, "it is " + token + ", and the vocabulary has that text with the id " + same->dump(),
           "one id for each text");
}

// The model's tokens under their texts, then the added tokens.
std::vector<VocabularyEntry> read_vocabulary(const JsonFields& root, const JsonFields& model, bool is_byte_level) {
  const std::optional<JsonFields> vocab = model.object("vocab");
  if (!vocab) model.fail("vocab", "an object");
  std::vector<VocabularyEntry> vocabulary;
  std::vector<bool> taken;
  const std::vector<JsonFields> added_tokens = root.objects("added_tokens");
  // Ids may have holes, which become tokens without text, but not so many that a lie fills the memory.
  const std::int64_t limit = 2 * (std::ssize(vocab->json()) + std::ssize(added_tokens)) + 1024;
  const auto place = [&](Token id) -> VocabularyEntry& {
    const auto index = static_cast<std::size_t>(id);
    if (index >= vocabulary.size()) vocabulary.resize(index + 1);
    if (index >= taken.size()) taken.resize(index + 1);
    return vocabulary[index];
  };
  for (const auto& [text, value] : vocab->json().items()) {
    const Token id = read_id(*vocab, value, in_quotes(text), limit);
    VocabularyEntry& entry = place(id);
    if (taken[static_cast<std::size_t>(id)])
      throw input_error(vocab->where(), in_quotes(text) + " and " + in_quotes(entry.text) + " both have the id " +
                                            std::to_string(id) + "; each must be there once");
    taken[static_cast<std::size_t>(id)] = true;
    entry.text = text;
    const auto byte = is_byte_level ? std::nullopt : byte_of_byte_token(text);
    entry.bytes = byte            ? std::string(1, static_cast<char>(*byte))
                  : is_byte_level ? bytes_of_byte_level(text).value_or(text)
                                  : with_spaces(text);
  }
  std::unordered_map<std::string, Token> added_ids;
  for (const JsonFields& added : added_tokens) {
    const std::string content = added.required_string("content");
    const Token id = read_id(added, added.json().value("id", json()), in_quotes(content), limit);
    VocabularyEntry& entry = place(id);
    check_added(added, content, id, entry, added_ids, vocab->json());
    added_ids.emplace(content, id);
    entry.text = content;
    entry.is_added = true;
    entry.is_special = added.boolean("special").value_or(false);
    entry.bytes = entry.is_special ? "" : entry.text;
    for (const char* const flag : {"lstrip", "rstrip", "single_word"})
      if (added.boolean(flag).value_or(false)) refuse(added, in_quotes(flag) + " is true", "false");
  }
  if (vocabulary.empty()) throw input_error(vocab->where(), "is empty; expected a vocabulary");
  return vocabulary;
}

using Ids = std::unordered_map<std::string, Token>;

// A merge is "a b" or ["a", "b"].
void read_merges(const JsonFields& model, const Ids& ids, MergeTable& merges) {
  const json* const list = model.find("merges");
  if (list == nullptr || !list->is_array()) model.fail("merges", "an array");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const json& element = (*list)[i];
    std::string left;
    std::string right;
    if (element.is_string()) {
      const auto& text = element.get_ref<const std::string&>();
      const std::size_t space = text.find(' ', 1);
      left = text.substr(0, space);
      right = space == text.npos ? "" : text.substr(space + 1);
    } else if (element.is_array() && element.size() == 2 && element[0].is_string() && element[1].is_string()) {
      left = element[0].get<std::string>();
      right = element[1].get<std::string>();
    }
    const auto a = ids.find(left);
    const auto b = ids.find(right);
    const auto joined = ids.find(left + right);
    if (a == ids.end() || b == ids.end() || joined == ids.end())
      throw input_error(model.where(), "merge " + std::to_string(i) + " is " + in_quotes(left) + " and " +
                                           in_quotes(right) + "; expected two tokens whose join is a token");
    merges.add(a->second, b->second, joined->second);
  }
}

// A template names a token's list of ids as often as it likes, so that a small file could fill the memory.
constexpr std::size_t kTemplateTokensMax = 1024;

// Ids in front of and behind the text, of a post-processor that adds special tokens.
void read_template(const JsonFields& step, Tokenizer::Parts& parts) {
  const std::string type = step.required_string("type");
  if (type == "Sequence") {
    for (const JsonFields& inner : step.objects("processors")) read_template(inner, parts);
  } else if (type == "TemplateProcessing") {
    bool behind = false;
    const std::optional<JsonFields> special = step.object("special_tokens");
    for (const JsonFields& part : step.objects("single")) {
      if (part.object("Sequence")) behind = true;
      const std::optional<JsonFields> token = part.object("SpecialToken");
      if (!token) continue;
      const std::string name = token->required_string("id");
      const std::optional<JsonFields> entry = special ? special->object(name.c_str()) : std::nullopt;
      const json* const ids = entry ? entry->find("ids") : nullptr;
      if (ids == nullptr || !ids->is_array())
        throw input_error(step.where(), "says nothing of the ids of " + in_quotes(name) + "; expected an array");
      if (parts.prefix.size() + parts.suffix.size() + ids->size() > kTemplateTokensMax)
        throw input_error(step.where(), "puts more than " + std::to_string(kTemplateTokensMax) +
                                            " special tokens around a text; expected that many at most");
      for (const json& id : *ids) {
        const Token value = read_id(*entry, id, in_quotes(name), std::ssize(parts.vocabulary));
        (behind ? parts.suffix : parts.prefix).push_back(value);
      }
    }
  } else if (type != "ByteLevel") {
    refuse(step, "'type' is " + in_quotes(type), "one of Sequence, TemplateProcessing, ByteLevel");
  }
}

class ComposingEncoder final : public TextEncoder {
 public:
  explicit ComposingEncoder(std::unique_ptr<const TextEncoder> encoder) : encoder_(std::move(encoder)) {}
  void encode(std::string_view text, bool is_first, std::vector<Token>& ids) const override {
    encoder_->encode(to_nfc(text), is_first, ids);
  }

 private:
  std::unique_ptr<const TextEncoder> encoder_;
};

std::unique_ptr<const TextEncoder> encoder_of(const JsonFields& model, const Cutting& cutting, const Ids& ids,
                                              const std::vector<VocabularyEntry>& vocabulary,
                                              std::optional<Token> unknown) {
  if (cutting.is_byte_level) {
    // The merges are of texts; pieces are looked up by their bytes.
    ByteLevelEncoder::Parts parts{PreTokenizer(model.where(), cutting.expressions),
                                  {},
                                  {},
                                  unknown,
                                  model.boolean("ignore_merges").value_or(false)};
    read_merges(model, ids, parts.merges);
    for (const auto& [text, id] : ids)
      if (const auto bytes = bytes_of_byte_level(text); bytes && !vocabulary[static_cast<std::size_t>(id)].is_added)
        parts.ids.emplace(*bytes, id);
    return std::make_unique<ByteLevelEncoder>(std::move(parts));
  }
  if (!cutting.expressions.empty()) refuse(model, "cuts text before it replaces spaces", "one of both");
  SentencePieceEncoder::Parts parts;
  parts.ids = ids;
  parts.prefix = cutting.prefix;
  parts.unknown = unknown;
  parts.joins_unknown = model.boolean("fuse_unk").value_or(false);
  parts.byte_ids.fill(kPaddingToken);
  if (model.boolean("byte_fallback").value_or(false))
    for (const auto& [text, id] : ids)
      if (const auto byte = byte_of_byte_token(text)) parts.byte_ids[*byte] = id;
  read_merges(model, ids, parts.merges);
  return std::make_unique<SentencePieceEncoder>(std::move(parts));
}

// The ids that end a request, from the first file that names some.
std::vector<Token> end_tokens_of(const std::string& folder, std::int64_t vocab_size) {
  for (const char* const name : {"generation_config.json", "config.json"}) {
    const std::string path = (fs::path(folder) / name).string();
    if (std::error_code ignored; !fs::exists(path, ignored)) continue;
    const JsonFields config = JsonFields::read(path);
    const json* const ids = config.find("eos_token_id");
    if (ids == nullptr) continue;
    std::vector<Token> tokens;
    for (const json& id : ids->is_array() ? *ids : json::array({*ids}))
      tokens.push_back(read_id(config, id, "'eos_token_id'", vocab_size));
    return tokens;
  }
  return {};
}

}  // namespace

Tokenizer::Parts parse_tokenizer_json(const JsonFields& root) {
  const std::optional<JsonFields> model = root.object("model");
  if (!model) root.fail("model", "an object");
  const std::string type = model->string("type").value_or("BPE");
  if (type != "BPE") refuse(*model, "'type' is " + in_quotes(type), "BPE");
  for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model->string(name).value_or("").empty()) refuse(*model, in_quotes(name) + " is not empty", "an empty text");

  Cutting cutting;
  if (const auto normalizer = root.object("normalizer")) add_normalizer(*normalizer, cutting);
  if (const auto pre_tokenizer = root.object("pre_tokenizer")) add_pre_tokenizer(*pre_tokenizer, cutting);
  if (cutting.is_byte_level == cutting.replaces_spaces)
    throw input_error(root.where(), "expected a byte-level tokenizer or one that writes spaces as U+2581");

  Tokenizer::Parts parts;
  parts.name = cutting.is_byte_level ? "byte-level BPE" : "SentencePiece-style BPE";
  parts.strips_first_space = cutting.prefix != SpacePrefix::never;
  parts.vocabulary = read_vocabulary(root, *model, cutting.is_byte_level);
  Ids ids;
  for (const auto& [text, id] : model->object("vocab")->json().items()) ids.emplace(text, id.get<Token>());
  std::optional<Token> unknown;
  if (const auto text = model->string("unk_token")) {
    const auto found = ids.find(*text);
    const auto added =
        std::find_if(parts.vocabulary.begin(), parts.vocabulary.end(),
                     [&](const VocabularyEntry& entry) { return entry.is_added && entry.text == *text; });
    if (found == ids.end() && added == parts.vocabulary.end())
      refuse(*model, "'unk_token' is " + in_quotes(*text), "a token of the vocabulary");
    unknown = found != ids.end() ? found->second : static_cast<Token>(added - parts.vocabulary.begin());
  }
  parts.encoder = encoder_of(*model, cutting, ids, parts.vocabulary, unknown);
  if (cutting.composes) parts.encoder = std::make_unique<ComposingEncoder>(std::move(parts.encoder));
  if (const auto post_processor = root.object("post_processor")) read_template(*post_processor, parts);
  return parts;
}

std::shared_ptr<const Tokenizer> tokenizer_of_folder(const std::string& folder) {
  Tokenizer::Parts parts = parse_tokenizer_json(JsonFields::read((fs::path(folder) / "tokenizer.json").string()));
  parts.end_tokens = end_tokens_of(folder, std::ssize(parts.vocabulary));
  return std::make_shared<const Tokenizer>(std::move(parts));
}

}  // namespace draftproof
