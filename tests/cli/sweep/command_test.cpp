#include <iomanip>

#include "sim/serving/grid.hpp"
#include "tests/support/test.hpp"

namespace {

struct SmallGrid {
  TemporaryFolder folder;
  std::string path = folder.file("grid.toml");

  // requests: how long a point takes.
  explicit SmallGrid(int requests = 200) {
    write_whole_file(folder.file("base.toml"),
                     "acceptance = \"constant:0.8\"\n[linear]\ntarget_ms = 6.0\nrow_us = 21.0\n"
                     "draft_pass_ms = 0.7\n[workload]\nrequests = " +
                         std::to_string(requests) +
                         "\narrivals = { kind = \"poisson\", rate = 8 }\nprompt = 100\noutput = "
                         "{ kind = \"exponential\", mean = 100 }\n[run]\nreplications = 2\n"
                         "[[policy]]\nname = \"off\"\nspeculation = \"off\"\n[[policy]]\n"
                         "name = \"on\"\nspeculation = \"fixed:3\"\n");
    write_whole_file(path,
                     "scenario = \"base.toml\"\n[grid]\n\"workload.arrivals.rate\" = [2, 6.5, 12]\n"
                     "\"policy.1.speculation\" = [\"fixed:2\", \"goodput:max=4\"]\n");
  }

  std::string out(const std::string& name) const { return folder.file(name + ".sqlite"); }
  std::vector<Row> rows(const std::string& name) const {
    const Grid grid(path);
    return RowStore(out(name), grid.identity(), "point", grid.columns()).rows();
  }
  ordered_json sweep(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"sweep", path, "--out", out(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments);
  }
};

// The grid with arrivals and acceptances from files.
struct GridOfFiles : SmallGrid {
  GridOfFiles() {
    std::string scenario = read_whole_file(folder.file("base.toml"));
    const auto replace = [&](const std::string& text, const std::string& by) {
      scenario.replace(scenario.find(text), text.size(), by);
    };
    replace("{ kind = \"poisson\", rate = 8 }", "{ kind = \"recorded\", file = \"arrivals.csv\" }");
    replace("constant:0.8", "replay:" + folder.file("accepted.jsonl"));
    write_whole_file(folder.file("base.toml"), scenario);
    write_arrivals("1");
    write_accepted("2");
  }
  void write_arrivals(const std::string& second) const {
    write_whole_file(folder.file("arrivals.csv"),
                     "arrival_s,prompt_len,output_len\n0,10,20\n" + second + ",10,20\n3,10,20\n");
  }
  void write_accepted(const std::string& first) const {
    write_whole_file(folder.file("accepted.jsonl"), "{\"acc_suffix\": {\"acc_len\": [" + first + ", 1, 3]}}\n");
  }
};

}  // namespace

TEST_CASE("a sweep has a row for each point and policy, the same on any number of threads, resumed or not") {
  const SmallGrid grid;
  CHECK(grid.sweep("one", {"--threads", "1"}).at("points_computed") == 6);
  const std::vector<Row> rows = grid.rows("one");
  REQUIRE(rows.size() == 12);
  // The last key changes fastest: policy, rate, speculation.
  CHECK(rows[0][0] == Cell("off"));
  CHECK(rows[0][1] == Cell(std::int64_t{2}));
  CHECK(rows[2][2] == Cell("goodput:max=4"));
  CHECK(rows[4][1] == Cell(6.5));
  CHECK(std::get<double>(rows[1][3]) > 0.0);

  CHECK(grid.sweep("two", {"--threads", "3"}).at("threads") == 3);
  CHECK(grid.rows("two") == rows);

  CHECK(grid.sweep("three", {"--points", "2"}).at("points_computed") == 2);
  CHECK(grid.rows("three").size() == 4);
  const ordered_json rest = grid.sweep("three", {});
  CHECK(rest.at("points_there") == 2);
  CHECK(rest.at("points_computed") == 4);
  CHECK(grid.rows("three") == rows);
}

TEST_CASE("a sweep prints its rows and writes all of their columns as a table") {
  const SmallGrid grid;
  const std::string csv = grid.folder.file("sweep.csv");
  const ProgramResult run = run_draftproof({"sweep", grid.path, "--out", grid.out("table"), "--table", csv});
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.starts_with("policy  "));
  CHECK(std::ranges::count(run.out, '\n') == 1 + 12 + 1);  // a header, two policies at six points, a summary
  const std::string table = read_whole_file(csv);
  CHECK(std::ranges::count(table, '\n') >= 13);
  const std::vector<Row> rows = grid.rows("table");
  const auto columns = Grid(grid.path).columns();
  const auto at = static_cast<std::size_t>(std::ranges::find(columns, "throughput") - columns.begin());
  std::ostringstream first;
  first << std::setprecision(4) << std::get<double>(rows.front()[at]);
  CHECK(run.out.find(first.str()) != std::string::npos);
  CHECK(run_draftproof({"sweep", grid.path, "--out", grid.out("table"), "--table", "rows.txt"}).exit_code == 2);
}

TEST_CASE("a sweep is not resumed with other contents of a file that its points come from") {
  const GridOfFiles grid;
  CHECK(grid.sweep("rows", {"--points", "2"}).at("points_computed") == 2);
  const std::string rows = read_whole_file(grid.out("rows"));
  const auto check_changed = [&] {
    check_refused({"sweep", grid.path, "--out", grid.out("rows")},
                  {"rows.sqlite: it holds the rows of something else, or of files that have changed since; "});
    CHECK(read_whole_file(grid.out("rows")) == rows);
  };
  grid.write_arrivals("2");
  check_changed();
  grid.write_arrivals("1");
  grid.write_accepted("1");
  check_changed();
  grid.write_accepted("2");
  CHECK(grid.sweep("rows", {}).at("points_there") == 2);
}

TEST_CASE("a point of a grid whose files have changed since it was read is not run") {
  const GridOfFiles files;
  const Grid grid(files.path);
  CHECK(grid.run(0).size() == 2);
  CHECK(Grid(files.path).identity() == grid.identity());
  files.write_arrivals("2.5");
  CHECK_THAT(error_of(ErrorKind::input, [&] { grid.run(1); }),
             Contains("arrivals.csv: has changed since this command first read it"));
  files.write_arrivals("1");
  CHECK(grid.run(1).size() == 2);
}

TEST_CASE("a sweep that is killed keeps its finished points, and the next run computes the rest") {
  const SmallGrid grid(4000);
  grid.sweep("whole", {});
  // Killed without a chance to tidy up, as soon as rows of the second point are in the file: those of the first are
  // committed then, and theirs may not be.
  const std::string script =
      "\"$0\" sweep \"$1\" --out \"$2\" --threads 1 & pid=$!; i=0; "
      "while [ \"$(head -c 30000 \"$2\" 2>/dev/null | grep -c goodput:)\" = 0 ] && [ $i -lt 600 ]; "
      "do i=$((i+1)); sleep 0.01; done; kill -9 $pid; wait $pid";
  run_command({"sh", "-c", script, std::filesystem::path(DRAFTPROOF_PROGRAM).string(), grid.path, grid.out("killed")});
  const std::size_t kept = grid.rows("killed").size();
  CHECK(kept >= 2);
  CHECK(kept < 12);
  CHECK(kept % 2 == 0);  // both policies of a point, or none
  const ordered_json rest = grid.sweep("killed", {});
  CHECK(rest.at("points_there") == kept / 2);
  CHECK(grid.rows("killed") == grid.rows("whole"));
}

TEST_CASE("a sweep has the same rows with 1, 2 and 4 ranks") {
  const SmallGrid grid;
  grid.sweep("alone", {"--threads", "1"});
  for (const char* const ranks : {"2", "4"}) {
    const auto result = run_with_mpi(ranks, {"sweep", grid.path, "--out", grid.out(ranks), "--json"});
    if (!result) return;
    INFO(result->err);
    REQUIRE(result->exit_code == 0);
    CHECK(ordered_json::parse(result->out).at("ranks") == std::stoi(ranks));
    CHECK(grid.rows(ranks) == grid.rows("alone"));
  }
}

TEST_CASE("a point that cannot run is named, and a sweep without a finished point leaves no file") {
  const SmallGrid grid;
  write_whole_file(grid.path, "scenario = \"base.toml\"\n[grid]\n\"workload.prompt\" = [1000000]\n");
  check_refused({"sweep", grid.path, "--out", grid.out("rows")}, {"error: point 0 (workload.prompt = 1000000): "});
  CHECK_FALSE(std::filesystem::exists(grid.out("rows")));
}

TEST_CASE("a sweep refuses rows of points that its grid has not") {
  const SmallGrid small;
  small.sweep("rows", {"--points", "1"});
  const Grid grid(small.path);
  for (const std::int64_t point : {6, -1}) {
    RowStore(small.out("rows"), grid.identity(), "point", grid.columns()).add(point, {Row(grid.columns().size())});
    check_refused({"sweep", small.path, "--out", small.out("rows")},
                  {"rows.sqlite: it has rows of point " + std::to_string(point) + "; expected points from 0 to 5"});
  }
}

TEST_CASE("a sweep refuses the file of another grid, and a grid with a fault by its line") {
  const SmallGrid grid;
  grid.sweep("rows", {"--points", "1"});
  const std::string head = "scenario = \"base.toml\"\n[grid]\n";
  for (const auto& [line, error] :
       {std::pair("\"workload.arrivals.rate\" = [3]\n", "it holds the rows of something else"),
        {"\"workload.arrivals.rat\" = [3]\n", "grid.toml:3: grid.workload.arrivals.rat[0]: unknown"},
        {"\"workload.arrivals.rate\" = [3, -1]\n", "grid.toml:3: grid.workload.arrivals.rate[1]: it is -1"},
        {"workload.arrivals.rate = [3]\n", "keys with points in quotes"}}) {
    write_whole_file(grid.path, head + line);
    check_refused({"sweep", grid.path, "--out", grid.out("rows")}, {error});
  }
}
