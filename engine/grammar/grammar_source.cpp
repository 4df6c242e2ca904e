#include "engine/grammar/grammar_source.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/split.hpp"

namespace draftproof {

std::string name_of(GrammarForm form) {
  switch (form) {
    case GrammarForm::gbnf:
      return "gbnf";
    case GrammarForm::json_schema:
      return "json_schema";
    case GrammarForm::regex:
      return "regex";
    case GrammarForm::choice:
      break;
  }
  return "choice";
}

GrammarSource parse_grammar(const std::string& text, const std::string& where) {
  const std::size_t colon = text.find(':');
  const std::string argument = colon == std::string::npos ? "" : text.substr(colon + 1);
  for (const GrammarForm form :
       {GrammarForm::gbnf, GrammarForm::json_schema, GrammarForm::regex, GrammarForm::choice}) {
    if (argument.empty() || text.substr(0, colon) != name_of(form)) continue;
    GrammarSource source{form, argument, {}, where};
    if (form == GrammarForm::choice) {
      source.text.clear();
      for (const std::string_view choice : split(argument, ',')) source.choices.emplace_back(choice);
    }
    if (form != GrammarForm::gbnf && form != GrammarForm::json_schema) return source;
    source.where = argument;
    source.text = std::string(InputFile(argument).text());
    return source;
  }
  throw usage_error(where, "is '" + text + "'; expected gbnf:FILE, json_schema:FILE, regex:TEXT or choice:A,B");
}

bool is_grammar_field(const std::string& name) {
  return name == "grammar" || name == "json_schema" || name == "regex" || name == "choice";
}

GrammarSource grammar_field(const std::string& name, const nlohmann::json& value, const std::string& where) {
  const std::string at = where + ", \"" + name + "\"";
  const bool is_text = value.is_string();
  if (name == "json_schema")
    return {GrammarForm::json_schema, is_text ? value.get<std::string>() : value.dump(), {}, at};
  if (name == "choice") {
    if (!value.is_array() || !std::ranges::all_of(value, [](const auto& text) { return text.is_string(); }))
      throw input_error(at, "is " + value.dump() + "; expected a list of texts");
    return {GrammarForm::choice, "", value.get<std::vector<std::string>>(), at};
  }
  if (!is_text) throw input_error(at, "is " + value.dump() + "; expected a text");
  return {name == "regex" ? GrammarForm::regex : GrammarForm::gbnf, value.get<std::string>(), {}, at};
}

}  // namespace draftproof
