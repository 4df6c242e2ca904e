// What a table or figure for a paper has beside its rows and curves.
#pragma once

#include <string>

namespace draftproof {

// Widths on a page with two columns, 3.25 and 6.75 inches, as most conferences of the field have them. `screen`: none.
enum class PaperWidth { screen, single_column, double_column };

struct PaperForm {
  std::string caption;  // plain text, escaped where it is written; empty: none
  std::string label;    // "lab" makes \label{tab:lab}; empty: none
  std::string command;  // that made it, as shell_command() writes it; empty: not stated
  std::string program;  // "draftproof 0.4.0 (3d1f2a...)"; empty: not stated
  PaperWidth width = PaperWidth::screen;
};

}  // namespace draftproof
