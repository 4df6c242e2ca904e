// --table and --figure, of verbs that print rows or draw.
#pragma once

#include <string>
#include <vector>

#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/shared/build_commit.hpp"
#include "cli/shared/command.hpp"
#include "studies/figures/figure.hpp"
#include "studies/figures/table_file.hpp"

namespace draftproof {

struct Artefacts {
  std::string table, figure;  // paths; empty: none
  std::string width = "screen";
};

inline void add_table(Options& options, Artefacts& artefacts) {
  options.file("--table", artefacts.table, "Write the rows as LaTeX (booktabs; .tex), Markdown (.md) or CSV (.csv)");
  options.choice("--paper-width", artefacts.width, {"screen", "single", "double"},
                 "For a paper: fit table and figure into one column or across both");
}

inline void add_artefacts(Options& options, Artefacts& artefacts) {
  add_table(options, artefacts);
  options.file("--figure", artefacts.figure, "Write the figure as .svg, .pdf, .png or, for a paper, TikZ (.tex)");
}

// Asked before the work: usage errors naming the option.
inline void require_artefacts(const Artefacts& artefacts, const std::vector<NamedFile>& inputs = {}) {
  if (artefacts.width != "screen" && artefacts.table.empty() && artefacts.figure.empty())
    throw usage_error("--paper-width", "has no use without a --table or --figure");
  if (!artefacts.table.empty()) require_table_name("--table", artefacts.table);
  if (!artefacts.figure.empty()) require_figure_name("--figure", artefacts.figure);
  const std::vector<NamedFile> outputs{{"--table", artefacts.table}, {"--figure", artefacts.figure}};
  require_no_overwriting(inputs, outputs);
  require_writable(outputs);
}

// The form of this command's tables and figures. The label is the verb.
inline PaperForm paper_form(const Artefacts& artefacts, const std::string& caption, const ProgramContext& context) {
  return {.caption = caption,
          .label = context.arguments.size() > 1 ? context.arguments[1] : "",
          .command = shell_command(context.arguments),
          .program = std::string("draftproof ") + DRAFTPROOF_VERSION + " (" + build_commit() + ")",
          .width = artefacts.width == "single"   ? PaperWidth::single_column
                   : artefacts.width == "double" ? PaperWidth::double_column
                                                 : PaperWidth::screen};
}

// Computes what is asked for, and nothing else. The caption is the table's.
template <class MakeTable>
void write_table_of(const Artefacts& artefacts, const std::string& caption, const ProgramContext& context,
                    const MakeTable& make_table) {
  if (!artefacts.table.empty()) write_table(artefacts.table, make_table(), paper_form(artefacts, caption, context));
}

template <class MakeScript>
void write_figure_of(const Artefacts& artefacts, const ProgramContext& context, const MakeScript& make_script,
                     FigureOptions options = {}) {
  if (artefacts.figure.empty()) return;
  options.form = paper_form(artefacts, "", context);
  const std::string script = make_script();
  if (script.empty()) throw input_error(artefacts.figure, "is not drawn: there is nothing to show");
  write_figure(artefacts.figure, script, options);
}

// Of verbs whose result is a snapshot of studies/.
template <class Snapshot>
void write_artefacts(const Artefacts& artefacts, const std::string& caption, const Snapshot& snapshot,
                     const ProgramContext& context) {
  write_table_of(artefacts, caption, context, [&] { return to_table(snapshot); });
  write_figure_of(artefacts, context, [&] { return to_figure(snapshot); });
}

}  // namespace draftproof
