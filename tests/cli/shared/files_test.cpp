// File handling of every command: unusable inputs, outputs that are inputs, names with control characters, and runs
// that are cut short.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <thread>

#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// A folder with one good file of every kind that a command reads.
struct Files {
  TemporaryFolder folder;
  std::string trace = tiny_trace().write(folder.file("trace.safetensors"));
  std::string steps = tiny_trace()
                          .set("output_tokens", {2, 3}, std::vector<std::int32_t>{3, 1, 0, 2, -1, -1})
                          .write(folder.file("steps.safetensors"));
  std::string result = folder.file("result.safetensors");
  std::string counts = folder.file("counts.csv");
  std::string probs = folder.file("probs.csv");
  std::string corpus = folder.file("corpus");
  std::string digests = folder.file("digests.txt");

  Files() {
    write_whole_file(counts, "token,count\n0,500\n1,500\n");
    write_whole_file(probs, "token,prob\n0,0.5\n1,0.5\n");
    std::string text;
    for (int i = 0; i < 4000; ++i) text += i % 7 == 0 ? "the draft " : i % 3 == 0 ? "of a token. " : "is the target ";
    write_whole_file(corpus, text);
    write_whole_file(digests, "0123456789abcdef mass_pass/padded/f32/V33/B3\n");
    REQUIRE(run_draftproof({"verify", trace, "--out", result}).exit_code == 0);
  }

  // Every place of every command that takes a file, with `path` there.
  std::vector<Arguments> commands_reading(const std::string& path) const {
    const std::string csv = path + ".csv";
    fs::remove(csv);
    fs::create_symlink(path, csv);
    return {{"verify", path},
            {"verify", trace, "--compare", path},
            {"audit", path},
            {"audit", csv, "--probs", probs},
            {"audit", counts, "--probs", path},
            {"audit", trace, "--outputs", path},
            {"demo", "--corpus", path, "--out", folder.file("out")},
            {"regress", "--filter", "mass_pass/padded/f32/V33/B3", "--golden", path}};
  }

  Arguments demo(const std::string& out, const Arguments& more = {}, const std::string& samples = "1000") const {
    Arguments arguments{"demo",  "--corpus",  corpus, "--out",           out, "--tokens", "60", "--samples",
                        samples, "--threads", "1",    "--continuations", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// The part of a run that must be of one seed.
std::string seed_of_result(const std::string& folder) {
  return nlohmann::json::parse(read_whole_file(folder + "/result.json")).at("seed").dump();
}

TEST_CASE("JSON that nests without end is refused in one line by what reads JSON") {
  const TemporaryFolder folder;
  const std::string path = folder.file("deep.json");
  write_whole_file(path, std::string(50000, '[') + std::string(50000, ']') + "\n");
  for (const Arguments& arguments :
       {Arguments{"acceptance", path},
        {"predict", "--model", "Llama-3.1-8B-Instruct", "--gpu", "H100", "--drafter", "EAGLE-3", "--metrics", path},
        {"generate", "--model", path, "--prompts", path}})
    check_refused(arguments, {"nests deeper than 64 levels"});
}

TEST_CASE("every command refuses a folder, a device and a pipe where it reads a file, at once and in one line") {
  const Files files;
  const std::string pipe = files.folder.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_directory(files.folder.file("directory"));
  fs::create_symlink("/dev/zero", files.folder.file("zero"));
  for (const auto& [path, kind] : {std::pair(files.folder.file("directory"), "is a folder; expected a regular file"),
                                   {files.folder.file("zero"), "is a device; expected a regular file"},
                                   {pipe, "is a pipe; expected a regular file"},
                                   {files.folder.file("absent"), "absent"}}) {
    for (const Arguments& arguments : files.commands_reading(path)) {
      check_refused(arguments, {kind});
    }
  }
}

TEST_CASE("a golden file of an implausible size is refused before any case runs") {
  const Files files;
  fs::resize_file(files.digests, std::uintmax_t{1} << 40);
  check_refused({"regress", "--golden", files.digests}, {"expected at most 16777216 bytes (16 MiB)"});
}

TEST_CASE("no command writes over what it reads, under whatever name") {
  const Files files;
  const std::string link = files.folder.file("link.csv");
  fs::create_hard_link(files.counts, link);
  fs::create_directory(files.folder.file("out"));
  for (const char* const name : {"result.json", "acceptance.csv", "trace.safetensors", "acceptance.svg"})
    fs::create_symlink(files.corpus, files.folder.file("out") + "/" + name);
  const std::vector<Arguments> commands = {
      {"verify", files.trace, "--out", files.trace},
      {"verify", files.trace, "--compare", files.result, "--out", files.result},
      {"audit", files.steps, "--figure", files.steps},
      {"audit", files.counts, "--probs", files.probs, "--figure", link},
      {"audit", files.counts, "--probs", files.probs, "--figure", files.probs},
      {"audit", files.trace, "--outputs", files.steps, "--figure", files.folder.file("out/../steps.safetensors")},
      files.demo(files.folder.file("out"))};
  const auto contents = [&] {
    std::string all;
    for (const std::string& file : {files.trace, files.steps, files.result, files.counts, files.probs, files.corpus})
      all += read_whole_file(file);
    return all;
  };
  const std::string before = contents();
  for (const Arguments& arguments : commands) {
    check_refused(arguments, {"is the same file as the input"});
  }
  CHECK(contents() == before);
}

TEST_CASE("a file that was read by whatever name is not replaced at the end either") {
  const Files files;
  const std::string out = files.folder.file("out");
  const std::string experiment = files.folder.file("experiments/own/experiment.toml");
  fs::create_directories(files.folder.file("experiments"));
  fs::copy(DRAFTPROOF_SOURCE_DIR "/experiments/three_accepted", files.folder.file("experiments/own"));
  const std::string text = read_whole_file(files.corpus);
  const std::string toml = read_whole_file(experiment);
  const std::string model = "ngram:2:" + files.corpus;
  for (const Arguments& arguments :
       {Arguments{"generate", "--model", model, "--prompt", "the ", "--max-tokens", "4", "--trace", files.corpus},
        Arguments{"generate", "--model", model, "--prompt", "the ", "--max-tokens", "4", "--metrics", files.corpus},
        Arguments{"experiments", "own", "--folder", files.folder.file("experiments"), "--out", out, "--claims",
                  experiment}}) {
    check_refused(arguments, {"is an input of this command; expected the name of another file"});
  }
  CHECK(read_whole_file(files.corpus) == text);
  CHECK(read_whole_file(experiment) == toml);
}

TEST_CASE("names of files and folders that cannot be are refused before any work, in one line") {
  const Files files;
  const std::string long_name(5000, 'x');
  check_refused({"experiments", "--folder", files.folder.file("absent")}, {"a folder of experiments"});
  check_refused({"experiments", "--folder", files.corpus}, {"a folder of experiments"});
  check_refused({"generate", "--model", long_name, "--prompt", "a"}, {"there is no model"});
  check_refused({"audit", files.steps, "--figure", files.folder.file("figure")},
                {"expected a name that ends with .svg, .png, .pdf or .tex"});
}

TEST_CASE("a corpus in the output folder of the demo is read and stays") {
  const Files files;
  const std::string out = files.folder.file("out");
  fs::create_directory(out);
  fs::rename(files.corpus, out + "/text");
  fs::create_symlink("out/text", files.corpus);
  const std::string text = read_whole_file(out + "/text");
  for (int i = 0; i < 2; ++i) CHECK(run_draftproof(files.demo(out)).exit_code == 0);
  CHECK(read_whole_file(out + "/text") == text);
  CHECK(names_in(out).contains("result.json"));
}

TEST_CASE("no control character of a path, a name or a file reaches the terminal") {
  const Files files;
  const std::string evil =
      "\x1b[31m\x9b"
      "\xc2\x9b"
      "evil\x7f";
  const std::string path = files.folder.file(evil);
  TraceBuilder trace = tiny_trace();
  trace.metadata("\x1b[2Jkey", "value").write(path);
  write_whole_file(files.digests, "0123456789abcdef \x1b[2Jcase\n");
  fs::create_directory(files.folder.file("d" + evil));
  const std::string out = files.folder.file("d" + evil) + "/out";
  const std::vector<Arguments> commands = {{"verify", path},
                                           {"verify", path, "--json"},
                                           {"verify", path + "absent"},
                                           {"verify", path, "--out", files.folder.file(evil + "out")},
                                           {"audit", path},
                                           {"audit", files.counts, "--probs", path},
                                           {"regress", "--golden", path},
                                           {"regress", "--filter", "guidance/", "--golden", files.digests},
                                           files.demo(out, {"--prompt", evil}),
                                           files.demo(out, {"--json"}),
                                           {evil},
                                           {"verify", path, "--" + evil},
                                           {"machine", "--simd", evil}};
  for (const Arguments& arguments : commands) {
    INFO(arguments.front());
    const ProgramResult result = run_draftproof(arguments);
    for (const std::string& text : {result.out, result.err}) {
      CHECK(std::none_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
      }));
      CHECK(text.find("\xc2\x9b") == std::string::npos);
    }
  }
  // JSON escapes read back as the original characters.
  const auto document = nlohmann::json::parse(run_draftproof({"verify", path, "--json"}).out);
  CHECK_THAT(document.at("input").at("path").get<std::string>(), Contains("\xc2\x9b"
                                                                          "evil\x7f"));
}

TEST_CASE("a gnuplot that does not work costs the demo and the audit their figure and nothing else") {
  const Files files;
  write_whole_file(files.folder.file("gnuplot"),
                   "#!/bin/sh\necho 'libgd.so.3: cannot open shared object file' >&2\nexit 127\n");
  fs::permissions(files.folder.file("gnuplot"), fs::perms::owner_all);
  const Arguments environment{"PATH=" + files.folder.path() + ":" + std::getenv("PATH")};
  const std::string out = files.folder.file("out");
  const ProgramResult demo = run_draftproof(files.demo(out, {"--json"}), environment);
  CHECK(demo.exit_code == 0);
  CHECK_THAT(demo.err,
             Contains("warning: no figure: " + out + "/acceptance.svg: gnuplot failed with exit code 127: libgd"));
  CHECK(nlohmann::json::parse(demo.out).at("files").at("figure").is_null());
  CHECK(read_whole_file(out + "/result.json") == demo.out);
  CHECK(names_in(out) == std::set<std::string>{"acceptance.csv", "result.json", "trace.safetensors"});
  const std::string figure = files.folder.file("f.svg");
  const ProgramResult audit = run_draftproof(
      {"audit", files.counts, "--probs", files.probs, "--tv-wanted", "0.5", "--figure", figure, "--json"}, environment);
  INFO(audit.err);
  CHECK(audit.exit_code == 0);
  CHECK_THAT(audit.err, Contains("warning: no figure: "));
  CHECK(nlohmann::json::parse(audit.out).at("figure").is_null());
  CHECK_FALSE(fs::exists(figure));
  const ProgramResult experiments =
      run_draftproof({"experiments", "long_drafts", "--out", files.folder.file("claims")}, environment);
  CHECK(experiments.exit_code == 0);
  CHECK_THAT(experiments.err, Contains("draftproof: warning: no figures: "));
}

TEST_CASE("a demo that finds the disk full leaves the former run whole") {
  const Files files;
  const std::string out = files.folder.file("out");
  REQUIRE(run_draftproof(files.demo(out, {"--seed", "1"})).exit_code == 0);
  const auto before = names_in(out);
  std::string contents;
  for (const std::string& name : before) contents += read_whole_file(out + "/" + name);
  // No file may grow beyond 8 or 32 blocks of 512 bytes: the table fits, the trace does not, and the system sends
  // SIGXFSZ.
  for (const char* const blocks : {"8", "32"}) {
    Arguments command{"sh", "-c", std::string("ulimit -f ") + blocks + "; exec \"$@\"", "sh", DRAFTPROOF_PROGRAM};
    const Arguments demo = files.demo(out, {"--seed", "2"});
    command.insert(command.end(), demo.begin(), demo.end());
    const ProgramResult full = run_command(command);
    CHECK(full.exit_code == 2);
    CHECK_THAT(full.err, Contains(out + "/trace.safetensors: writing failed; the disk may be full"));
  }
  CHECK(names_in(out) == before);
  std::string after;
  for (const std::string& name : before) after += read_whole_file(out + "/" + name);
  CHECK(after == contents);
  CHECK(names_in(files.folder.path()).contains("out"));
  for (const std::string& name : names_in(files.folder.path())) CHECK_THAT(name, !Contains(".tmp"));
}

TEST_CASE("a demo that a signal ends leaves nothing behind, and one that is killed leaves it to the next") {
  const Files files;
  const std::string out = files.folder.file("out");
  const auto temporaries = [&] {
    const auto names = names_in(files.folder.path());
    return std::count_if(names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".tmp"); });
  };
  for (const int number : {SIGINT, SIGTERM, SIGKILL}) {
    Arguments command{DRAFTPROOF_PROGRAM};
    const Arguments demo = files.demo(out, {}, "10000000");
    command.insert(command.end(), demo.begin(), demo.end());
    std::vector<char*> pointers;
    for (std::string& argument : command) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      for (const int held : {SIGINT, SIGTERM}) ::signal(held, SIG_DFL);
      ::execv(pointers[0], pointers.data());
      ::_exit(126);
    }
    for (int i = 0; i < 1000 && temporaries() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    REQUIRE(temporaries() == 1);
    ::kill(child, number);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == number);
    CHECK(temporaries() == (number == SIGKILL ? 1 : 0));
    CHECK_FALSE(fs::exists(out));
  }
  CHECK(run_draftproof(files.demo(out)).exit_code == 0);
  CHECK(temporaries() == 0);
}

TEST_CASE("of two demos at once in one folder one leaves all its files") {
  const Files files;
  const std::string out = files.folder.file("out");
  for (int round = 0; round < 3; ++round) {
    std::jthread other([&] { CHECK(run_draftproof(files.demo(out, {"--seed", "1"})).exit_code == 0); });
    CHECK(run_draftproof(files.demo(out, {"--seed", "2"})).exit_code == 0);
    other.join();
    // Replayed, the trace must have as many steps as the result of its own run shows.
    const std::string seed = seed_of_result(out);
    const std::string alone = files.folder.file("alone" + seed);
    REQUIRE(run_draftproof(files.demo(alone, {"--seed", seed})).exit_code == 0);
    for (const char* const name : {"acceptance.csv", "trace.safetensors"})
      CHECK(read_whole_file(out + "/" + name) == read_whole_file(alone + "/" + name));
  }
}

TEST_CASE("a trace whose result would be mostly padding is refused with its size in a moment") {
  const TemporaryFolder folder;
  TraceBuilder trace;
  const std::uint64_t drafts = 40'000;
  trace.set("target_logits", {2 * drafts, 1}, std::vector<float>(2 * drafts, 0.0f));
  trace.set("draft_tokens", std::vector<std::int32_t>(drafts, 0));
  trace.set("cu_num_draft_tokens", std::vector<std::int32_t>(drafts, static_cast<std::int32_t>(drafts)));
  const std::string path = trace.write(folder.file("t.safetensors"));
  check_refused({"verify", path}, {path + ": request 0: has 40000 drafts, which makes output_tokens [40000, 40001]"});
}

}  // namespace
}  // namespace draftproof::testing
