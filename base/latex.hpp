// Text and numbers as LaTeX, for tables, figures and proofs. What is written compiles without further packages, in
// either of the encodings OT1 and T1.
#pragma once

#include <string>
#include <string_view>

namespace draftproof {

// One line of text. Special characters are escaped, "--" is no dash, spaces at the ends are seen, and characters that
// pdflatex may not have stand as U+2192.
std::string latex_text(std::string_view text);

// A number as printf or JSON writes it: 0.25, $-3$, $1.2\times10^{-7}$.
std::string latex_number(std::string_view text);

// "3/4" as $\frac{3}{4}$; whole numbers as they are.
std::string latex_fraction(std::string_view text);

// A comment, which ends with its line.
std::string latex_comment(std::string_view text);

}  // namespace draftproof
