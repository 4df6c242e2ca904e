// The options of a grammar that generate, speculate and demo have.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/shared/options.hpp"

namespace draftproof {

enum class GrammarForm : std::uint8_t;
struct GrammarSource;

struct GrammarOptions {
  std::string gbnf;         // a file
  std::string json_schema;  // a file
  std::optional<std::string> regex;
  std::optional<std::string> choice;
  bool unmasked_drafts = false;

  bool any() const { return !gbnf.empty() || !json_schema.empty() || regex || choice; }
};

// has_others: requests may have grammars of their own.
void add_grammar_options(
    Options& command, GrammarOptions& options, const std::function<bool()>& has_others = [] { return false; });

// The grammar that the options name; reads its file. Errors (usage): more than one; (input) a file cannot be read.
std::optional<GrammarSource> grammar_source(const GrammarOptions& options);

// The form of the grammar that the options name.
GrammarForm grammar_form(const GrammarOptions& options);

}  // namespace draftproof
