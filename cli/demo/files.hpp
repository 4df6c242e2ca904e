// The demo for scripts: its JSON document and the files of its output folder.
#pragma once

#include <string>
#include <vector>

#include "cli/demo/run.hpp"
#include "cli/shared/json_document.hpp"

namespace draftproof {

// What was written, and what could not be.
struct DemoFiles {
  std::string result;
  std::string acceptance_csv;
  std::string trace;
  std::string figure;        // empty: gnuplot could not draw it
  std::string figure_error;  // why
};

// Creates the folder. Error (input) naming it.
void create_output_folder(const std::string& folder);

// Writes everything but result.json into the folder. Errors (input): a file that cannot be written. A figure that
// gnuplot does not draw is no error; figure_error says what was wrong.
DemoFiles write_demo_files(const DemoOptions& options, const DemoRun& run);

Json demo_json(const DemoOptions& options, const DemoRun& run, const DemoFiles& files,
               const std::vector<std::string>& arguments);

}  // namespace draftproof
