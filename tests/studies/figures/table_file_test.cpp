#include "studies/figures/table_file.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/run_verb.hpp"

namespace draftproof {
namespace {

using Catch::Matchers::Contains;
using testing::check_refused;
using testing::gnuplot_is_here;
using testing::read_whole_file;
using testing::run_draftproof;

const Table kTable{{"name", "speed_up", "count"},
                   {{std::string("n-gram & 50 %_x"), 1.0 / 3.0, std::int64_t{-3}},
                    {std::string("a|b\\c"), std::numeric_limits<double>::infinity(), std::int64_t{12}}}};

TEST_CASE("a table becomes LaTeX with booktabs, and its special characters are escaped") {
  const PaperForm form{.caption = "50 % of it",
                       .label = "it",
                       .command = "draftproof lab --json",
                       .program = "draftproof 1.0 (abc)",
                       .width = PaperWidth::double_column};
  CHECK(to_latex(kTable, form) ==
        "% draftproof 1.0 (abc)\n% draftproof lab --json\n% Needs \\usepackage{booktabs}.\n"
        "\\begin{table*}\n\\centering\\small\n\\caption{50 \\% of it}\n\\label{tab:it}\n"
        "\\begin{tabular}{@{}lrr@{}}\n"
        "\\toprule\nname & speed up & count \\\\\n\\midrule\n"
        "n-gram \\& 50 \\%\\_x & 0.3333 & $-3$ \\\\\na\\textbar{}b\\textbackslash{}c & -- & 12 \\\\\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table*}\n");
}

TEST_CASE("digits stand below digits, and no number is shown as 0 that is none") {
  const Table table{{"[x", "y"}, {{0.5, 1234.5}, {-0.25, 2e-7}, {1e-5, std::string()}, {0.0, 20.0}}};
  const std::string text = to_latex(table, {});
  CHECK_THAT(text, Contains("{}[x & y \\\\"));  // a bracket behind a row's end would be its argument
  CHECK_THAT(text, Contains("\n0.50 & 1234 \\\\\n$-0.25$ & $2.0\\times10^{-7}$ \\\\\n$1.0\\times10^{-5}$ & -- \\\\\n"
                            "0.00 & 20 \\\\\n"));
}

TEST_CASE("a table that its column would not hold is scaled to it") {
  const Table table{{"text"}, {{std::string(60, 'x')}}};
  CHECK_THAT(to_latex(table, {.width = PaperWidth::single_column}),
             Contains("graphicx") && Contains("\\resizebox{\\linewidth}{!}{%\n") && Contains("\\end{tabular}}\n"));
  CHECK_THAT(to_latex(table, {.width = PaperWidth::double_column}), !Contains("\\resizebox"));
}

TEST_CASE("a table becomes Markdown in which no cell ends early") {
  CHECK(to_markdown(kTable, {.caption = "it", .command = "draftproof lab"}) ==
        "it\n\n| name | speed up | count |\n|---|--:|--:|\n| n-gram & 50 %\\_x | 0.3333 | -3 |\n"
        "| a\\|b\\\\c | -- | 12 |\n\ndraftproof lab\n");
}

TEST_CASE("lab, tree and acceptance write tables and figures, and refuse names that say nothing of the form") {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> lab{"lab", "--target", "0.5,0.3,0.2", "--draft", "0.2,0.5,0.3", "--samples", "1000"};
  auto with = [](std::vector<std::string> arguments, const char* option, const std::string& path) {
    arguments.insert(arguments.end(), {option, path});
    return arguments;
  };
  CHECK(run_draftproof(with(lab, "--table", folder.file("lab.tex"))).exit_code == 0);
  CHECK_THAT(read_whole_file(folder.file("lab.tex")), Contains("\\caption{draftproof lab --target 0.5,0.3,0.2") &&
                                                          Contains("\n0 & 0.5 & 0.2 & 0.2 & 1 & 0.5 &"));
  CHECK(run_draftproof({"tree", "--nodes", "3", "--samples", "0", "--table", folder.file("tree.csv")}).exit_code == 0);
  CHECK(run_draftproof({"acceptance", "constant:0.8", "--table", folder.file("a.md")}).exit_code == 0);
  CHECK_THAT(read_whole_file(folder.file("a.md")), Contains("| constant:0.8 |"));
  check_refused(with(lab, "--table", folder.file("lab.txt")), {"--table", ".tex, .md or .csv"});
  check_refused(with(lab, "--figure", folder.file("lab.gif")), {"--figure", ".tex"});
  if (!gnuplot_is_here()) return;
  CHECK(run_draftproof(with(lab, "--figure", folder.file("figure.tex"))).exit_code == 0);
  CHECK_THAT(read_whole_file(folder.file("figure.tex")),
             Contains("\\begin{tikzpicture}") && Contains("{min(p, q)};") && Contains("\\end{tikzpicture}"));
}

}  // namespace
}  // namespace draftproof
