#include "base/files/run_folder.hpp"

#include "tests/support/test.hpp"

namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kNames = {"table.csv", "figure.svg", "result.json"};

// Every file of the run has the same content, so that a mixture of two runs shows.
void write_files(const RunFolder& run, const std::string& content, const std::vector<std::string>& names = kNames) {
  for (const std::string& name : names) write_whole_file(run.staged(name), content);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void check_is_run(const std::string& folder, const std::string& content, std::vector<std::string> others = {}) {
  for (const std::string& name : kNames) CHECK(read_whole_file((fs::path(folder) / name).string()) == content);
  others.insert(others.end(), kNames.begin(), kNames.end());
  std::sort(others.begin(), others.end());
  CHECK(names_in(folder) == others);
}

}  // namespace

TEST_CASE("A run appears as a whole, with the folders above it, and not before it is committed") {
  const TemporaryFolder folder;
  const std::string out = folder.file("deep/er/out");
  RunFolder run(out + "/", kNames);
  write_files(run, "1");
  CHECK_FALSE(fs::exists(out));
  CHECK(run.final_path("table.csv") == out + "/table.csv");
  run.commit();
  check_is_run(out, "1");
  CHECK(names_in(folder.file("deep/er")) == std::vector<std::string>{"out"});
}

TEST_CASE("A run may be named by a word, for a folder that the current one does not have yet") {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  RunFolder run("out", kNames);
  fs::current_path(before);  // the run stays where it was begun
  write_files(run, "1");
  run.commit();
  check_is_run(folder.file("out"), "1");
}

TEST_CASE("What fails while a run is written is said of the file that was to be") {
  const TemporaryFolder folder;
  const RunFolder run(folder.file("out"), kNames);
  CHECK_THROWS_WITH(run.write([&] { throw input_error(run.staged("table.csv"), "the disk is full"); }),
                    folder.file("out") + "/table.csv: the disk is full");
}

TEST_CASE("A run that is not committed takes the folders with it that it made, and no others") {
  const TemporaryFolder folder;
  { const RunFolder run(folder.file("deep/er/out"), kNames); }
  CHECK(names_in(folder.path()).empty());
  fs::create_directory(folder.file("deep"));
  { const RunFolder run(folder.file("deep/er/out"), kNames); }
  CHECK(names_in(folder.path()) == std::vector<std::string>{"deep"});
  CHECK(names_in(folder.file("deep")).empty());
}

TEST_CASE("A run takes the place of a former one, whose files it does not have go away") {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  fs::create_directory(out);
  fs::permissions(out, fs::perms::owner_all | fs::perms::group_read);
  for (const std::string& name : kNames) write_whole_file(out + "/" + name, "old");
  RunFolder run(out, kNames);
  write_files(run, "new", {"table.csv", "result.json"});
  CHECK(read_whole_file(out + "/table.csv") == "old");
  run.commit();
  CHECK(names_in(out) == std::vector<std::string>{"result.json", "table.csv"});
  CHECK(read_whole_file(out + "/table.csv") == "new");
  CHECK(fs::status(out).permissions() == (fs::perms::owner_all | fs::perms::group_read));
}

TEST_CASE("Other files in the folder of a run stay, as do those in the current folder") {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  fs::create_directory(out);
  write_whole_file(out + "/notes.txt", "mine");
  for (const char* content : {"first", "second"}) {
    RunFolder run(out, kNames);
    write_files(run, content);
    run.commit();
    check_is_run(out, content, {"notes.txt"});
  }
  // A file that the new run has not got is the former one's, and goes away.
  RunFolder fewer(out, kNames);
  write_files(fewer, "fewer", {"table.csv", "result.json"});
  fewer.commit();
  CHECK(names_in(out) == std::vector<std::string>{"notes.txt", "result.json", "table.csv"});
  CHECK(read_whole_file(out + "/notes.txt") == "mine");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out"});

  const fs::path before = fs::current_path();
  fs::current_path(out);
  fs::remove("notes.txt");
  RunFolder here(".", kNames);
  write_files(here, "third");
  here.commit();
  check_is_run(".", "third");  // the current folder is still the one of that name
  check_is_run(out, "third");
  fs::current_path(before);
}

TEST_CASE("A run that is not committed or cannot be written leaves the former one whole") {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  {
    RunFolder run(out, kNames);
    write_files(run, "old");
    run.commit();
  }
  {
    const RunFolder run(out, kNames);
    write_files(run, "new");
  }
  check_is_run(out, "old");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out"});
}

TEST_CASE("Of two runs at once in one folder the last to end leaves all its files") {
  for (const bool has_others : {false, true}) {
    const TemporaryFolder folder;
    const std::string out = folder.file("out");
    std::vector<std::string> others;
    if (has_others) {
      fs::create_directory(out);
      write_whole_file(out + "/notes.txt", "mine");
      others = {"notes.txt"};
    }
    {
      RunFolder first(out, kNames);
      RunFolder second(out, kNames);
      write_files(first, "first");
      write_files(second, "second");
      second.commit();
      CHECK(read_whole_file(out + "/table.csv") == "second");
      first.commit();
    }
    check_is_run(out, "first", others);
    CHECK(names_in(folder.path()) == std::vector<std::string>{"out"});
  }
}

TEST_CASE("A place that is no folder is refused at the start of the run") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("file"), "mine");
  CHECK_THROWS_WITH(RunFolder(folder.file("file"), kNames),
                    Contains("the output folder cannot be created: Not a directory"));
  CHECK_THROWS_WITH(RunFolder(folder.file("file/below"), kNames), Contains("the output folder cannot be created"));
  CHECK(read_whole_file(folder.file("file")) == "mine");
}

TEST_CASE("A folder where a file is to be written is refused at the start, or at the end, and the former run stays") {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  for (const std::string& name : kNames) {
    fs::remove_all(out);
    {
      RunFolder run(out, kNames);
      write_files(run, "1");
      run.commit();
    }
    RunFolder late(out, kNames);
    write_files(late, "2");
    fs::remove(fs::path(out) / name);
    fs::create_directory(fs::path(out) / name);
    CHECK_THROWS_WITH(RunFolder(out, kNames), Contains(name + ": is a folder, where a file is to be written"));
    CHECK_THROWS_WITH(late.commit(), Contains(name + ": is a folder, where a file is to be written"));
    for (const std::string& other : kNames)
      if (other != name) CHECK(read_whole_file((fs::path(out) / other).string()) == "1");
  }
}

TEST_CASE("A symbolic link to the folder of a run stays a link") {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("real"));
  fs::create_directory_symlink("real", folder.file("link"));
  RunFolder run(folder.file("link"), kNames);
  write_files(run, "new");
  run.commit();
  CHECK(fs::is_symlink(folder.file("link")));
  check_is_run(folder.file("real"), "new");
}
