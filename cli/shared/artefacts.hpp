// --table and --figure, of verbs that print rows or draw.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/shared/build_commit.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
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
  const std::vector<NamedFile> outputs{{"--table", artefacts.table}, {"--figure", artefacts.figure}};
  require_no_overwriting(inputs, outputs);
  if (!artefacts.table.empty()) require_table_name("--table", artefacts.table);
  if (!artefacts.figure.empty()) require_figure_name("--figure", artefacts.figure);
  require_writable(outputs);
}

// The form of this command's tables and figures. The label is the verb.
inline PaperForm paper_form(const Artefacts& artefacts, const std::string& caption, const ProgramContext& context) {
  return {.caption = caption,
          .label = context.arguments.size() > 1 ? context.arguments[1] : "",
          .command = shell_command(context.arguments),
          .program = program_and_commit(),
          .width = artefacts.width == "single"   ? PaperWidth::single_column
                   : artefacts.width == "double" ? PaperWidth::double_column
                                                 : PaperWidth::screen};
}

// Rows of a document as a table. A key may be a path, as "ttft_ms/p50", which is the column ttft_ms_p50; null and what
// is missing are empty cells, two numbers an interval.
inline TableCell cell_of(const Json& row, const std::string& key) {
  const Json::json_pointer path("/" + key);
  if (!row.contains(path) || row.at(path).is_null()) return std::string();
  const Json& value = row.at(path);
  if (value.is_boolean()) return std::string(value.get<bool>() ? "yes" : "no");
  if (value.is_number_float()) return value.get<double>();
  if (value.is_number()) return value.get<std::int64_t>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number())
    return "[" + number("%.4g", value[0].get<double>()) + ", " + number("%.4g", value[1].get<double>()) + "]";
  return value.dump();
}

inline Table table_of(const Json& rows, const std::vector<std::string>& keys) {
  Table table;
  for (std::string name : keys) {
    std::ranges::replace(name, '/', '_');
    table.columns.push_back(name);
  }
  for (const Json& row : rows) {
    std::vector<TableCell>& cells = table.rows.emplace_back();
    for (const std::string& key : keys) cells.push_back(cell_of(row, key));
  }
  return table;
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

// For verbs whose result is a snapshot of studies/.
template <class Snapshot>
void write_artefacts(const Artefacts& artefacts, const std::string& caption, const Snapshot& snapshot,
                     const ProgramContext& context) {
  write_table_of(artefacts, caption, context, [&] { return to_table(snapshot); });
  write_figure_of(artefacts, context, [&] { return to_figure(snapshot); });
}

}  // namespace draftproof
