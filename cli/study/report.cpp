#include "cli/study/report.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/archives/sha256.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/input_file.hpp"
#include "base/files/own_files.hpp"
#include "base/printable.hpp"
#include "base/utc_now.hpp"
#include "cli/shared/build_commit.hpp"
#include "sim/serving/row_store.hpp"
#include "studies/figures/table_file.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& text) {
  AtomicFile file(path.string());
  file.stream() << text;
  file.commit();
}

// Numbers of a document with their paths.
void add_numbers(const Json& json, const std::string& path, std::vector<Row>& rows) {
  if (json.is_number())
    rows.push_back({path, json.get<double>()});
  else if (json.is_structured())
    for (const auto& [key, value] : json.items()) add_numbers(value, path + "/" + key, rows);
}

std::string in_html(const std::string& text) {
  std::string html;
  for (const char c : text)
    html += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return html;
}

void add_table(std::ostream& out, const Table& table) {
  out << "<table><tr>";
  for (const std::string& column : table.columns) out << "<th>" << in_html(column) << "</th>";
  out << "</tr>\n";
  for (const std::vector<TableCell>& row : table.rows) {
    out << "<tr>";
    for (const TableCell& cell : row) {
      const auto* text = std::get_if<std::string>(&cell);
      const auto* real = std::get_if<double>(&cell);
      out << (text ? "<td>" + in_html(*text)
                   : "<td class=n>" + (real ? number("%.4g", *real) : std::to_string(std::get<std::int64_t>(cell))))
          << "</td>";
    }
    out << "</tr>\n";
  }
  out << "</table>\n";
}

void add_figure(std::ostream& out, const fs::path& figure) {
  if (!fs::exists(figure)) return;
  const std::string svg = text_of_file(figure);
  out << svg.substr(std::min(svg.find("<svg"), svg.size())) << "\n";
}

// One file that needs no other and no network.
std::string report(const Study& study, const std::vector<FinishedRun>& all, const std::vector<Table>& tables,
                   const Table& comparisons, const StudyFolder& folder) {
  std::ostringstream out;
  out << "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>" << in_html(study.title)
      << "</title><style>body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
         "table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .7em;border-bottom:1px solid #ccc;"
         "text-align:left}td.n{text-align:right}code{background:#f2f2f2;overflow-wrap:anywhere}svg{max-width:100%;"
         "height:auto}</style>\n<h1>"
      << in_html(study.title) << "</h1>\n<p>" << in_html(study.text) << "</p>\n";
  if (!comparisons.rows.empty()) {
    out << "<h2>Comparisons</h2>\n<p>Pairs of the same items; 95 % intervals of the mean difference a - b. "
           "<code>detectable</code>: the least true difference that would have shown (p &lt; 0.05) with a probability "
           "of 80 %. <code>p_holm</code> is corrected for all rows.</p>\n";
    add_table(out, comparisons);
    add_figure(out, folder.figure("comparisons.svg"));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    out << "<h2>" << in_html(study.runs[i].name) << "</h2>\n<p><code>draftproof "
        << in_html(shell_command(study.runs[i].arguments)) << "</code>, exit code " << all[i].key.exit_code
        << ", measured " << in_html(all[i].key.measured) << "</p>\n";
    if (!tables[i].columns.empty()) add_table(out, tables[i]);
    if (study.runs[i].figure) add_figure(out, folder.figure(study.runs[i].name + ".svg"));
  }
  out << "<p>" << in_html(program_and_commit()) << "</p></html>\n";
  return out.str();
}

std::string how_to_reproduce(const Study& study, const std::vector<FinishedRun>& all, const std::string& file,
                             int ranks, const ProgramContext& context) {
  std::ostringstream out;
  out << "# " << study.title << "\n\n    " << shell_command(context.arguments)
      << "\n\n* program: " << program_and_commit() << "\n* file: " << file << ", SHA-256 "
      << sha256_hex(InputFile(file).bytes()) << "\n* time: " << utc_now()
      << "\n* built with: " << text_of_file(own_file("packages"));
  if (ranks > 1) out << "* processes of mpirun: " << ranks << "\n";
  if (all.front().document.contains("machine"))
    for (const auto& [key, value] : all.front().document.at("machine").items())
      out << "* " << key << ": " << (value.is_string() ? value.get<std::string>() : value.dump()) << "\n";
  std::vector<std::string> own;  // of the program, which its commit names
  for (const auto& entry : fs::directory_iterator(program_prefix() / "share" / "draftproof"))
    own.push_back(fs::canonical(entry.path()).string());
  std::set<std::string> inputs;
  for (const FinishedRun& run : all)
    for (const auto& [name, sha256] : run.key.inputs)
      if (std::ranges::none_of(own, [&](const std::string& path) { return name.starts_with(path); }))
        inputs.insert(name + " " + sha256);
  for (const std::string& input : inputs) out << "* input: " << printable_line(input) << "\n";
  out << "\n| run | command | exit code | measured | document, SHA-256 |\n|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < all.size(); ++i)
    out << "| " << study.runs[i].name << " | `draftproof " << shell_command(study.runs[i].arguments) << "` | "
        << all[i].key.exit_code << " | " << all[i].key.measured << " | " << all[i].key.document << " |\n";
  return out.str();
}

}  // namespace

void write_tables(const std::string& name, const Table& table, const std::string& caption, const std::string& command,
                  const StudyFolder& folder) {
  const PaperForm form{.caption = caption,
                       .label = name,
                       .command = command,
                       .program = program_and_commit(),
                       .width = PaperWidth::double_column};
  for (const char* suffix : {".tex", ".md", ".csv"}) write_table(folder.table(name + suffix).string(), table, form);
}

void write_numbers(const Study& study, const std::vector<FinishedRun>& all, const StudyFolder& folder) {
  fs::remove(folder.at("results.sqlite"));
  RowStore store(folder.at("results.sqlite").string(), study.title, "run", {"path", "value"});
  Table csv{{"run", "path", "value"}, {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<Row> rows;
    add_numbers(all[i].document, "", rows);
    store.add(static_cast<std::int64_t>(i), rows);
    for (const Row& row : rows)
      csv.rows.push_back({study.runs[i].name, std::get<std::string>(row[0]), std::get<double>(row[1])});
  }
  write_file(folder.at("results.csv"), to_csv(csv));
}

void write_report(const Study& study, const std::vector<FinishedRun>& all, const std::vector<Table>& tables,
                  const Table& comparisons, const StudyFolder& folder) {
  write_file(folder.at("report.html"), report(study, all, tables, comparisons, folder));
}

void write_how_to_reproduce(const Study& study, const std::vector<FinishedRun>& all, const std::string& file, int ranks,
                            const StudyFolder& folder, const ProgramContext& context) {
  write_file(folder.at("REPRODUCE.md"), how_to_reproduce(study, all, file, ranks, context));
}

}  // namespace draftproof
