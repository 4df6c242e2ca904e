// A study as a file: commands with every combination of some values, the tables and figures that are wanted of each,
// and comparisons of pairs. docs/studies.md describes it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace draftproof {

// One command of this program. Its document is what it prints with --json.
struct StudyRun {
  std::string where;  // FILE:LINE, for messages
  std::string name;   // of its files
  std::vector<std::string> arguments;
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
  std::string quantity, per;  // keys of an item: quantity / per; per empty: quantity alone
};

struct Study {
  std::string title;
  std::string text;  // a paragraph for the report
  std::vector<StudyRun> runs;
  std::vector<StudyComparison> comparisons;
};

// Errors (input) at FILE:LINE: unknown keys, two runs of one name, a name that is no file name, a comparison of a run
// that there is not, options that a study sets itself (--json, --table, --figure).
Study read_study(const std::string& path);

}  // namespace draftproof
