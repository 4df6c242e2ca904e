// draftproof study: runs the commands that a file names, and writes what a paper takes: documents, rows in SQLite and
// CSV, tables, figures, paired comparisons, a report, and how to do it again.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "base/archives/sha256.hpp"
#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/input_file.hpp"
#include "base/files/own_files.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/build_commit.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/ranks.hpp"
#include "cli/shared/terminal.hpp"
#include "cli/study/study_file.hpp"
#include "sim/serving/row_store.hpp"
#include "studies/experiments/paired_difference.hpp"

extern char** environ;

namespace draftproof {
namespace {

namespace fs = std::filesystem;

struct StudyArguments {
  std::string file;
  std::string out;
  int jobs = 1;
  std::string part;  // "I/N": each Nth run from the Ith on; empty: all, and what is made of them
  bool json = false;
};

struct Finished {
  Json document;
  int exit_code = 0;
  bool was_there = false;
};

// The program that starts every verb: beside the verbs' programs, installed, or this one where it has all verbs.
std::string program() {
  for (const fs::path& path : {program_prefix() / "bin" / "draftproof", program_prefix() / "draftproof"})
    if (fs::exists(path)) return path.string();
  return fs::read_symlink("/proc/self/exe").string();
}

// Of the study's own files, which a later run may replace.
std::string text_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw input_error(path.string(), "cannot be read");
  return text.str();
}

void write_file(const fs::path& path, const std::string& text) {
  AtomicFile file(path.string());
  file.stream() << text;
  file.commit();
}

// The exit code of a command whose standard output and error become files.
int run_into(const std::vector<std::string>& arguments, const fs::path& out, const fs::path& error) {
  std::vector<std::string> words{program()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, error.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t child = 0;
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!Ranks::is_of_mpirun(*variable)) environment.push_back(*variable);
  environment.push_back(nullptr);
  const int failed = posix_spawn(&child, words.front().c_str(), &actions, nullptr, pointers.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw input_error(words.front(), std::string("does not start: ") + std::strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw input_error(words.front(), std::string("is lost: ") + std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The files that a command names, in whole arguments or parts of them (--prompts=FILE, a,head:FILE), and their digests,
// a line each.
std::string inputs_of(const StudyRun& run) {
  std::set<std::string> files;
  for (const std::string& argument : run.arguments)
    for (std::size_t begin = 0; begin < argument.size(); ++begin) {
      if (begin > 0 && std::string_view(",=:").find(argument[begin - 1]) == std::string_view::npos) continue;
      for (std::size_t end = begin; end != std::string::npos;) {
        end = argument.find_first_of(",=:", end + 1);
        const std::string part = argument.substr(begin, end == std::string::npos ? end : end - begin);
        std::error_code error;
        if (fs::is_regular_file(part, error)) files.insert(part);
      }
    }
  std::string lines;
  for (const std::string& file : files) lines += file + " " + sha256_hex(InputFile(file).bytes()) + "\n";
  return lines;
}

// What a run's document is made of.
std::string key_of(const StudyRun& run) {
  return program_and_commit() + "\n" + shell_command(run.arguments) + "\n" + inputs_of(run);
}

class Folder {
 public:
  explicit Folder(const std::string& path) : path_(path) {
    for (const char* part : {"runs", "tables", "figures"}) {
      std::error_code error;
      fs::create_directories(path_ / part, error);
      if (error) throw input_error("--out", in_quotes(path) + " cannot be made: " + error.message());
    }
  }
  fs::path document(const StudyRun& run) const { return path_ / "runs" / (run.name + ".json"); }
  fs::path key(const StudyRun& run) const { return path_ / "runs" / (run.name + ".key"); }
  fs::path figure(const std::string& name) const { return path_ / "figures" / name; }
  fs::path table(const std::string& name) const { return path_ / "tables" / name; }
  fs::path at(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

void require_success(const StudyRun& run, int exit_code, const fs::path& error) {
  if (exit_code == 0 || exit_code == 1 || exit_code == 4) return;
  std::string said = text_of_file(error);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  said = said.substr(said.rfind('\n') == std::string::npos ? 0 : said.rfind('\n') + 1);
  throw input_error(run.where, "the command " + in_quotes(shell_command(run.arguments)) + " ended with exit code " +
                                   std::to_string(exit_code) + ": " + printable_line(said));
}

// The figure of a run in the forms that a paper takes. Where one cannot be drawn, none is there; the first says why.
std::string draw(const StudyRun& run, const Folder& folder) {
  struct Form {
    const char* suffix;
    const char* width;
  };
  for (const Form& form : {Form{".svg", "screen"}, Form{".pdf", "single"}, Form{"-double.pdf", "double"},
                           Form{".tex", "single"}, Form{"-double.tex", "double"}}) {
    std::vector<std::string> arguments = run.arguments;
    const fs::path path = folder.figure(run.name + form.suffix);
    arguments.insert(arguments.end(), {"--figure", path.string(), "--paper-width", form.width, "--json"});
    const fs::path error = folder.at("runs") / (run.name + ".figure.err");
    const int exit_code = run_into(arguments, "/dev/null", error);
    const std::string said = text_of_file(error);
    fs::remove(error);
    if (exit_code != 0 && exit_code != 1 && exit_code != 4) return printable_line(said);
  }
  return "";
}

const std::string kExitCode = "exit code ";  // begins the last line of a key

// Is a run's document there, made by this program from what the command names now?
bool is_there(const StudyRun& run, const Folder& folder) {
  const fs::path key = folder.key(run);
  if (!fs::exists(key) || !fs::exists(folder.document(run))) return false;
  const std::string there = text_of_file(key);
  const std::size_t last_line = there.rfind(kExitCode);
  return last_line != std::string::npos && there.substr(0, last_line) == key_of(run);
}

// A run that is there; its document need not be one yet.
Finished read_finished(const StudyRun& run, const Folder& folder) {
  const fs::path document = folder.document(run);
  const std::string key = text_of_file(folder.key(run));
  Finished finished{parse_json<Json>(text_of_file(document), document.string()),
                    std::stoi(key.substr(key.rfind(kExitCode) + kExitCode.size())), true};
  if (!finished.document.is_object())
    throw input_error(run.where, "prints no JSON document; expected a verb with --json");
  return finished;
}

// Runs the command where its document is not there. Says what it could not draw.
void finish(const StudyRun& run, const Folder& folder, std::string& warning) {
  const fs::path document = folder.document(run);
  const fs::path part = document.string() + ".part", error = document.string() + ".err";
  const std::string key = key_of(run);  // before the command, which may write files that it names
  std::vector<std::string> arguments = run.arguments;
  arguments.emplace_back("--json");
  const int exit_code = run_into(arguments, part, error);
  require_success(run, exit_code, error);
  fs::remove(error);
  if (run.figure) warning = draw(run, folder);
  fs::rename(part, document);
  write_file(folder.key(run), key + kExitCode + std::to_string(exit_code) + "\n");
  read_finished(run, folder);
}

// Asks for runs and finishes them, so many side by side. The first error ends it; what is finished stays.
void finish_all(const Study& study, Points& points, const Folder& folder, int jobs, std::set<std::string>& warnings,
                const std::function<void()>& on_error) {
  std::mutex mutex;
  std::exception_ptr error;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < jobs; ++i)
      workers.emplace_back([&] {
        while (true) {
          try {
            const std::optional<std::size_t> at = points.next();
            if (!at) return;
            std::string warning;
            const bool was_there = is_there(study.runs[*at], folder);
            if (!was_there) finish(study.runs[*at], folder, warning);
            points.deliver(*at, {{std::int64_t{was_there}}});
            const std::lock_guard lock(mutex);
            if (!warning.empty()) warnings.insert(warning);
            std::cerr << "study: " << study.runs[*at].name << (was_there ? " was there" : " done") << std::endl;
          } catch (...) {
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
            on_error();
            return;
          }
        }
      });
  }
  if (error) std::rethrow_exception(error);
}

const Json& list_at(const Json& document, const std::string& pointer, const std::string& where) {
  try {
    const Json& list = document.at(Json::json_pointer(pointer));
    if (list.is_array()) return list;
  } catch (const Json::exception&) {
  }
  throw input_error(where, in_quotes(pointer) + " is no list of the run's document");
}

bool is_chosen(const Json& row, const StudyItems& items) {
  return std::ranges::all_of(items.only, [&](const auto& wanted) {
    const Json::json_pointer path("/" + wanted.first);
    if (!row.is_object() || !row.contains(path)) return false;
    const Json& value = row.at(path);
    if (value.is_string()) return value.get<std::string>() == wanted.second;
    return value.is_number() ? number("%g", value.get<double>()) == wanted.second : value.dump() == wanted.second;
  });
}

Json items_of(const Json& document, const StudyItems& items, const std::string& where) {
  const std::size_t star = items.pointer.find("/*/");
  if (star == std::string::npos) return list_at(document, items.pointer, where);
  Json all = Json::array();
  for (const Json& row : list_at(document, items.pointer.substr(0, star), where)) {
    if (!is_chosen(row, items)) continue;
    const Json& list = list_at(row, items.pointer.substr(star + 2), where);
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

std::vector<double> quantities(const Json& items, const StudyComparison& comparison) {
  std::vector<double> values;
  for (const Json& item : items) {
    double value = 1.0;
    for (const auto& [key, power] : {std::pair(comparison.quantity, 1), std::pair(comparison.per, -1)}) {
      if (key.empty()) continue;
      const Json::json_pointer path("/" + key);
      if (!item.is_object() || !item.contains(path) || !item.at(path).is_number())
        throw input_error(comparison.where, "an item has no number " + in_quotes(key));
      const double number = item.at(path).get<double>();
      if (power < 0 && number == 0.0) throw input_error(comparison.where, in_quotes(key) + " of an item is 0");
      value = power > 0 ? value * number : value / number;
    }
    values.push_back(value);
  }
  return values;
}

// Items that say the length of their prompt are pairs of prompts.
void require_same_items(const Json& a, const Json& b, const std::string& where) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i].is_object() && b[i].is_object() &&
        a[i].value("prompt_tokens", Json()) != b[i].value("prompt_tokens", Json()))
      throw input_error(where, "item " + std::to_string(i) +
                                   " is of another prompt in a than in b; expected the same prompts in the same order");
}

Table comparisons_of(const Study& study, const std::vector<Finished>& all) {
  std::vector<PairedDifference> family;
  const auto document_of = [&](const std::string& name) -> const Json& {
    const auto run = std::ranges::find(study.runs, name, &StudyRun::name);
    return all[static_cast<std::size_t>(run - study.runs.begin())].document;
  };
  for (const StudyComparison& comparison : study.comparisons) {
    const Json a = items_of(document_of(comparison.a.run), comparison.a, comparison.where);
    const Json b = items_of(document_of(comparison.b.run), comparison.b, comparison.where);
    require_same_items(a, b, comparison.where);
    try {
      family.push_back(paired_difference(quantities(a, comparison), quantities(b, comparison)));
    } catch (const Error& error) {
      if (std::string(error.what()).starts_with("paired values: "))
        throw input_error(comparison.where, std::string(error.what()).substr(15));
      throw;
    }
  }
  correct(family);
  Table table{{"comparison", "pairs", "a", "b", "difference", "low", "high", "p", "p_holm", "detectable"}, {}};
  for (std::size_t i = 0; i < family.size(); ++i) {
    const PairedDifference& d = family[i];
    table.rows.push_back({study.comparisons[i].title, static_cast<std::int64_t>(d.pairs), d.mean_a, d.mean_b,
                          d.difference, d.low, d.high, d.p_value, d.p_holm,
                          d.detectable ? TableCell(*d.detectable) : TableCell("too few pairs")});
  }
  return table;
}

void write_tables(const std::string& name, const Table& table, const std::string& caption, const std::string& command,
                  const Folder& folder) {
  const PaperForm form{.caption = caption,
                       .label = name,
                       .command = command,
                       .program = program_and_commit(),
                       .width = PaperWidth::double_column};
  for (const char* suffix : {".tex", ".md", ".csv"}) write_table(folder.table(name + suffix).string(), table, form);
}

// Numbers of a document with their paths.
void add_numbers(const Json& json, const std::string& path, std::vector<Row>& rows) {
  if (json.is_number())
    rows.push_back({path, json.get<double>()});
  else if (json.is_structured())
    for (const auto& [key, value] : json.items()) add_numbers(value, path + "/" + key, rows);
}

void write_numbers(const Study& study, const std::vector<Finished>& all, const Folder& folder) {
  fs::remove(folder.at("results.sqlite"));
  RowStore store(folder.at("results.sqlite").string(), study.title, "run", {"path", "value"});
  std::ostringstream csv;
  csv.precision(17);
  csv << "run,path,value\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<Row> rows;
    add_numbers(all[i].document, "", rows);
    store.add(static_cast<std::int64_t>(i), rows);
    for (const Row& row : rows)
      csv << study.runs[i].name << ",\"" << std::get<std::string>(row[0]) << "\"," << std::get<double>(row[1]) << '\n';
  }
  write_file(folder.at("results.csv"), csv.str());
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

// One file that needs no other and no network.
std::string report(const Study& study, const std::vector<Finished>& all, const std::vector<Table>& tables,
                   const Table& comparisons, const Folder& folder) {
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
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    out << "<h2>" << in_html(study.runs[i].name) << "</h2>\n<p><code>draftproof "
        << in_html(shell_command(study.runs[i].arguments)) << "</code>, exit code " << all[i].exit_code << "</p>\n";
    if (!tables[i].columns.empty()) add_table(out, tables[i]);
    const fs::path figure = folder.figure(study.runs[i].name + ".svg");
    if (!study.runs[i].figure || !fs::exists(figure)) continue;
    const std::string svg = text_of_file(figure);
    out << svg.substr(std::min(svg.find("<svg"), svg.size())) << "\n";
  }
  out << "<p>" << in_html(program_and_commit()) << "</p></html>\n";
  return out.str();
}

std::string how_to_reproduce(const Study& study, const std::vector<Finished>& all, const std::string& file,
                             const Folder& folder, int ranks, const ProgramContext& context) {
  std::ostringstream out;
  const std::time_t now = std::time(nullptr);
  char date[32] = "";
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
  out << "# " << study.title << "\n\n    " << shell_command(context.arguments)
      << "\n\n* program: " << program_and_commit() << "\n* file: " << file << ", SHA-256 "
      << sha256_hex(InputFile(file).bytes()) << "\n* time: " << date
      << "\n* built with: " << text_of_file(own_file("packages"));
  if (ranks > 1) out << "* processes of mpirun: " << ranks << "\n";
  if (all.front().document.contains("machine"))
    for (const auto& [key, value] : all.front().document.at("machine").items())
      out << "* " << key << ": " << (value.is_string() ? value.get<std::string>() : value.dump()) << "\n";
  std::set<std::string> inputs;
  for (const StudyRun& one : study.runs) {
    std::istringstream lines(inputs_of(one));
    for (std::string line; std::getline(lines, line);) inputs.insert(line);
  }
  for (const std::string& input : inputs) out << "* input: " << input << "\n";
  out << "\n| run | command | exit code | document, SHA-256 |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < all.size(); ++i)
    out << "| " << study.runs[i].name << " | `draftproof " << shell_command(study.runs[i].arguments) << "` | "
        << all[i].exit_code << " | " << sha256_hex(text_of_file(folder.document(study.runs[i]))) << " |\n";
  return out.str();
}

// Errors (usage): a part that there is not.
std::vector<std::size_t> runs_of_part(const Study& study, const std::string& part) {
  std::int64_t first = 0, parts = 1;
  if (!part.empty()) {
    const std::size_t slash = part.find('/');
    const auto number = slash == std::string::npos ? std::nullopt : read_integer(part.substr(0, slash), 0, 9999);
    const auto count = slash == std::string::npos ? std::nullopt : read_integer(part.substr(slash + 1), 1, 9999);
    if (!number || !count || *number >= *count)
      throw usage_error("--part", "is '" + part + "'; expected I/N with I from 0 to N - 1, as 0/4");
    first = *number;
    parts = *count;
  }
  std::vector<std::size_t> runs;
  for (auto at = static_cast<std::size_t>(first); at < study.runs.size(); at += static_cast<std::size_t>(parts))
    runs.push_back(at);
  return runs;
}

// Rank 0: finishes the runs with the other ranks. Which of them were there before, in the order of the study.
std::vector<bool> finish_with_ranks(const Study& study, const std::vector<std::size_t>& runs, const Folder& folder,
                                    int jobs, Ranks& ranks, std::set<std::string>& warnings) {
  std::vector<bool> there(study.runs.size(), true);
  OwnPoints points({runs.begin(), runs.end()}, [&](std::size_t run, const std::vector<Row>& rows) {
    there[run] = std::get<std::int64_t>(rows.at(0).at(0)) != 0;
  });
  std::exception_ptr error;
  std::jthread own([&] {
    try {
      finish_all(study, points, folder, jobs, warnings, [&] { points.give_up(); });
    } catch (...) {
      error = std::current_exception();
    }
  });
  ranks.serve(points);
  own.join();
  if (error) std::rethrow_exception(error);
  return there;
}

// Every run with its document; none on ranks that only helped, and with --part.
std::optional<std::vector<Finished>> all_runs(const StudyArguments& arguments, const Study& study, const Folder& folder,
                                              Ranks& ranks, std::set<std::string>& warnings) {
  const std::vector<std::size_t> runs = runs_of_part(study, arguments.part);
  if (ranks.rank() != 0) {
    finish_all(study, *ranks.points_of_rank_0(), folder, arguments.jobs, warnings, [] {});
    return std::nullopt;
  }
  const std::vector<bool> there = finish_with_ranks(study, runs, folder, arguments.jobs, ranks, warnings);
  if (!arguments.part.empty()) {
    std::cout << runs.size() << " of " << study.runs.size() << " runs are in " << printable_line(arguments.out)
              << "; the same command without --part makes tables, figures and the report of all\n";
    return std::nullopt;
  }
  std::vector<Finished> all(study.runs.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = read_finished(study.runs[i], folder);
    all[i].was_there = there[i];
  }
  return all;
}

void run(const StudyArguments& arguments, ProgramContext& context) {
  Ranks ranks;
  Study study;
  std::set<std::string> warnings;
  std::optional<std::vector<Finished>> finished;
  try {
    study = read_study(arguments.file);
    finished = all_runs(arguments, study, Folder(arguments.out), ranks, warnings);
  } catch (const Error& error) {
    ranks.end_all(error);
    throw;
  }
  for (const std::string& warning : warnings) print_message("warning", "a figure is missing: " + warning);
  if (!finished) return;
  const std::vector<Finished>& all = *finished;
  const Folder folder(arguments.out);
  std::vector<Table> tables(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StudyRun& one = study.runs[i];
    if (one.rows.empty()) continue;
    tables[i] = table_of(list_at(all[i].document, one.rows, one.where), one.columns);
    write_tables(one.name, tables[i], study.title + ": " + one.name, "draftproof " + shell_command(one.arguments),
                 folder);
  }
  const Table comparisons = comparisons_of(study, all);
  if (!comparisons.rows.empty())
    write_tables("comparisons", comparisons, study.title + ": paired comparisons", shell_command(context.arguments),
                 folder);
  write_numbers(study, all, folder);
  write_file(folder.at("report.html"), report(study, all, tables, comparisons, folder));
  write_file(folder.at("REPRODUCE.md"), how_to_reproduce(study, all, arguments.file, folder, ranks.size(), context));
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document["title"] = study.title;
    document["out"] = arguments.out;
    document["runs"] = Json::array();
    for (std::size_t i = 0; i < all.size(); ++i)
      document["runs"].push_back({{"name", study.runs[i].name},
                                  {"command", shell_command(study.runs[i].arguments)},
                                  {"exit_code", all[i].exit_code},
                                  {"was_there", all[i].was_there},
                                  {"document", folder.document(study.runs[i]).string()}});
    document["comparisons"] = Json::array();
    for (const std::vector<TableCell>& row : comparisons.rows) {
      Json json;
      for (std::size_t c = 0; c < row.size(); ++c)
        std::visit([&](const auto& value) { json[comparisons.columns[c]] = value; }, row[c]);
      document["comparisons"].push_back(json);
    }
    return print_json(document);
  }
  for (const std::vector<TableCell>& row : comparisons.rows)
    std::cout << printable_line(std::get<std::string>(row[0])) << ": difference "
              << number("%.4g", std::get<double>(row[4])) << number(" [%.4g", std::get<double>(row[5]))
              << number(", %.4g]", std::get<double>(row[6])) << number(", p %.3g", std::get<double>(row[7]))
              << number(" (Holm %.3g)", std::get<double>(row[8]))
              << (std::holds_alternative<double>(row[9]) ? number("; %.3g would have shown", std::get<double>(row[9]))
                                                         : "; too few pairs for any p below 0.05")
              << "\n";
  std::cout << all.size() << " runs; report, tables, figures and how to reproduce them in "
            << printable_line(arguments.out) << "\n";
}

}  // namespace

void add_study(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<StudyArguments>();
  options.required_text("file", arguments->file, "What to run and to compare (docs/studies.md)", "STUDY.toml");
  options.required_text("--out", arguments->out, "Folder of what is written; finished runs of it are not run again",
                        "DIR");
  options.integer("--jobs", arguments->jobs, {1, 256}, "Runs side by side; one where times are measured");
  options.text("--part", arguments->part,
               "Only each Nth run from the Ith on (from 0), into the same folder: for several machines that share it",
               "I/N");
  options.json(arguments->json);
  options.used_only({"--json"}, "with --part, which makes no document",
                    [arguments] { return arguments->part.empty(); });
  options.examples({"experiments/studies/verifiers.toml --out out/verifiers",
                    "experiments/studies/slots.toml --out out/slots --jobs 2"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
