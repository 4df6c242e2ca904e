// What a JSON Schema says that XGrammar would leave out without a word: refused here, so that every output is a
// document of its schema.
#pragma once

#include <string>

namespace draftproof {

// Errors (input) at `where`, naming the place in the schema as a JSON pointer: a text that is no JSON, a schema that is
// neither an object nor true or false, a keyword that is not supported where it stands.
void require_supported_schema(const std::string& text, const std::string& where);

}  // namespace draftproof
