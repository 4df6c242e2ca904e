// draftproof study: runs the commands that a file names, and writes what a paper takes: documents, rows in SQLite and
// CSV, tables, figures, paired comparisons, a report, and how to do it again.
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/temporary.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/ranks.hpp"
#include "cli/shared/terminal.hpp"
#include "cli/study/comparisons.hpp"
#include "cli/study/report.hpp"
#include "cli/study/runs.hpp"
#include "cli/study/study_file.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

struct StudyArguments {
  std::string file;
  std::string out;
  int jobs = 1;
  std::string pilot;
  std::string part;  // "I/N": each Nth run from the Ith on; empty: all, and what is made of them
  bool check = false;
  bool init = false;
  bool json = false;
};

constexpr const char* kFirstStudy = R"(title = "Verifiers with one draft token and with two"
text = "How many more drafts does a verifier accept, as fractions over all outcomes?"

[[run]]
name = "k{k}"                                          # of its files
command = "prove --vocab 2 -k {k} --instances 2"       # any verb but study and dash; paths are this file's
over = { k = [1, 2] }                                  # every combination, in the braces of name and command
rows = "/proofs"                                       # list of its document that is a table
columns = ["verifier", "lossless", "mean_accepted"]

[[compare]]
title = "accepted drafts, two over one"
a = "k2:/proofs"                                       # RUN:/path/to/a/list; pairs are its items
b = "k1:/proofs"
quantity = "mean_accepted"                             # of every item; with per = "KEY" divided by that
)";

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

std::function<void(const StudyRun&)> look_into(const Study& study, const StudyFolder& folder) {
  return [&](const StudyRun& run) { require_what_is_taken(study, run, folder.read(run).document); };
}

// Before the first run: what the options of a command refuse. Returns which runs are there.
std::vector<bool> check_runs(const Study& study, const std::vector<std::size_t>& runs, const StudyFolder& folder) {
  std::vector<bool> there(study.runs.size(), false);
  for (const std::size_t run : runs) {
    there[run] = folder.has(study.runs[run]);
    if (there[run]) {
      look_into(study, folder)(study.runs[run]);
    } else {
      folder.check(study.runs[run]);
    }
  }
  return there;
}

// Rank 0: finishes the runs with the other ranks. Which of them were there before, in the order of the study.
std::vector<bool> finish_with_ranks(const Study& study, const std::vector<std::size_t>& runs, const StudyFolder& folder,
                                    const std::string& out, int jobs, Ranks& ranks, std::set<std::string>& warnings) {
  std::vector<bool> there(study.runs.size(), true);
  Progress progress("study", runs.size(), "runs",
                    "finished runs are in " + printable_line(out) + "; the same command goes on with the others");
  OwnPoints points({runs.begin(), runs.end()}, [&](std::size_t run, const std::vector<Row>& rows) {
    there[run] = std::get<std::int64_t>(rows.at(0).at(0)) != 0;
    progress.say("study: " + study.runs[run].name + (there[run] ? " was there" : " done"));
    progress.advance();
  });
  std::exception_ptr error;
  std::jthread own([&] {
    try {
      finish_runs(study, points, folder, jobs, warnings, look_into(study, folder), [&] { points.give_up(); });
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
std::optional<std::vector<FinishedRun>> all_runs(const StudyArguments& arguments, const Study& study,
                                                 const StudyFolder& folder, Ranks& ranks,
                                                 std::set<std::string>& warnings) {
  const std::vector<std::size_t> runs = runs_of_part(study, arguments.part);
  if (ranks.rank() != 0) {
    finish_runs(study, *ranks.points_of_rank_0(), folder, arguments.jobs, warnings, look_into(study, folder), [] {});
    return std::nullopt;
  }
  check_runs(study, runs, folder);
  const std::vector<bool> there =
      finish_with_ranks(study, runs, folder, arguments.out, arguments.jobs, ranks, warnings);
  if (!arguments.part.empty()) {
    std::cout << runs.size() << " of " << study.runs.size() << " runs are in " << printable_line(arguments.out)
              << "; the same command without --part makes tables, figures and the report of all\n";
    return std::nullopt;
  }
  std::vector<FinishedRun> all(study.runs.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = folder.read(study.runs[i]);
    all[i].was_there = there[i];
  }
  return all;
}

void check(const StudyArguments& arguments, ProgramContext& context) {
  const Study study = read_study(arguments.file);
  std::optional<Temporary> nothing;  // in place of a folder that is not there yet
  if (!fs::is_directory(arguments.out)) nothing.emplace(Temporary::Kind::folder, fs::temp_directory_path(), "--check");
  const StudyFolder folder(nothing ? nothing->path() : arguments.out, arguments.file);
  const std::vector<bool> there = check_runs(study, runs_of_part(study, arguments.part), folder);
  const auto number_there = std::ranges::count(there, true);
  const std::vector<std::string> planned = planned_pairs(study, arguments.pilot);
  if (!arguments.json) {
    for (const std::string& sentence : planned) std::cout << printable_line(sentence) << '\n';
    std::cout
        << counted_noun(study.runs.size(), "run") << " and " << counted_noun(study.comparisons.size(), "comparison")
        << "; " << number_there
        << " runs are there, and their documents have what is taken of them; the options of the others are right, and "
           "what their columns and quantities name shows when they run\n";
    return;
  }
  Json document = json_document(context.arguments);
  document["title"] = study.title;
  document["runs"] = Json::array();
  for (std::size_t i = 0; i < there.size(); ++i)
    document["runs"].push_back({{"name", study.runs[i].name},
                                {"command", shell_command(study.runs[i].arguments)},
                                {"was_there", bool{there[i]}}});
  document["planned"] = planned;
  print_json(document);
}

void write_first_study(const StudyArguments& arguments, ProgramContext& context) {
  if (fs::exists(arguments.file))
    throw usage_error("--init", in_quotes(arguments.file) + " is there; expected the name of a new file");
  AtomicFile file(arguments.file);
  file.stream() << kFirstStudy;
  file.commit();
  if (!arguments.json) {
    std::cout << "written to " << printable_line(arguments.file)
              << "; next: " << shell_command({"draftproof", "study", arguments.file, "--out", "out/first_study"})
              << "\n";
    return;
  }
  Json document = json_document(context.arguments);
  document["file"] = arguments.file;
  print_json(document);
}

// Their forest plot, or none of a former study.
void draw_comparisons(const Table& comparisons, const StudyFolder& folder, const ProgramContext& context) {
  for (const FigureForm& form : kFigureForms) fs::remove(folder.figure(std::string("comparisons") + form.suffix));
  if (comparisons.rows.empty()) return;
  FigureOptions options;
  options.height_px = 140 + 60 * static_cast<int>(comparisons.rows.size());
  try {
    for (const FigureForm& form : kFigureForms) {
      Artefacts artefacts;
      artefacts.figure = folder.figure(std::string("comparisons") + form.suffix).string();
      artefacts.width = form.width;
      write_figure_of(
          artefacts, context, [&] { return forest_plot(comparisons); }, options);
    }
  } catch (const Error& error) {
    print_message("warning", std::string("the figure of the comparisons is missing: ") + error.what());
  }
}

void run(const StudyArguments& arguments, ProgramContext& context) {
  if (arguments.init) return write_first_study(arguments, context);
  if (arguments.check) return check(arguments, context);
  if (arguments.out.empty()) throw usage_error("--out", "is missing; expected the folder of what is written");
  Ranks ranks;
  Study study;
  std::set<std::string> warnings;
  std::optional<StudyFolder> own;
  std::optional<std::vector<FinishedRun>> finished;
  try {
    study = read_study(arguments.file);
    own.emplace(arguments.out, arguments.file);
    if (ranks.rank() == 0) own->lock(!arguments.part.empty());
    if (ranks.rank() == 0)
      for (const std::string& sentence : planned_pairs(study, arguments.pilot)) print_message("study", sentence);
    finished = all_runs(arguments, study, *own, ranks, warnings);
  } catch (const Error& error) {
    ranks.end_all(error);
    throw;
  }
  for (const std::string& warning : warnings) print_message("warning", "a figure is missing: " + warning);
  if (!finished) return;
  const std::vector<FinishedRun>& all = *finished;
  const StudyFolder& folder = *own;
  // Remove those of a former study that had some.
  for (const char* suffix : {".tex", ".md", ".csv"}) fs::remove(folder.table(std::string("comparisons") + suffix));
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
  draw_comparisons(comparisons, folder, context);
  write_numbers(study, all, folder);
  write_report(study, all, tables, comparisons, folder);
  write_how_to_reproduce(study, all, arguments.file, ranks.size(), folder, context);
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document["title"] = study.title;
    document["out"] = arguments.out;
    document["runs"] = Json::array();
    for (std::size_t i = 0; i < all.size(); ++i)
      document["runs"].push_back({{"name", study.runs[i].name},
                                  {"command", shell_command(study.runs[i].arguments)},
                                  {"exit_code", all[i].key.exit_code},
                                  {"was_there", all[i].was_there},
                                  {"measured", all[i].key.measured},
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
  options.required_text("file", arguments->file, "Runs and comparisons (docs/studies.md)", "STUDY.toml");
  options.text("--out", arguments->out, "Folder of what is written; finished runs of it are not run again", "DIR");
  options.integer("--threads", arguments->jobs, {1, 256}, "Runs side by side; one where times are measured");
  options.text("--part", arguments->part,
               "Only each Nth run from the Ith on (from 0), into the same folder: for several machines that share it",
               "I/N");
  options.text("--pilot", arguments->pilot,
               "Folder of a small study with runs of the same names: by its spread, how many pairs the differences "
               "that are wished (detect in the file) need is said before the first run",
               "DIR");
  options.flag("--check", arguments->check,
               "Run nothing: say what is wrong in the file, in the options of its commands, "
               "and in what is taken of runs that are there");
  options.flag("--init", arguments->init, "Write a file to begin with");
  options.json(arguments->json);
  options.used_only({"--json"}, "with --part, which makes no document",
                    [arguments] { return arguments->part.empty() || arguments->check; });
  options.used_only({"--out", "--threads", "--part", "--pilot", "--check"}, "with --init",
                    [arguments] { return !arguments->init; });
  options.examples({"first.toml --init", "first.toml --check", "experiments/studies/verifiers.toml --out out/verifiers",
                    "experiments/studies/slots.toml --out out/slots --threads 2"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
