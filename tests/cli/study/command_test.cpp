// `draftproof study` on commands of less than a second.
#include <fcntl.h>

#include "base/files/descriptor.hpp"
#include "cli/study/comparisons.hpp"
#include "tests/engine/tokenizer/tiny_tokenizer.hpp"
#include "tests/engine/weights/tiny_llama.hpp"
#include "tests/support/test.hpp"

namespace {

namespace fs = std::filesystem;

struct SmallStudy {
  TemporaryFolder folder;
  std::string path = folder.file("study.toml");
  std::string out = folder.file("out");

  SmallStudy() {
    std::string prompts;
    for (const char* prompt : {"This program is free software and you may", "You should have received a copy of the",
                               "Permission is hereby granted, free of", "The software is provided as is without"})
      prompts += ordered_json{{"work", "prose"}, {"prompt", prompt}}.dump() + "\n";
    write_whole_file(folder.file("prompts.jsonl"), prompts);
    write("");
  }
  void write(const std::string& more) const {
    write_whole_file(path,
                     "title = \"Small & <quick>\"\n[[run]]\nname = \"k{k}\"\ncommand = \"speculate --model ngram:3 "
                     "--prompts " +
                         folder.file("prompts.jsonl") +
                         " --drafters suffix,prompt_lookup -k {k} --temperatures 0 --max-tokens 24 --out " +
                         folder.file("speculate") +
                         "_{k}\"\nover = { k = [2, 4] }\nrows = \"/rows\"\n"
                         "columns = [\"drafter\", \"k\", \"tokens_per_step\"]\n[[run]]\nname = \"proof\"\n"
                         "command = \"prove --verifier typical --vocab 2 -k 1\"\n" +
                         more);
  }
  ordered_json run(int exit_code = 0) const { return json_of({"study", path, "--out", out}, exit_code); }
};

const std::string kCompare =
    "[[compare]]\ntitle = \"four over two\"\na = { items = \"k4:/rows/*/requests\", drafter = \"suffix\" }\n"
    "b = { items = \"k2:/rows/*/requests\", drafter = \"suffix\" }\nquantity = \"tokens\"\nper = \"steps\"\n";

}  // namespace

TEST_CASE("a study runs its commands once, compares pairs, and writes what a paper takes") {
  const SmallStudy study;
  study.write(kCompare);
  const ordered_json first = study.run();
  REQUIRE(first.at("runs").size() == 3);
  CHECK(first.at("runs")[2].at("exit_code") == 0);  // a lossy rule is refuted, as it should be
  for (const ordered_json& run : first.at("runs")) CHECK(run.at("was_there") == false);
  for (const char* name : {"results.sqlite", "results.csv", "report.html", "REPRODUCE.md", "tables/k2.tex",
                           "tables/k4.md", "tables/comparisons.csv", "runs/proof.json"})
    CHECK(fs::is_regular_file(study.out + "/" + name));
  const std::string report = read_whole_file(study.out + "/report.html");
  CHECK(report.find("Small &amp; &lt;quick&gt;") != std::string::npos);
  CHECK(report.find("src=") == std::string::npos);  // nothing from elsewhere
  CHECK(read_whole_file(study.out + "/REPRODUCE.md").find("prove --verifier typical") != std::string::npos);

  // The comparison's means are those of the documents.
  const auto document = ordered_json::parse(read_whole_file(study.out + "/runs/k4.json"));
  double mean = 0.0;
  int pairs = 0;
  for (const ordered_json& row : document.at("rows"))
    if (row.at("drafter") == "suffix")
      for (const ordered_json& request : row.at("requests")) {
        mean += request.at("tokens").get<double>() / request.at("steps").get<double>();
        ++pairs;
      }
  const ordered_json& comparison = first.at("comparisons").at(0);
  CHECK(comparison.at("pairs") == pairs);
  CHECK(comparison.at("a").get<double>() == Approx(mean / pairs));
  CHECK(comparison.at("difference").get<double>() ==
        Approx(comparison.at("a").get<double>() - comparison.at("b").get<double>()));

  const std::string csv = read_whole_file(study.out + "/tables/k4.csv");
  const ordered_json second = study.run();
  for (const ordered_json& run : second.at("runs")) CHECK(run.at("was_there") == true);
  CHECK(read_whole_file(study.out + "/tables/k4.csv") == csv);
  // From nothing, in another folder: the same bytes where no times are.
  fs::remove_all(study.folder.file("speculate_2"));
  fs::remove_all(study.folder.file("speculate_4"));
  json_of({"study", study.path, "--out", study.folder.file("again")});
  CHECK(read_whole_file(study.folder.file("again") + "/tables/k4.csv") == csv);
  CHECK(read_whole_file(study.folder.file("again") + "/tables/comparisons.csv") ==
        read_whole_file(study.out + "/tables/comparisons.csv"));
  CHECK(read_whole_file(study.out + "/REPRODUCE.md").find("* input: " + study.folder.file("prompts.jsonl") + " ") !=
        std::string::npos);
  // A file that a command names has changed: that command runs again.
  write_whole_file(study.folder.file("prompts.jsonl"), read_whole_file(study.folder.file("prompts.jsonl")) +
                                                           "{\"work\": \"prose\", \"prompt\": \"In no event\"}\n");
  fs::remove_all(study.folder.file("speculate_2"));
  fs::remove_all(study.folder.file("speculate_4"));
  const ordered_json third = study.run();
  CHECK(third.at("runs")[0].at("was_there") == false);
  CHECK(third.at("runs")[2].at("was_there") == true);
}

TEST_CASE("a run of a study reads the file that an earlier one wrote") {
  const TemporaryFolder folder;
  const std::string path = folder.file("study.toml");
  write_whole_file(path,
                   "title = \"t\"\n[[run]]\nname = \"steps\"\ncommand = \"generate --model ngram:3 --prompt 'This "
                   "program is free' --drafter ngram:2 -k 2 --policy fixed:2 --temperature 1 --max-tokens 24 --trace "
                   "{files}/steps/t.safetensors\"\n[[run]]\nname = \"rules\"\ncommand = \"verify "
                   "{files}/steps/t.safetensors --lossy\"\nrows = \"/lossy\"\n"
                   "columns = [\"verifier\", \"accepted_per_step\", \"distance\"]\n");
  const ordered_json first = json_of({"study", path, "--out", folder.file("out")});
  CHECK(first.at("runs").size() == 2);
  const std::string table = read_whole_file(folder.file("out") + "/tables/rules.csv");
  CHECK(table.find("\nensemble:weight=0.7,") != std::string::npos);
  for (const ordered_json& run : json_of({"study", path, "--out", folder.file("out")}).at("runs"))
    CHECK(run.at("was_there") == true);
}

TEST_CASE("a run is made again when anything that its command read is another, by content") {
  const TemporaryFolder folder, model;
  TinyLlama tiny;
  tiny.vocab = 48;
  tiny.write_folder(model, 2);
  write_whole_file(model.file("tokenizer.json"), TinyTokenizer(48).json());
  write_whole_file(folder.file("trace.csv"), "arrival_s,prompt_len,output_len\n0,10,20\n1,10,20\n");
  write_whole_file(folder.file("s.toml"),
                   "acceptance = \"constant:0.7\"\n[linear]\ntarget_ms = 6.0\nrow_us = 21.0\ndraft_pass_ms = 0.7\n"
                   "[workload]\nrequests = 4\narrivals = { kind = \"recorded\", file = \"trace.csv\" }\n"
                   "prompt = { kind = \"recorded\" }\noutput = { kind = \"recorded\" }\n"
                   "[[policy]]\nname = \"off\"\nspeculation = \"off\"\n");
  write_whole_file(folder.file("study.toml"),
                   "title = \"t\"\n[[run]]\nname = \"served\"\ncommand = \"sim s.toml\"\n"
                   "[[run]]\nname = \"model\"\ncommand = \"model " +
                       model.path() + "\"\n");
  const auto there = [&] {
    const ordered_json document = json_of({"study", folder.file("study.toml"), "--out", folder.file("out")});
    return std::pair<bool, bool>(document.at("runs")[0].at("was_there"), document.at("runs")[1].at("was_there"));
  };
  const auto document = [&](const std::string& name) {
    return ordered_json::parse(read_whole_file(folder.file("out/runs/" + name + ".json")));
  };
  CHECK(there() == std::pair(false, false));
  CHECK(there() == std::pair(true, true));
  CHECK(document("served").at("trace").at("seconds") == 1.0);
  // A file that the scenario names, which the command does not.
  write_whole_file(folder.file("trace.csv"), "arrival_s,prompt_len,output_len\n0,10,20\n3,10,20\n");
  CHECK(there() == std::pair(false, true));
  CHECK(document("served").at("trace").at("seconds") == 3.0);
  // New weights in a folder, of the same size; then a file more in it.
  ++tiny.seed;
  tiny.write_folder(model, 2);
  CHECK(there() == std::pair(true, false));
  CHECK(there() == std::pair(true, true));
  write_whole_file(model.file("tokenizer.model.old"), "x");
  CHECK(there() == std::pair(true, false));
  // A document that somebody has changed is not the run's.
  write_whole_file(folder.file("out/runs/model.json"), "{}");
  CHECK(there() == std::pair(true, false));
  CHECK(document("model").contains("model"));
  const std::string reproduce = read_whole_file(folder.file("out/REPRODUCE.md"));
  for (const std::string& input : {std::string("trace.csv "), model.file("part-0.safetensors ")})
    CHECK(reproduce.find("* input: ") < reproduce.find(input));
  CHECK(reproduce.find("presets") == std::string::npos);
}

TEST_CASE("each run writes into a folder of its own, and a new study measures anew") {
  const SmallStudy study;
  const std::string command =
      "speculate --model ngram:3 --prompts prompts.jsonl --drafters suffix --temperatures 0 --max-tokens 24";
  write_whole_file(study.path, "title = \"t\"\n[[run]]\nname = \"two\"\ncommand = \"" + command + " -k 2\"\n" +
                                   "[[run]]\nname = \"four\"\ncommand = \"" + command + " -k 4\"\n" +
                                   "[[run]]\nname = \"said\"\ncommand = \"" + command + " -k 4 --out here/too\"\n" +
                                   "[[compare]]\ntitle = \"c\"\na = \"four:/rows/*/requests\"\n"
                                   "b = \"two:/rows/*/requests\"\nquantity = \"tokens\"\nper = \"steps\"\n");
  const ordered_json document = study.run();
  CHECK(document.at("comparisons")[0].at("pairs") == 4);  // as many as there are prompts
  for (const char* const file : {"two", "four", "said/here/too"})
    CHECK(fs::is_regular_file(study.out + "/files/" + file + "/result.json"));
  CHECK(study.folder.file_names().size() == 3);  // out, prompts.jsonl, study.toml: nothing beside the study
  const auto table = ordered_json::parse(read_whole_file(study.out + "/files/two/result.json"));
  CHECK(table.at("rows")[0].at("measured").get<std::string>().ends_with(" UTC"));
  CHECK(document.at("runs")[0].at("measured").get<std::string>().ends_with(" UTC"));
  // A repeated run begins with an empty folder.
  fs::remove(study.out + "/runs/two.json");
  write_whole_file(study.out + "/files/two/old", "");
  study.run();
  CHECK_FALSE(fs::exists(study.out + "/files/two/old"));
}

TEST_CASE("runs that would write one file are refused before the first of them") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::vector<std::string>& words) {
    write_whole_file(folder.file("study.toml"), "title = \"t\"\n" + text);
    check_refused({"study", folder.file("study.toml"), "--out", folder.file("out")}, words);
    CHECK_FALSE(fs::exists(folder.file("out")));
  };
  const auto run_of = [](const std::string& name, const std::string& rest) {
    return "[[run]]\nname = \"" + name + "\"\ncommand = \"prove --verifier typical --vocab 2 -k 1\"\n" + rest;
  };
  refused(run_of("a", "figure = true\n") + run_of("a-double", "figure = true\n"),
          {"run 'a-double' writes 'figures/a-double.pdf', and so does run 'a'"});
  refused(run_of("comparisons", "rows = \"/proofs\"\ncolumns = [\"vocab\"]\n") +
              "[[compare]]\ntitle = \"c\"\na = \"comparisons:/proofs\"\nb = \"comparisons:/proofs\"\nquantity = "
              "\"vocab\"\n",
          {"run 'comparisons' writes 'tables/comparisons'", "the study, for its comparisons"});
  const std::string out = "\"\ncommand = \"speculate --out /tmp/x\"\n";
  refused("[[run]]\nname = \"a" + out + "[[run]]\nname = \"b" + out, {"run 'b' writes '/tmp/x", "run 'a'"});
  refused("[[run]]\nname = \"a\"\ncommand = \"speculate --out=../x\"\n", {"leads out of the run's own folder"});
}

TEST_CASE("one process writes into the folder of a study, and its commands end with it") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("study.toml"), "title = \"t\"\n[[run]]\nname = \"long\"\ncommand = \"sim " +
                                                  std::string(DRAFTPROOF_SOURCE_DIR) +
                                                  "/experiments/scenarios/million.toml --replications 1000\"\n");
  const std::vector<std::string> command{"study", folder.file("study.toml"), "--out", folder.file("out")};
  // Starts it, waits for its command, and kills it once a second one has been refused. Prints what the second one says.
  const std::string script =
      "\"$0\" study \"$1\" --out \"$2\" >/dev/null 2>&1 & study=$!\n"
      "children() { cat /proc/[0-9]*/stat 2>/dev/null | sed -n \"s/^\\([0-9]*\\) (.*) [RSD] $1 .*/\\1/p\"; }\n"
      "for i in $(seq 1000); do child=$(children $study); [ -n \"$child\" ] && break; sleep 0.1; done\n"
      "\"$0\" study \"$1\" --out \"$2\" 2>&1; echo \"code $?\"\n"
      "\"$0\" study \"$1\" --out \"$2\" --part 0/2 2>&1; echo \"code $?\"\n"
      "kill -9 $study\n"
      "for i in $(seq 1000); do kill -0 $child 2>/dev/null || break; sleep 0.1; done\n"
      "[ -n \"$child\" ] && ! kill -0 $child 2>/dev/null && echo 'the child ended'\n";
  const ProgramResult result =
      run_command({"sh", "-c", script, DRAFTPROOF_PROGRAM, folder.file("study.toml"), folder.file("out")});
  INFO(result.out << result.err);
  const std::string refusal = "draftproof: error: --out: '" + fs::canonical(folder.file("out")).string() +
                              "' is being written by another study; expected another folder, or its end\ncode 2\n";
  CHECK(result.out == refusal + refusal + "the child ended\n");

  // A killed study leaves nothing behind and nothing in the way.
  write_whole_file(folder.file("study.toml"),
                   "title = \"t\"\n[[run]]\nname = \"long\"\ncommand = \"prove --verifier typical --vocab 2 -k 1\"\n");
  json_of(command);
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.file("out/runs")))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"long.json", "long.key"});

  // Parts go side by side, but a run is one process's.
  const Descriptor held(::open(folder.file("out/.lock").c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_start = 1;  // all but the folder's own byte
  REQUIRE(::fcntl(held.value(), F_OFD_SETLK, &lock) == 0);
  check_refused({"study", folder.file("study.toml"), "--out", folder.file("out"), "--part", "0/1"},
                {"the run 'long' is being done by another process"});
}

TEST_CASE("a study is checked before its first run, and begun with a file that passes") {
  const TemporaryFolder folder;
  const std::string file = folder.file("first.toml"), out = folder.file("out");
  CHECK(json_of({"study", file, "--init"}).at("file") == file);
  check_refused({"study", file, "--init"}, {"--init", "is there; expected the name of a new file"});
  const ordered_json checked = json_of({"study", file, "--check"});
  REQUIRE(checked.at("runs").size() == 2);
  CHECK(checked.at("runs")[0].at("was_there") == false);
  CHECK(folder.file_names() == std::vector<std::string>{"first.toml"});
  CHECK(json_of({"study", file, "--out", out}).at("comparisons")[0].at("pairs").get<int>() > 30);
  CHECK(json_of({"study", file, "--out", out, "--check"}).at("runs")[0].at("was_there") == true);

  const std::string good = read_whole_file(file);
  const auto refused = [&](const std::string& from, const std::string& to, const std::vector<std::string>& words) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_whole_file(file, text);
    check_refused({"study", file, "--check", "--out", out}, words);
    const ProgramResult run = run_draftproof({"study", file, "--out", folder.file("new")});
    CHECK(run.exit_code == 2);
    for (const std::string& word : words) CHECK_THAT(run.err, Contains(word));
  };
  refused("--instances 2", "--instnaces 2", {"first.toml:5: run[0].name", "--instnaces"});
  refused("command = \"prove", "command = \"porve", {"'porve' is not a subcommand", "did you mean 'prove'?"});
  CHECK_FALSE(fs::exists(folder.file("new/runs/k1.json")));  // before the first run
  refused("quantity = \"mean_accepted\"", "quantity = \"accepted\"",
          {"item 0 of k", ":/proofs has no number 'accepted'; it has instances, ", "mean_accepted"});
  refused("columns = [\"verifier\"", "columns = [\"verifer\"",
          {"columns: no item of /proofs has 'verifer'; it has verifier, ", "did you mean 'verifier'?"});
  refused("a = \"k2:/proofs", "a = \"k2:/prof", {"'/prof' is no list of the run's document; it has /proofs, "});
}

TEST_CASE("the null of the forest plot stands inside the frame, of differences of one sign too") {
  const auto x_range = [](double difference, double low, double high) {
    const Table table{{}, {{"a over b", std::int64_t{4}, 3.0, 2.0, difference, low, high}}};
    const std::string script = forest_plot(table);
    const std::size_t begin = script.find("set xrange [") + 12;
    const std::size_t colon = script.find(':', begin);
    return std::pair(std::stod(script.substr(begin)), std::stod(script.substr(colon + 1)));
  };
  // In percent of b = 2: 50, from 40 to 60, and 5 % of 60 at both ends.
  CHECK(x_range(1.0, 0.8, 1.2) == std::pair(-3.0, 63.0));
  CHECK(x_range(-1.0, -1.2, -0.8) == std::pair(-63.0, 3.0));
  CHECK(x_range(0.0, 0.0, 0.0) == std::pair(-1.0, 1.0));
}

TEST_CASE("a study says before its first run how many pairs a wished difference needs, and draws what it found") {
  const SmallStudy study;
  const auto planned = [&](const std::string& more, const std::vector<std::string>& options = {}) {
    study.write(kCompare + more);
    std::vector<std::string> arguments{"study", study.path, "--check"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return json_of(arguments).at("planned").at(0).get<std::string>();
  };
  // Half a standard deviation: 34 pairs, by tables of the paired t test.
  CHECK(
      planned("detect = 0.1\nspread = 0.2\n") ==
      "four over two: a true difference of 0.1 shows (p < 0.05, with a probability of 80 %) in 34 pairs, by the spread "
      "0.2, the file's own");
  CHECK_THAT(planned("detect = 0.1\n"), Contains("is not known; --pilot DIR"));
  study.run();
  CHECK_THAT(planned("detect = 0.1\n", {"--pilot", study.out}), Contains("of the 4 pairs in " + study.out));
  const ProgramResult run = run_draftproof({"study", study.path, "--out", study.out, "--pilot", study.out});
  CHECK_THAT(run.err, Contains("draftproof: study: four over two: a true difference of 0.1 "));
  if (gnuplot_is_here()) {
    CHECK(fs::is_regular_file(study.out + "/figures/comparisons.pdf"));
    CHECK_THAT(read_whole_file(study.out + "/figures/comparisons.svg"), Contains("difference, % of b"));
    CHECK_THAT(read_whole_file(study.out + "/report.html"), Contains("difference, % of b"));
  }
  study.write(kCompare + "spread = 0.2\n");
  check_refused({"study", study.path, "--check"}, {"spread: has no use without detect"});
  study.write(kCompare);
  check_refused({"study", study.path, "--check", "--pilot", "no such folder"},
                {"--pilot: 'no such folder' is no folder"});
}

TEST_CASE("parts of a study, as several machines run them, are the study") {
  const SmallStudy study;
  study.write(kCompare);
  for (const char* part : {"1/2", "0/2"}) {
    const ProgramResult run = run_draftproof({"study", study.path, "--out", study.out, "--part", part});
    CHECK(run.exit_code == 0);
    CHECK_FALSE(fs::exists(study.out + "/report.html"));
  }
  const ordered_json whole = study.run();
  REQUIRE(whole.at("runs").size() == 3);
  for (const ordered_json& run : whole.at("runs")) CHECK(run.at("was_there") == true);
  CHECK(fs::exists(study.out + "/report.html"));
  for (const char* part : {"2/2", "1", "-1/2", "0/0", "a/b"})
    check_refused({"study", study.path, "--out", study.out, "--part", part}, {"--part", part, "I/N"});
}

TEST_CASE("a study of three processes is that of one") {
  const SmallStudy study;
  study.write(kCompare);
  const auto run = run_with_mpi("3", {"study", study.path, "--out", study.out, "--json"});
  if (!run) return;
  INFO(run->err);
  REQUIRE(run->exit_code == 0);
  const auto together = ordered_json::parse(run->out);
  for (const ordered_json& one : together.at("runs")) CHECK(one.at("was_there") == false);
  const ordered_json again = study.run();  // finds them there
  for (const ordered_json& one : again.at("runs")) CHECK(one.at("was_there") == true);
  CHECK(again.at("comparisons") == together.at("comparisons"));
  CHECK(read_whole_file(study.out + "/REPRODUCE.md").find("processes of mpirun") == std::string::npos);

  write_whole_file(study.path, "title = \"t\"\n[[run]]\nname = \"a\"\ncommand = \"nothing\"\n");
  const auto refused = run_with_mpi("2", {"study", study.path, "--out", study.out});
  CHECK(refused->exit_code == 2);
  CHECK(refused->err.find("draftproof: error: ") != std::string::npos);
}

TEST_CASE("a study that cannot be run says where, in one line") {
  const SmallStudy study;
  const auto refused = [&](const std::string& more) {
    study.write(more);
    const ProgramResult result = run_draftproof({"study", study.path, "--out", study.out});
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    const std::size_t line = result.err.find("draftproof: error: " + study.path + ":");
    CHECK(line != std::string::npos);
    return result.err;
  };
  const auto run_of = [](const std::string& rest) { return "[[run]]\n" + rest; };
  CHECK(refused(run_of("name = \"k2\"\ncommand = \"lab\"\n")).find("two runs are 'k2'") != std::string::npos);
  CHECK(refused(run_of("name = \"../x\"\ncommand = \"lab\"\n")).find("expected letters, digits") != std::string::npos);
  CHECK(refused(run_of("name = \"x\"\ncommand = \"lab --json\"\n")).find("which a study sets itself") !=
        std::string::npos);
  CHECK(refused(run_of("name = \"x\"\ncommand = \"study a.toml\"\n")).find("is no command of a study") !=
        std::string::npos);
  CHECK(refused(run_of("name = \"x\"\ncommand = \"lab\"\nrows = \"/rows\"\n")).find("has rows or columns alone") !=
        std::string::npos);
  CHECK(refused("[[compare]]\ntitle = \"t\"\na = \"no:/rows\"\nb = \"k2:/rows\"\nquantity = \"k\"\n").find("'no'") !=
        std::string::npos);
  CHECK(refused(run_of("name = \"x\"\ncommand = \"lab --target 2,3\"\n"))
            .find("ended with exit code 2: draftproof: error:") != std::string::npos);
  CHECK(refused("[[compare]]\ntitle = \"t\"\na = \"k2:/rows\"\nb = \"k4:/rows\"\nquantity = \"nothing\"\n")
            .find("has no number 'nothing'") != std::string::npos);
}

TEST_CASE("the studies that come with the program are read") {
  const std::string folder = std::string(DRAFTPROOF_SOURCE_DIR) + "/experiments/studies";
  int studies = 0;
  const TemporaryFolder temporary;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    ++studies;
    // Read in full before anything runs: with one run more that cannot be, it is refused for that run alone.
    const std::string copy = temporary.file("copy.toml");
    write_whole_file(copy, read_whole_file(entry.path().string()) + "\n[[run]]\nname = \"x\"\ncommand = \"dash\"\n");
    const ProgramResult result = run_draftproof({"study", copy, "--out", temporary.file("out")});
    CHECK(result.exit_code == 2);
    CHECK(result.err.find("is no command of a study") != std::string::npos);
  }
  CHECK(studies == 4);
}

TEST_CASE("the study of a published table finds the paper's figures") {
  const TemporaryFolder folder;
  const std::string source = read_whole_file(std::string(DRAFTPROOF_SOURCE_DIR) + "/experiments/studies/slots.toml");
  std::string here = source;
  for (std::size_t at = here.find("out/studies"); at != std::string::npos; at = here.find("out/studies", at + 8))
    here.replace(at, 11, folder.file("runs"));
  write_whole_file(folder.file("slots.toml"), here);
  json_of({"study", folder.file("slots.toml"), "--out", folder.file("out")});
  const std::string table = read_whole_file(folder.file("out") + "/tables/by_slot.csv");
  CHECK(std::ranges::count(table, '\n') >= 17);
  CHECK(table.find(",no") == std::string::npos);
}
