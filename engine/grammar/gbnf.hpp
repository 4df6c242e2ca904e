// llama.cpp's grammars (GBNF, its grammars/README.md) written as XGrammar's EBNF, which differs: an alternative of GBNF
// may be empty, "." is any character, \x takes two digits, a name may begin with a digit, a later rule replaces an
// earlier one of its name.
#pragma once

#include <string>

namespace draftproof {

// Errors (input) at `where`, naming the line: what is not GBNF, a name without a rule, no rule `root`, tokens of a
// vocabulary (<[7]>, <think>), which are not supported. More than llama.cpp's parser takes: names with "_", and rules
// over several lines, since a rule ends where the next begins.
std::string ebnf_of_gbnf(const std::string& gbnf, const std::string& where);

// A text as a string of EBNF.
std::string ebnf_string(const std::string& text);

}  // namespace draftproof
