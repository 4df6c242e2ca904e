// Grammars as people give them: the text of one, its form, and where it stands.
//
//   gbnf         a grammar in llama.cpp's form, whose first rule is `root`
//   json_schema  a JSON Schema: documents of it, without properties that it does not name, and with white space of at
//                most 16 characters between their parts
//   regex        a regular expression, which the whole output matches
//   choice       one of some texts
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace draftproof {

enum class GrammarForm : std::uint8_t { gbnf, json_schema, regex, choice };

// "gbnf", "json_schema", "regex", "choice".
std::string name_of(GrammarForm form);

struct GrammarSource {
  GrammarForm form = GrammarForm::gbnf;
  std::string text;                  // of gbnf, json_schema and regex
  std::vector<std::string> choices;  // of choice
  std::string where;                 // the file or option that errors name

  bool operator==(const GrammarSource&) const = default;
};

// FORM:TEXT, of gbnf and json_schema FORM:FILE, which is read; of choice texts with a comma between two. Errors (usage,
// input) at `where`.
GrammarSource parse_grammar(const std::string& text, const std::string& where);

// A field of a line of prompts, "grammar": "root ::= ...", "json_schema": {...}, "regex": "..." or "choice": ["..."].
bool is_grammar_field(const std::string& name);
// Errors (input) at `where`: a value of another type.
GrammarSource grammar_field(const std::string& name, const nlohmann::json& value, const std::string& where);

}  // namespace draftproof
