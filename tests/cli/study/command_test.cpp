// `draftproof study` on commands of less than a second.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/run_verb.hpp"

namespace draftproof {
namespace {

using nlohmann::ordered_json;
using namespace testing;
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
  CHECK(studies == 3);
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

}  // namespace draftproof
