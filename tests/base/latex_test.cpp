#include "base/latex.hpp"

#include "tests/support/test.hpp"

namespace {

TEST_CASE("text becomes LaTeX that shows the same characters") {
  CHECK(latex_text("a_b & 50 % #1 $x {y}") == "a\\_b \\& 50 \\% \\#1 \\$x \\{y\\}");
  CHECK(latex_text("\\ ~ ^ < > | \" `") ==
        "\\textbackslash{} \\textasciitilde{} \\textasciicircum{} \\textless{} \\textgreater{} \\textbar{} \\char34{} "
        "\\textasciigrave{}");
  CHECK(latex_text("lab --json ---") == "lab -{}-json -{}-{}-");  // no dashes
  CHECK(latex_text(" the ") == "\\textvisiblespace{}the\\textvisiblespace{}");
  CHECK(latex_text("caf\u00e9 \u2192 \u0394") == "caf\u00e9 \\texttt{U+2192} \\texttt{U+0394}");
  CHECK(latex_text("two\nlines\x1b") == "two lines\\texttt{U+FFFD}");
}

TEST_CASE("numbers and fractions become mathematics") {
  CHECK(latex_number("0.25") == "0.25");
  CHECK(latex_number("-3") == "$-3$");
  CHECK(latex_number("1.2e-07") == "$1.2\\times10^{-7}$");
  CHECK(latex_number("5e+10") == "$5\\times10^{10}$");
  CHECK(latex_fraction("3/4") == "$\\frac{3}{4}$");
  CHECK(latex_fraction("-3/4") == "$-\\frac{3}{4}$");
  CHECK(latex_fraction("1") == "1");
}

TEST_CASE("a comment ends with its line") {
  CHECK(latex_comment("a\nb") == "% a b\n");
}

}  // namespace
