// llama.cpp's grammars: what they are as EBNF, and which texts they take.
#include "engine/grammar/gbnf.hpp"

#include "base/files/input_file.hpp"
#include "engine/grammar/compile_grammar.hpp"
#include "tests/engine/grammar/byte_grammar.hpp"
#include "tests/support/test.hpp"

namespace {

struct Case {
  std::string grammar;
  std::vector<std::string> sentences;
  std::vector<std::string> others;
};

// The sentences are those that llama.cpp's own parser and matcher take (b11063).
TEST_CASE("a GBNF grammar takes the sentences that it takes in llama.cpp, and no others") {
  if (!has_grammars()) return;
  const std::vector<Case> cases = {
      {"root ::= \"a\" ws \"b\"\nws ::= | \" \" ws\n", {"ab", "a   b"}, {"a", "b", "a b "}},
      {"root ::= (\"x\" | ) [0-9]? # comment\n", {"", "x", "7", "x7"}, {"7x", "xx"}},
      {"root ::= \"x\" |\n  \"y\"\n# comment\nroot2 ::= .", {"x", "y"}, {"", "xy"}},
      {"root ::= . .? \"!\"", {"a!", "\n!", "\xc3\xa9\xf0\x9f\x99\x82!", "!!"}, {"!", "abc!"}},
      {"root ::= \"\\x41B\\u00e9\\U0001F642\\n\\\"\\\\\"", {"AB\xc3\xa9\xf0\x9f\x99\x82\n\"\\"}, {"AB"}},
      {"root ::= [^\\]\\-a-c\\n] [-\\x41] [\\]\\[^-]", {"d-]", "zA^", "zA-"}, {"a-]", "]-]", "dB]", "\n-]"}},
      {"root ::= 1st-item{2} \"ab\"{1,2} (\"c\" | \"d\"){2,} [xy]{0,3} \"z\"{0}\n1st-item ::= \"1\"",
       {"11abcd", "11ababccddxyx"},
       {"1abcd", "11abc", "11abcdxyxy", "11abcdz"}},
      {"item ::= \"a\"\nroot ::= item item\nitem ::= \"b\"\n", {"bb"}, {"ab", "aa"}},
      {"root ::= (\n  \"a\"\n  | # either\n  \"b\"\n)+", {"abba"}, {"", "c"}},
      // Rules that go on in the next line, and names with "_", beyond llama.cpp.
      {"root ::= _x\n  | \"c\"\n  \"d\"\n_x ::= \"e\"", {"e", "cd"}, {"c", "d"}}};
  for (const Case& one : cases) {
    CAPTURE(one.grammar);
    const auto grammar = byte_grammar({GrammarForm::gbnf, one.grammar, {}, "g"});
    for (const std::string& text : one.sentences) CHECK(is_sentence(*grammar, text));
    for (const std::string& text : one.others) CHECK_FALSE(is_sentence(*grammar, text));
  }
}

TEST_CASE("a choice is taken to the byte, escapes of two digits before letters among it") {
  if (!has_grammars()) return;
  const auto grammar = byte_grammar({GrammarForm::choice,
                                     "",
                                     {"\nb",
                                      "\x01"
                                      "f",
                                      "\"\\]"},
                                     "c"});
  for (const char* const text : {"\nb",
                                 "\x01"
                                 "f",
                                 "\"\\]"})
    CHECK(is_sentence(*grammar, text));
  CHECK_FALSE(is_sentence(*grammar, "\xc2\xab"));
}

TEST_CASE("every grammar that llama.cpp ships compiles") {
  const std::string folder = DRAFTPROOF_SOURCE_DIR "/build/jinja/grammars";
  if (!std::filesystem::exists(folder)) return;
  int grammars = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    CAPTURE(file.path().string());
    const std::string text(InputFile(file.path().string()).text());
    CHECK(ebnf_of_gbnf(text, "g").find("root ::= ") != std::string::npos);
    if (has_grammars()) CHECK(byte_grammar({GrammarForm::gbnf, text, {}, "g"}) != nullptr);
    ++grammars;
  }
  CHECK(grammars == 8);
}

TEST_CASE("what is no GBNF is refused by its line") {
  for (const auto& [text, error] : {std::pair("", "g: has no rule `root`"),
                                    {"start ::= \"a\"", "g: has no rule `root`"},
                                    {"root ::= b\nb ::= \"b\"\n\n)", "line 4: expected the rule of 'b' to go on"},
                                    {"root ::=\n item\n", "line 2: the rule 'item' is not there"},
                                    {"root ::= \"a\n", "expected the end of a text in quotes"},
                                    {"root ::= [a", "expected the end of characters in brackets"},
                                    {"root ::= (\"a\"", "expected ')' at its end"},
                                    {"root ::= * \"a\"", "expected something that '* \"a\"' repeats"},
                                    {"root ::= \"a\"{2,1}", "{2,1} is no range"},
                                    {"root ::= \"a\"{x}", "expected a count up to 1000000 at 'x}'"},
                                    {"root ::= \"\\q\"", "expected an escape"},
                                    {"root ::= \"\\x4\"", "expected 2 hexadecimal digits"},
                                    {"root ::= \"\\ud83d\"", "expected a character's number"},
                                    {"root ::= [z-a]", "whose end is below its begin"},
                                    {"root ::= <think>", "names a token of a vocabulary at '<think>'"},
                                    {"root ::= \"\xff\"", "is no UTF-8"},
                                    {"root = \"a\"", "expected NAME ::= at 'root = \"a\"'"}}) {
    CAPTURE(text);
    CHECK_THAT(error_of(ErrorKind::input, [&] { ebnf_of_gbnf(text, "g"); }), Contains(error));
  }
  std::string deep = "root ::= ";
  CHECK_THAT(error_of(ErrorKind::input, [&] { ebnf_of_gbnf(deep + std::string(100'000, '('), "g"); }),
             Contains("is nested deeper than 500 parentheses"));
  CHECK_THAT(error_of(ErrorKind::input, [&] { ebnf_of_gbnf(deep + ".{0}" + std::string(100'000, '*'), "g"); }),
             Contains("repeats one thing more than 500 times over"));
}

}  // namespace
