// Form of a table or figure for a paper, beside its rows and curves.
#pragma once

#include <string>

namespace draftproof {

// Width on a page. `screen`: none of a paper's.
enum class PaperWidth { screen, single_column, double_column };

// Those of LaTeX's article in two columns, a little less than most conferences of the field have.
inline constexpr double inches_of(PaperWidth width) {
  return width == PaperWidth::double_column ? 6.4 : 3.15;
}

struct PaperForm {
  std::string caption{};  // plain text, escaped where it is written; empty: none
  std::string label{};    // "lab" makes \label{tab:lab}; empty: none
  std::string command{};  // that made it, as shell_command() writes it; empty: not stated
  std::string program{};  // "draftproof 0.4.0 (3d1f2a...)"; empty: not stated
  PaperWidth width = PaperWidth::screen;
};

}  // namespace draftproof
