// XGrammar behind our interface. The build takes this file where the library is, and without_xgrammar.cpp where not.
#include <dlpack/dlpack.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/grammar/compile_grammar.hpp"
#include "engine/grammar/gbnf.hpp"
#include "engine/grammar/json_schema.hpp"
#include "engine/grammar/probe.hpp"

namespace draftproof {
namespace {

// White space between the parts of a document: without a limit a model may write nothing else.
constexpr int kWhiteSpaceMax = 16;

// Warnings of the library while it compiles: it reports what it leaves out, and goes on.
thread_local std::string* warnings = nullptr;

// "0 < 1; expected" of "Check failed: (x) is false: 0 < 1": without the library's own places.
std::string without_place(std::string text) {
  if (const std::size_t end = text.find("is false: "); text.starts_with("Check failed") && end != std::string::npos)
    text = text.substr(end + 10);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
}

}  // namespace
}  // namespace draftproof

namespace xgrammar {

// The library's hooks (XGRAMMAR_LOG_CUSTOMIZE).
[[noreturn]] void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(draftproof::without_place(message));
}
void LogMessageImpl(const std::string&, int, int level, const std::string& message) {
  constexpr int kWarning = 2;
  if (draftproof::warnings != nullptr && level >= kWarning && draftproof::warnings->empty())
    *draftproof::warnings = draftproof::without_place(message);
}

}  // namespace xgrammar

namespace draftproof {
namespace {

// The library lets pass halves of surrogate pairs, which are no UTF-8, and control characters in strings of JSON
// whose length is limited. Tokens that hold them are left out; a tab between the parts of a document with them.
struct TokenMasks {
  std::vector<std::uint32_t> text;         // [words], of any grammar
  std::vector<std::uint32_t> json;         // of a schema
  std::vector<std::uint32_t> behind_half;  // behind a token that ends in 0xED
  std::vector<std::uint8_t> ends_in_half;  // [V]

  TokenMasks(const std::vector<std::string>& bytes, std::size_t words)
      : text(words, ~0u), json(words, ~0u), behind_half(words, ~0u), ends_in_half(bytes.size()) {
    const auto is_half = [](char c) { return static_cast<unsigned char>(c) >= 0xa0; };
    for (std::size_t token = 0; token < bytes.size(); ++token) {
      const std::string& of = bytes[token];
      const auto leave_out = [token](std::vector<std::uint32_t>& mask) { mask[token / 32] &= ~(1u << (token % 32)); };
      for (std::size_t i = 0; i < of.size(); ++i) {
        if (of[i] == '\xed' && i + 1 < of.size() && is_half(of[i + 1])) leave_out(text), leave_out(json);
        if (static_cast<unsigned char>(of[i]) < 0x20 && of[i] != '\n' && of[i] != '\r') leave_out(json);
      }
      if (!of.empty() && (static_cast<unsigned char>(of.front()) & 0xe0u) == 0xa0u) leave_out(behind_half);
      ends_in_half[token] = of.ends_with('\xed') ? 1 : 0;
    }
  }
};

class LibraryState final : public GrammarState {
 public:
  LibraryState(const xgrammar::CompiledGrammar& grammar, std::shared_ptr<const TokenMasks> masks, bool is_json)
      : matcher_(grammar), masks_(std::move(masks)), mask_of_all_(is_json ? masks_->json : masks_->text) {}

  bool accept(Token token) override {
    if (matcher_.IsTerminated() || !is_left(token) || !matcher_.AcceptToken(token)) return false;
    const auto index = static_cast<std::size_t>(token);
    halves_.push_back(index < masks_->ends_in_half.size() ? masks_->ends_in_half[index] : std::uint8_t{0});
    return true;
  }
  void roll_back(std::size_t tokens) override {
    if (tokens > 0) matcher_.Rollback(static_cast<int>(tokens));
    halves_.resize(halves_.size() - tokens);
  }
  void allowed(std::span<std::uint32_t> mask) override {
    if (matcher_.IsTerminated()) {
      std::ranges::fill(mask, 0u);
      return;
    }
    std::int64_t shape = std::ssize(mask);
    DLTensor tensor{mask.data(), DLDevice{kDLCPU, 0}, 1, xgrammar::GetBitmaskDLType(), &shape, nullptr, 0};
    matcher_.FillNextTokenBitmask(&tensor);
    for (std::size_t word = 0; word < mask.size(); ++word) mask[word] &= left_of(word);
  }
  bool goes_on() override {
    if (matcher_.IsTerminated()) return false;
    if (!matcher_.IsCompleted() || !matcher_.GetStopTokenIds().empty()) return true;
    mask_.resize(mask_of_all_.size());
    allowed(mask_);
    return std::ranges::any_of(mask_, [](std::uint32_t word) { return word != 0; });
  }
  bool is_complete() const override { return matcher_.IsTerminated() || matcher_.IsCompleted(); }
  std::string forced_text() override {
    return matcher_.IsTerminated() ? std::string() : matcher_.FindJumpForwardString();
  }

 private:
  std::uint32_t left_of(std::size_t word) const {
    const bool behind_half = !halves_.empty() && halves_.back() != 0;
    return mask_of_all_[word] & (behind_half ? masks_->behind_half[word] : ~0u);
  }
  bool is_left(Token token) const {
    const auto word = static_cast<std::size_t>(token) / 32;
    return word >= mask_of_all_.size() || ((left_of(word) >> (token % 32)) & 1u) != 0;
  }

  xgrammar::GrammarMatcher matcher_;
  std::shared_ptr<const TokenMasks> masks_;
  const std::vector<std::uint32_t>& mask_of_all_;
  std::vector<std::uint8_t> halves_;  // of the accepted tokens
  std::vector<std::uint32_t> mask_;
};

class LibraryGrammar final : public Grammar {
 public:
  LibraryGrammar(xgrammar::CompiledGrammar grammar, std::shared_ptr<const TokenMasks> masks, bool is_json)
      : grammar_(std::move(grammar)), masks_(std::move(masks)), is_json_(is_json) {}
  std::unique_ptr<GrammarState> start() const override {
    return std::make_unique<LibraryState>(grammar_, masks_, is_json_);
  }

 private:
  xgrammar::CompiledGrammar grammar_;
  std::shared_ptr<const TokenMasks> masks_;
  bool is_json_;
};

std::string form_name(GrammarForm form) {
  switch (form) {
    case GrammarForm::json_schema:
      return "a JSON Schema that can be satisfied";
    case GrammarForm::regex:
      return "a regular expression";
    case GrammarForm::gbnf:
    case GrammarForm::choice:
      break;
  }
  return "a grammar that can be compiled";
}

// The source's text as the library takes it. Errors (usage, input) at its `where`.
std::string text_for_library(const GrammarSource& source) {
  if (source.form == GrammarForm::regex) return source.text;
  if (source.form == GrammarForm::json_schema) return supported_schema(source.text, source.where);
  if (source.form == GrammarForm::gbnf) return ebnf_of_gbnf(source.text, source.where);
  if (source.choices.empty()) throw usage_error(source.where, "names no text; expected one or more");
  std::string rule = "root ::= ";
  for (const std::string& choice : source.choices) {
    if (choice.empty()) throw usage_error(source.where, "has an empty text; expected texts of a byte or more");
    rule += (&choice == source.choices.data() ? "" : " | ") + ebnf_string(choice);
  }
  return rule + "\n";
}

xgrammar::Grammar parsed(GrammarForm form, const std::string& text) {
  if (form == GrammarForm::json_schema)
    return xgrammar::Grammar::FromJSONSchema(text, true, std::nullopt, std::nullopt, true, kWhiteSpaceMax);
  return form == GrammarForm::regex ? xgrammar::Grammar::FromRegex(text) : xgrammar::Grammar::FromEBNF(text);
}

// Follows the grammar for some tokens: the first that is allowed, the second, and so on.
void rehearse(const Grammar& grammar, std::size_t words) {
  const std::unique_ptr<GrammarState> state = grammar.start();
  std::vector<std::uint32_t> mask(words);
  for (std::size_t n = 0; n < GrammarCompiler::kRehearsedTokens && state->goes_on(); ++n) {
    state->allowed(mask);
    std::vector<Token> tokens;
    for (std::size_t word = 0; word < words && tokens.size() <= n % 8; ++word)
      for (std::uint32_t bits = mask[word]; bits != 0; bits &= bits - 1)
        tokens.push_back(static_cast<Token>(32 * word) + std::countr_zero(bits));
    if (tokens.empty()) return;
    state->accept(tokens[std::min(n % 8, tokens.size() - 1)]);
  }
}

}  // namespace

struct GrammarCompiler::Library {
  Library(const Tokenizer& tokenizer, std::int64_t vocab_size, std::span<const Token> end_tokens)
      : bytes(bytes_of(tokenizer, vocab_size)),
        tokens(bytes, xgrammar::VocabType::RAW, static_cast<int>(vocab_size),
               std::vector<std::int32_t>(end_tokens.begin(), end_tokens.end())),
        compiler(tokens, 1, false),
        words(static_cast<std::size_t>((vocab_size + 31) / 32)),
        masks(std::make_shared<const TokenMasks>(bytes, words)) {}

  static std::vector<std::string> bytes_of(const Tokenizer& tokenizer, std::int64_t vocab_size) {
    std::vector<std::string> bytes;
    for (Token token = 0; token < std::min(tokenizer.vocab_size(), vocab_size); ++token) {
      const VocabularyEntry& entry = tokenizer.entry(token);
      bytes.push_back(entry.is_special ? std::string() : entry.bytes);  // no grammar allows an empty one
    }
    return bytes;
  }

  std::vector<std::string> bytes;
  xgrammar::TokenizerInfo tokens;
  xgrammar::GrammarCompiler compiler;
  std::size_t words;
  std::shared_ptr<const TokenMasks> masks;
};

bool has_grammars() {
  return true;
}

GrammarCompiler::GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, std::int64_t vocab_size,
                                 std::vector<Token> end_tokens)
    : tokenizer_(std::move(tokenizer)), vocab_size_(vocab_size), end_tokens_(std::move(end_tokens)) {}

GrammarCompiler::~GrammarCompiler() = default;

std::shared_ptr<const Grammar> GrammarCompiler::compile(const GrammarSource& source) {
  for (const auto& [known, grammar] : compiled_)
    if (known == source) return grammar;
  if (!library_) library_ = std::make_unique<Library>(*tokenizer_, vocab_size_, end_tokens_);
  std::string said;
  const auto compile = [&](const std::string& text) {
    warnings = &said;
    try {
      auto grammar =
          std::make_shared<const LibraryGrammar>(library_->compiler.CompileGrammar(parsed(source.form, text)),
                                                 library_->masks, source.form == GrammarForm::json_schema);
      warnings = nullptr;
      return grammar;
    } catch (const std::bad_alloc&) {
      warnings = nullptr;
      throw;
    } catch (const std::exception& error) {
      warnings = nullptr;
      throw input_error(source.where, printable(without_place(error.what())) + "; expected " + form_name(source.form));
    }
  };
  // A process of its own finds out whether the grammar takes too long, or too much memory.
  if (!ends_within(kGrammarSeconds, kGrammarBytes, [&] {
        try {
          rehearse(*compile(text_for_library(source)), library_->words);
        } catch (const Error&) {  // said below
        }
      }))
    throw input_error(source.where, "takes more than " + std::to_string(kGrammarSeconds) + " s or " +
                                        std::to_string(kGrammarBytes >> 20) + " MiB to compile and to follow for " +
                                        std::to_string(kRehearsedTokens) +
                                        " tokens; expected a smaller grammar, or one that reads a text in fewer ways");
  const std::shared_ptr<const Grammar> grammar = compile(text_for_library(source));
  if (!said.empty())
    throw input_error(source.where, printable(said) +
                                        "; expected a grammar without it, since what is left out would "
                                        "not be kept");
  std::vector<std::uint32_t> mask(library_->words);
  grammar->start()->allowed(mask);
  if (std::ranges::all_of(mask, [](std::uint32_t word) { return word == 0; }))
    throw input_error(source.where,
                      "no token of the vocabulary begins a sentence of it; expected a grammar that this "
                      "vocabulary can write");
  compiled_.emplace_back(source, grammar);
  return grammar;
}

}  // namespace draftproof
