// Writes what a panel shows to files, on a thread of its own: CSV, and the figure by gnuplot.
#pragma once

#include <string>

#include "studies/worker.hpp"

namespace draftproof {

struct ExportRequest {
  std::string path;      // ends with .csv, .svg, .png or .pdf; its folder is made
  std::string contents;  // the rows as CSV, or the script of the figure
};

class Exporter {
 public:
  Exporter();
  void write(ExportRequest request) { worker_.request(std::move(request)); }
  // "written to out/dash/lab.csv", why it could not be, or nothing yet.
  std::string message() const;
  void settle() { worker_.settle(); }

 private:
  Worker<ExportRequest, std::string> worker_;
};

}  // namespace draftproof
