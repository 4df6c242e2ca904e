#include "studies/figures/table_file.hpp"

#include "tests/support/test.hpp"

namespace {

using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

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

TEST_CASE("every verb with rows writes them as a table, with its program, commit and command") {
  const TemporaryFolder folder;
  const std::string counts = folder.file("counts.csv");
  const std::string probabilities = folder.file("probabilities.csv");
  write_whole_file(counts, "group,token,count\n0,0,480\n0,1,520\n");
  write_whole_file(probabilities, "group,token,prob\n0,0,0.5\n0,1,0.5\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> verbs{
      {{"lab", "--target", "0.5,0.3,0.2", "--draft", "0.2,0.5,0.3", "--samples", "1000"}, "residual"},
      {{"tree", "--nodes", "3", "--samples", "0"}, "reach"},
      {{"acceptance", "constant:0.8"}, "tokens per step"},
      {{"predict", "--model", "Llama-3.1-8B", "--gpu", "H100", "--drafter", "EAGLE-3", "--batch", "1"}, "speedup"},
      {{"prove", "--verifier", "typical", "--vocab", "2", "-k", "1", "--instances", "2"}, "mean accepted"},
      {{"verifiers"}, "proposal"},
      {{"presets", "gpus"}, "bandwidth gb s"},
      {{"soak", "--trials", "1000"}, "statistic"},
      {{"bugs", "--only", "B38"}, "detector"},
      {{"audit", counts, "--probs", probabilities, "--tv-wanted", "0.2"}, "detectable tv"}};
  for (const auto& [verb, column] : verbs) {
    INFO(verb.front());
    const std::string path = folder.file(verb.front() + ".tex");
    std::vector<std::string> arguments = verb;
    arguments.insert(arguments.end(), {"--table", path, "--paper-width", "double"});
    const ProgramResult result = run_draftproof(arguments);
    INFO(result.err);
    CHECK(result.exit_code <= 1);
    const std::string text = read_whole_file(path);
    CHECK_THAT(text, StartsWith("% draftproof ") && Contains("\n% draftproof " + verb.front()) &&
                         Contains("\\begin{table*}") && Contains("\\label{tab:" + verb.front() + "}") &&
                         Contains(column) && EndsWith("\\end{table*}\n"));
  }
}

TEST_CASE("names that say nothing of the form are refused, and a width that nothing has") {
  const TemporaryFolder folder;
  check_refused({"lab", "--table", folder.file("lab.txt")}, {"--table", ".tex, .md or .csv"});
  check_refused({"lab", "--figure", folder.file("lab.gif")}, {"--figure", ".tex"});
  check_refused({"lab", "--paper-width", "single"}, {"--paper-width", "has no use"});
  check_refused({"presets", "--table", folder.file("all.tex")}, {"--table", "gpus"});
}

// Braces and environments of a .tex in balance, its macros defined in it or of tikz, and no time of day: what its
// compilation needs, as far as it can be seen without TeX.
void check_tikz(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      continue;
    }
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    REQUIRE(depth >= 0);
  }
  CHECK(depth == 0);
  const auto count = [&](const std::string& word) {
    std::size_t n = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  CHECK(count("\\begingroup") == count("\\endgroup"));
  CHECK(count("\\begin{tikzpicture}") == 1);
  CHECK(count("\\end{tikzpicture}") == 1);
  CHECK(count("%% ") == 0);
  for (std::size_t at = text.find("\n\\gp"); at != std::string::npos; at = text.find("\n\\gp", at + 1)) {
    const std::string macro = text.substr(at + 1, text.find_first_of("{#", at) - at - 1);
    INFO(macro);
    CHECK(count("\\def" + macro + "#1") == 1);
  }
}

TEST_CASE("figures as TikZ need no package but tikz, and fit a column") {
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"lab", "--samples", "1000"},
        {"tree", "--nodes", "4", "--samples", "50"},
        {"acceptance", "constant:0.8"},
        {"predict", "--model", "Llama-3.1-8B", "--gpu", "H100", "--drafter", "EAGLE-3", "--batch", "1"}}) {
    INFO(verb.front());
    for (const auto& [width, right_cm] : {std::pair("single", "8.001"), {"double", "16.256"}}) {
      const std::string path = folder.file(verb.front() + width + ".tex");
      std::vector<std::string> arguments = verb;
      arguments.insert(arguments.end(), {"--figure", path, "--paper-width", width});
      const ProgramResult result = run_draftproof(arguments);
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      const std::string text = read_whole_file(path);
      check_tikz(text);
      CHECK_THAT(text, StartsWith("% draftproof ") && Contains(std::string("rectangle (") + right_cm + ","));
    }
  }
}

}  // namespace
