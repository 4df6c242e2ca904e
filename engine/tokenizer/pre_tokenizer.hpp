// Cuts text into the pieces that a byte-pair encoding may not merge across, by the expressions that tokenizers name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

// Expressions are those of the reference implementations, with \s for Unicode's white space (which is not what PCRE2
// takes it for). Unicode's tables are those of the installed PCRE2, in a page those of the browser: the newest
// characters may be classed otherwise than by a reference implementation of another year.
class PreTokenizer {
 public:
  // Each step cuts every piece of the step before into the matches of its expression and what lies between them.
  // Input error at `where`: an expression that PCRE2 does not take.
  PreTokenizer(const std::string& where, const std::vector<std::string>& expressions);

  // The expressions of a name as GGUF files have them: gpt-2, smollm, llama-bpe, qwen2 and their aliases; none where
  // the name is not known.
  static std::vector<std::string> expressions_of(std::string_view name);
  static constexpr const char* kKnownNames = "gpt-2, smollm, llama-bpe, qwen2";
  static const char* const kGpt2;
  static const char* const kDigit;  // one digit or other number

  // The pieces, in order; together they are the text. Bytes that are not UTF-8 are pieces of their own, runs of them
  // together. Input error at `where`: an expression whose matches take more steps than a multiple of the text's length.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Expression;  // of PCRE2, or of a browser
  // With \s and \S written as Unicode's white space, inside and outside of brackets.
  static std::string with_unicode_spaces(const std::string& expression);
  void split_characters(std::string_view text, std::vector<std::string_view>& pieces) const;

  std::string where_;
  std::vector<std::shared_ptr<const Expression>> expressions_;
};

}  // namespace draftproof
