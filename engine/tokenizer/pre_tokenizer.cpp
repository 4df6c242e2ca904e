#include "engine/tokenizer/pre_tokenizer.hpp"

#include "base/utf8.hpp"

namespace draftproof {
namespace {

// Unicode's White_Space.
constexpr const char* kSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";

constexpr const char* kLlama3 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kQwen2 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

}  // namespace

const char* const PreTokenizer::kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char* const PreTokenizer::kDigit = "\\p{N}";

std::vector<std::string> PreTokenizer::expressions_of(std::string_view name) {
  if (name == "gpt-2" || name == "gpt2") return {kGpt2};
  if (name == "smollm" || name == "starcoder" || name == "refact" || name == "command-r") return {kDigit, kGpt2};
  if (name == "llama-bpe" || name == "llama3" || name == "llama-v3") return {kLlama3};
  if (name == "qwen2" || name == "deepseek-r1-qwen") return {kQwen2};
  return {};
}

std::string PreTokenizer::with_unicode_spaces(const std::string& expression) {
  std::string result;
  bool in_brackets = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\' && i + 1 < expression.size()) {
      const char escaped = expression[++i];
      if (escaped == 's' && in_brackets) {
        result += kSpace;
      } else if ((escaped == 's' || escaped == 'S') && !in_brackets) {
        result.append(escaped == 's' ? "[" : "[^").append(kSpace).append("]");
      } else {
        result.append(1, '\\').append(1, escaped);
      }
      continue;
    }
    if (c == '[') in_brackets = true;
    if (c == ']') in_brackets = false;
    result += c;
  }
  return result;
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    for (std::size_t length = 1; end < text.size() && length > 0; end += length)
      length = decode_utf8(text.substr(end)).length;
    if (end > begin) split_characters(text.substr(begin, end - begin), pieces);
    begin = end;
    while (end < text.size() && decode_utf8(text.substr(end)).length == 0) ++end;
    if (end > begin) pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

}  // namespace draftproof
