// Regular expressions by PCRE2. A page has those of its browser instead (web/pre_tokenizer_browser.cpp).
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"

namespace draftproof {
namespace {

template <auto kFree>
struct FreeBy {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using MatchData = std::unique_ptr<pcre2_match_data, FreeBy<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, FreeBy<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, FreeBy<pcre2_jit_stack_free>>;

PCRE2_SPTR units_of(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

std::string message_of(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct PreTokenizer::Expression {
  std::unique_ptr<pcre2_code, FreeBy<pcre2_code_free>> code;
};

PreTokenizer::PreTokenizer(const std::string& where, const std::vector<std::string>& expressions) : where_(where) {
  for (const std::string& expression : expressions) {
    const std::string pattern = with_unicode_spaces(expression);
    int error = 0;
    PCRE2_SIZE place = 0;
    auto compiled = std::make_shared<Expression>();
    // \C would end a piece inside of a character.
    constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    compiled->code.reset(pcre2_compile(units_of(pattern), pattern.size(), kOptions, &error, &place, nullptr));
    if (!compiled->code)
      throw input_error(where, "the expression of the pre-tokenizer cannot be used: " + message_of(error));
    pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE);  // where there is no such compiler it is interpreted
    expressions_.push_back(std::move(compiled));
  }
}

void PreTokenizer::split_characters(std::string_view text, std::vector<std::string_view>& pieces) const {
  constexpr std::size_t kStackBytesMax = std::size_t{1} << 25;
  // Backtracking steps of one match. Those of the tokenizers that are in use need one a byte at most.
  constexpr std::size_t kStepsMin = 4096;
  constexpr std::size_t kStepsOfByte = 16;
  const MatchContext context(pcre2_match_context_create(nullptr));
  const JitStack stack(pcre2_jit_stack_create(std::size_t{1} << 15, kStackBytesMax, nullptr));
  pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  const MatchData match(pcre2_match_data_create(1, nullptr));

  std::vector<std::string_view> current{text};
  for (const std::shared_ptr<const Expression>& expression : expressions_) {
    std::vector<std::string_view> next;
    for (const std::string_view piece : current) {
      const std::size_t steps = kStepsMin + kStepsOfByte * piece.size();
      pcre2_set_match_limit(context.get(), static_cast<std::uint32_t>(std::min<std::size_t>(steps, UINT32_MAX)));
      std::size_t done = 0;
      for (std::size_t at = 0; at < piece.size();) {
        const int found = pcre2_match(expression->code.get(), units_of(piece), piece.size(), at, PCRE2_NO_UTF_CHECK,
                                      match.get(), context.get());
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found == PCRE2_ERROR_MATCHLIMIT)
          throw input_error(where_, "the expression of the pre-tokenizer takes more than " + std::to_string(steps) +
                                        " steps to match in a piece of " + std::to_string(piece.size()) +
                                        " bytes; expected one that does not backtrack without end");
        if (found < 0)
          throw input_error(where_, "the pre-tokenizer gives up on a piece of " + std::to_string(piece.size()) +
                                        " bytes: " + message_of(found));
        const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(match.get());
        if (ends[0] >= ends[1]) {  // an empty match, as a file's own expression may have
          at += decode_utf8(piece.substr(at)).length;
          continue;
        }
        if (ends[0] > done) next.push_back(piece.substr(done, ends[0] - done));
        next.push_back(piece.substr(ends[0], ends[1] - ends[0]));
        at = done = ends[1];
      }
      if (done < piece.size()) next.push_back(piece.substr(done));
    }
    current = std::move(next);
  }
  pieces.insert(pieces.end(), current.begin(), current.end());
}

}  // namespace draftproof
