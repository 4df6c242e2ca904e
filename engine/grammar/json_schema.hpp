// JSON Schemas as XGrammar applies them. That library reads one keyword of a schema and leaves others out without a
// word; here a schema is rewritten so that none is left out: conjunctions (allOf, $ref and anyOf with keywords beside
// them) become one schema each, values of an enum are those that the rest allows, a part that nothing satisfies goes
// away. What cannot be said is refused. The documents of the result are never more than those of the schema.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace draftproof {

using SchemaJson = nlohmann::ordered_json;

// Errors (input) at `where`, naming the place in the schema as a JSON pointer: a text that is no JSON, a schema that is
// neither an object nor true or false or says nothing, a keyword that is not supported where it stands or is one letter
// off. The schema may stand in OpenAI's wrapper, {"name": ..., "strict": ..., "schema": {...}}.
std::string supported_schema(const std::string& text, const std::string& where);

// The schema that "#/$defs/a" or "#" names in `root`; null where there is none.
const SchemaJson* referenced_schema(const SchemaJson& root, const std::string& reference);

// Equal as JSON has it: names of objects in any order, 1 and 1.0 alike.
bool is_equal(const SchemaJson& a, const SchemaJson& b);

// Is the value of the schema? None where that cannot be told.
std::optional<bool> is_of_schema(const SchemaJson& value, const SchemaJson& schema, const SchemaJson& root);

// Does a text match the regular expression of a "pattern", somewhere in it? None where that cannot be told.
std::optional<bool> has_pattern(const std::string& text, const std::string& pattern);

// `pattern` as XGrammar is given it, of the texts with lengths in [least, most] (none: no limit), or of fewer where
// several parts of it are of any length. No pattern inside: there is no such text. None: it cannot be said.
struct PatternWithLength {
  std::optional<std::string> pattern;  // none: no text
};
std::optional<PatternWithLength> pattern_of_length(const std::string& pattern, std::int64_t least,
                                                   std::optional<std::int64_t> most);

}  // namespace draftproof
