// The demo for scripts: its JSON document and the files of its output folder.
#pragma once

#include <string>
#include <vector>

#include "base/files/run_folder.hpp"
#include "cli/demo/run.hpp"
#include "cli/shared/json_document.hpp"

namespace draftproof {

// Files that were written, and those that could not be.
struct DemoFiles {
  std::string result;
  std::string acceptance_csv;
  std::string trace;
  std::string figure;        // empty: gnuplot could not draw it
  std::string figure_error;  // why
};

// A p value as the document has it: its last digits depend on the machine's mathematics library, and mean nothing.
double six_digits(double value);

// How many tokens of a text came about in each way.
Json origin_counts_json(const Generation& generation);

// The folder in which the files of a demo appear together. Errors naming it (input), or --out (usage) where a file of
// the demo would replace one of the corpus.
RunFolder open_demo_folder(const DemoOptions& options);

// Writes everything but result.json. Errors (input): a file that cannot be written. A figure that gnuplot does not draw
// is no error; figure_error says what was wrong. The paths are those that the files have after the commit.
DemoFiles write_demo_files(const DemoOptions& options, const DemoRun& run, const RunFolder& folder);

// Writes the document as result.json, and puts all files in their place.
void finish_demo_files(const Json& document, RunFolder& folder);

// language_model: of the first part; null where there was none.
Json demo_json(const DemoOptions& options, const DemoRun& run, const Json& language_model, const DemoFiles& files,
               const std::vector<std::string>& arguments);

}  // namespace draftproof
