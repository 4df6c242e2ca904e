#include "cli/shared/grammar_options.hpp"

#include "base/error.hpp"
#include "engine/grammar/grammar_source.hpp"

namespace draftproof {

void add_grammar_options(Options& command, GrammarOptions& options, const std::function<bool()>& has_others) {
  command.file("--grammar", options.gbnf, "The output is a sentence of this grammar, in llama.cpp's form GBNF");
  command.file("--json-schema", options.json_schema, "The output is a document of this JSON Schema");
  command.option("--regex", "TEXT", "", "The output matches this regular expression as a whole",
                 [&options](const std::string& text) { options.regex = text; });
  command.option("--choice", "A,B,...", "", "The output is one of these texts",
                 [&options](const std::string& text) { options.choice = text; });
  command.flag("--unmasked-drafts", options.unmasked_drafts,
               "Drafts need not follow the grammar; what it refuses of them is rejected");
  command.used_only({"--unmasked-drafts"}, "without a grammar, a schema, a regular expression or a choice",
                    [&options, has_others] { return options.any() || has_others(); });
}

std::optional<GrammarSource> grammar_source(const GrammarOptions& options) {
  const std::vector<std::pair<const char*, std::string>> given = {
      {"--grammar", options.gbnf.empty() ? "" : "gbnf:" + options.gbnf},
      {"--json-schema", options.json_schema.empty() ? "" : "json_schema:" + options.json_schema},
      {"--regex", options.regex ? "regex:" + *options.regex : ""},
      {"--choice", options.choice ? "choice:" + *options.choice : ""}};
  std::optional<GrammarSource> source;
  for (const auto& [option, text] : given) {
    if (text.empty()) continue;
    if (source)
      throw usage_error(option,
                        "is given beside another grammar; expected one of --grammar, --json-schema, --regex, "
                        "--choice");
    source = parse_grammar(text, option);
  }
  return source;
}

GrammarForm grammar_form(const GrammarOptions& options) {
  if (!options.gbnf.empty()) return GrammarForm::gbnf;
  if (!options.json_schema.empty()) return GrammarForm::json_schema;
  return options.regex ? GrammarForm::regex : GrammarForm::choice;
}

}  // namespace draftproof
