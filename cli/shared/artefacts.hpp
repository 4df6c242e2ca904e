// --table and --figure, of verbs whose result is a snapshot of studies/.
#pragma once

#include <string>

#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "studies/figures/figure.hpp"
#include "studies/table_file.hpp"

namespace draftproof {

struct Artefacts {
  std::string table, figure;  // paths; empty: none
};

inline void add_artefacts(Options& options, Artefacts& artefacts) {
  options.file("--table", artefacts.table, "Write the rows as LaTeX (booktabs; .tex), Markdown (.md) or CSV (.csv)");
  options.file("--figure", artefacts.figure, "Write the figure as .svg, .pdf, .png or, for a paper, TikZ (.tex)");
}

// Asked before the work: usage errors naming the option.
inline void require_artefacts(const Artefacts& artefacts) {
  if (!artefacts.table.empty()) require_table_name("--table", artefacts.table);
  if (!artefacts.figure.empty()) require_figure_name("--figure", artefacts.figure);
  const std::vector<NamedFile> outputs{{"--table", artefacts.table}, {"--figure", artefacts.figure}};
  require_no_overwriting({}, outputs);
  require_writable(outputs);
}

// The table's caption is the command that made it.
template <class Snapshot>
void write_artefacts(const Artefacts& artefacts, const Snapshot& snapshot, const ProgramContext& context) {
  if (!artefacts.table.empty()) write_table(artefacts.table, to_table(snapshot), shell_command(context.arguments));
  if (!artefacts.figure.empty()) write_figure(artefacts.figure, to_figure(snapshot));
}

}  // namespace draftproof
