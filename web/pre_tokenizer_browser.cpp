// Regular expressions by the browser, in place of PCRE2's (engine/tokenizer/pre_tokenizer_pcre2.cpp). Both take the
// first alternative that matches and go back where the rest does not; Unicode's tables are the browser's.
#include <emscripten.h>

#include "base/error.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"

// clang-format off
// web/page.js: the number of an expression, or -1 where the browser does not take it; and how many matches it has in
// UTF-8 of `bytes` bytes, whose begins and ends in bytes go to `to`, which has room for all.
EM_JS(int, draftproof_expression, (const char* pattern), { return Module.draftproof.expression(UTF8ToString(pattern)); });
EM_JS(int, draftproof_matches, (int expression, const char* text, int bytes, int* to), {
  const ends = Module.draftproof.matches(expression, HEAPU8.slice(text, text + bytes));
  HEAP32.set(ends, to >> 2);
  return ends.length / 2;
});
// clang-format on

namespace draftproof {

struct PreTokenizer::Expression {
  int number;
};

PreTokenizer::PreTokenizer(const std::string& where, const std::vector<std::string>& expressions) : where_(where) {
  for (const std::string& expression : expressions) {
    const int number = draftproof_expression(with_unicode_spaces(expression).c_str());
    if (number < 0) throw input_error(where, "the expression of the pre-tokenizer cannot be used in this browser");
    expressions_.push_back(std::make_shared<Expression>(Expression{number}));
  }
}

void PreTokenizer::split_characters(std::string_view text, std::vector<std::string_view>& pieces) const {
  std::vector<std::string_view> current{text};
  std::vector<int> ends;
  for (const std::shared_ptr<const Expression>& expression : expressions_) {
    std::vector<std::string_view> next;
    for (const std::string_view piece : current) {
      ends.resize(2 * piece.size());
      const int count =
          draftproof_matches(expression->number, piece.data(), static_cast<int>(piece.size()), ends.data());
      std::size_t done = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        const auto begin = static_cast<std::size_t>(ends[2 * i]);
        const auto end = static_cast<std::size_t>(ends[2 * i + 1]);
        if (begin > done) next.push_back(piece.substr(done, begin - done));
        next.push_back(piece.substr(begin, end - begin));
        done = end;
      }
      if (done < piece.size()) next.push_back(piece.substr(done));
    }
    current = std::move(next);
  }
  pieces.insert(pieces.end(), current.begin(), current.end());
}

}  // namespace draftproof
