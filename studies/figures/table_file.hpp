// Tables as files for papers: LaTeX (booktabs), Markdown and CSV. Every table that the project writes for a paper is
// written here.
//
//   write_table("speedup.tex", {{"drafter", "speedup"}, {{std::string("suffix"), 1.42}}},
//               {.caption = "Speedup by drafter", .label = "speedup", .command = "draftproof study a.toml",
//                .program = "draftproof 0.4.0 (3d1f2a)", .width = PaperWidth::single_column});
#pragma once

#include <string>

#include "studies/figures/paper_form.hpp"
#include "studies/figures/table.hpp"

namespace draftproof {

// In LaTeX and Markdown a column of numbers stands at the right, with as many decimals for all as four digits of the
// largest need, so that digits stand below digits; numbers that these decimals would show as 0 have an exponent; "--"
// stands for one that is not finite and for an empty text in a column of numbers. Underscores of column names are shown
// as spaces. CSV gives numbers and names whole.
//
// LaTeX: program and command are comments; a table that its column would not hold is scaled to it (graphicx); `table*`
// for a double_column. Internal error for a row of another length than the header.
std::string to_latex(const Table& table, const PaperForm& form);
// The caption stands above the table, command and program below it.
std::string to_markdown(const Table& table, const PaperForm& form);

// Usage error naming `option` where the name does not say what to write: it ends with .tex, .md or .csv.
void require_table_name(const std::string& option, const std::string& path);
// Complete or not at all. Error (input) naming the path when it cannot be written.
void write_table(const std::string& path, const Table& table, const PaperForm& form);

}  // namespace draftproof
