// Files that a study makes of its runs: tables, numbers, the report, and how to do it again.
#pragma once

#include <string>
#include <vector>

#include "cli/shared/command.hpp"
#include "cli/study/runs.hpp"
#include "cli/study/study_file.hpp"
#include "studies/figures/table.hpp"

namespace draftproof {

// LaTeX, Markdown and CSV.
void write_tables(const std::string& name, const Table& table, const std::string& caption, const std::string& command,
                  const StudyFolder& folder);

// Every number of the documents, in SQLite and CSV.
void write_numbers(const Study& study, const std::vector<FinishedRun>& all, const StudyFolder& folder);

// report.html and REPRODUCE.md. tables: of the runs, empty ones included; file: the study's.
void write_report(const Study& study, const std::vector<FinishedRun>& all, const std::vector<Table>& tables,
                  const Table& comparisons, const StudyFolder& folder);
void write_how_to_reproduce(const Study& study, const std::vector<FinishedRun>& all, const std::string& file, int ranks,
                            const StudyFolder& folder, const ProgramContext& context);

}  // namespace draftproof
