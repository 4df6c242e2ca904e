// Tables as files for papers: LaTeX (booktabs), Markdown and CSV.
#pragma once

#include <string>

#include "studies/table.hpp"

namespace draftproof {

// LaTeX and Markdown give numbers with four significant digits, "--" for one that is not finite; CSV gives them whole.
std::string to_latex(const Table& table, const std::string& caption);
std::string to_markdown(const Table& table, const std::string& caption);

// Usage error naming `option` where the name does not say what to write: it ends with .tex, .md or .csv.
void require_table_name(const std::string& option, const std::string& path);
// Complete or not at all. Error (input) naming the path when it cannot be written.
void write_table(const std::string& path, const Table& table, const std::string& caption);

}  // namespace draftproof
