// A study as a file: commands with every combination of some values, the tables and figures that are wanted of each,
// and comparisons of pairs. docs/studies.md describes it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace draftproof {

// Files that a figure becomes: for a screen, and for one column and for two.
struct FigureForm {
  const char* suffix;
  const char* width;
};
inline constexpr std::array<FigureForm, 5> kFigureForms{
    {{".svg", "screen"}, {".pdf", "single"}, {"-double.pdf", "double"}, {".tex", "single"}, {"-double.tex", "double"}}};

// One command of this program. Its document is what it prints with --json.
struct StudyRun {
  std::string where;  // FILE:LINE, for messages
  std::string name;   // of its files
  std::vector<std::string> arguments;
  std::optional<std::size_t> out;    // argument with the value of --out, where the command says one
  std::string rows;                  // JSON pointer to the list that is its table; empty: none
  std::vector<std::string> columns;  // keys of these rows, paths with slashes
  bool figure = false;               // the command takes --figure
};

// A list of a run's document. "/rows/*/requests" are the requests of all rows, one row behind the other; of those rows
// alone whose keys have these values, where some are said.
struct StudyItems {
  std::string run;      // its name
  std::string pointer;  // JSON pointer with at most one star
  std::vector<std::pair<std::string, std::string>> only;
};

// A quantity of every item of a list, in two runs of the same items.
struct StudyComparison {
  std::string where;
  std::string title;
  StudyItems a, b;
  std::string quantity, per;     // keys of an item: quantity / per; per empty: quantity alone
  std::optional<double> detect;  // a true difference that should show
  std::optional<double> spread;  // of the differences of pairs, where no pilot says it: their standard deviation
};

struct Study {
  std::string title;
  std::string text;  // a paragraph for the report
  std::vector<StudyRun> runs;
  std::vector<StudyComparison> comparisons;
};

// Errors (input) at FILE:LINE: unknown keys, two runs of one name, a name that is no file name, two runs that would
// write one file, a comparison of an absent run, options that a study sets itself (--json, --table, --figure).
Study read_study(const std::string& path);

}  // namespace draftproof
