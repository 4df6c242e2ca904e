#include "studies/table_file.hpp"

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
  CHECK(to_latex(kTable, "50 % of it") ==
        "% Needs \\usepackage{booktabs}.\n\\begin{table}\n\\centering\n\\caption{50 \\% of it}\n\\begin{tabular}{lrr}\n"
        "\\toprule\nname & speed\\_up & count \\\\\n\\midrule\n"
        "n-gram \\& 50 \\%\\_x & 0.3333 & -3 \\\\\na|b\\textbackslash{}c & -- & 12 \\\\\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n");
}

TEST_CASE("a table becomes Markdown in which no cell ends early") {
  CHECK(to_markdown(kTable, "it") ==
        "it\n\n| name | speed\\_up | count |\n|---|--:|--:|\n| n-gram & 50 %\\_x | 0.3333 | -3 |\n"
        "| a\\|b\\\\c | -- | 12 |\n");
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
