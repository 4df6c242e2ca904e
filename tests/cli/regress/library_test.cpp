// draftproof regress --library: the skeleton passes, faults planted in it are found, and what a library may do to the
// program that tests it does not happen.
#include "tests/support/test.hpp"

namespace {

const std::string kGpu = DRAFTPROOF_SOURCE_DIR "/gpu";

void compile(const std::string& source, const std::string& library, const std::vector<std::string>& more = {}) {
  std::vector<std::string> command{
      "c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-I" + kGpu, "-I" DRAFTPROOF_SOURCE_DIR, source, "-o", library};
  command.insert(command.end(), more.begin(), more.end());
  const ProgramResult compiled = run_command(command);
  INFO(compiled.err);
  REQUIRE(compiled.exit_code == 0);
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  INFO(from);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(from, at + 1) == std::string::npos);
  text.replace(at, from.size(), to);
}

// The kernels of the skeleton with faults, of which the environment variable FAULT chooses one.
class FaultyKernels {
 public:
  FaultyKernels() {
    std::string text = read_whole_file(kGpu + "/skeleton/cpu/kernels.cpp");
    replace(
        text, "#include <algorithm>\n",
        "#include <unistd.h>\n#include <algorithm>\n#include <cstdlib>\n#include <string>\n"
        "static bool planted(const std::string& name) {\n"
        "  static const char* const fault = std::getenv(\"FAULT\");\n  return fault != nullptr && name == fault;\n}\n"
        // splitmix64 of seed and step
        "static double own_number(unsigned long long seed, unsigned step, unsigned index) {\n"
        "  unsigned long long z = seed + 0x9e3779b97f4a7c15u * (1ull + (planted(\"steps\") ? 0 : step) + 4096ull * "
        "index);\n"
        "  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;\n  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;\n"
        "  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;\n}\n");
    replace(text, "before < top_p;", "before < (planted(\"top_p\") ? 1.03f : 1.0f) * top_p;");
    replace(text, "? residual(p(), q(), draft(), call->vocab_size)",
            "? planted(\"residual\") ? std::vector<float>(p(), p() + call->vocab_size) : "
            "residual(p(), q(), draft(), call->vocab_size)");
    replace(text, "* proposed < p()[draft()];", "* proposed < (planted(\"coin\") ? 1.2f : 1.0f) * p()[draft()];");
    replace(text, "    call->num_accepted[b] = place;\n",
            "    call->num_accepted[b] = place;\n"
            "    if (planted(\"beyond\")) call->num_accepted[call->requests] = 0;\n"
            "    if (planted(\"count\")) call->num_accepted[b] = place + 1;\n"
            "    if (planted(\"input\")) const_cast<float*>(call->target_probs)[0] = 0.5f;\n");
    replace(text, "call->filtered + row * call->in.row_stride);\n",
            "call->filtered + row * call->in.row_stride);\n"
            "    if (planted(\"padding\") && call->in.row_stride > call->in.vocab_size) "
            "call->filtered[row * call->in.row_stride + call->in.vocab_size] = 0.0f;\n");
    replace(text, "int draftproof_kernels_guidance(const draftproof_kernels_guidance_call* call) {\n",
            "int draftproof_kernels_guidance(const draftproof_kernels_guidance_call* call) {\n"
            "  if (planted(\"crash\") && call->vocab_size == 33) *static_cast<volatile int*>(nullptr) = 0;\n"
            "  if (planted(\"hang\") && call->vocab_size == 33) sleep(600);\n"
            "  if (planted(\"exit\") && call->vocab_size == 33) _exit(0);\n"
            "  if (planted(\"files\") && call->vocab_size == 33)\n"
            "    for (int file = 3; file < 1024; ++file)\n"
            "      if (write(file, std::string(5000, '\\1').data(), 5000) < 0) continue;\n"
            "  if (planted(\"endless\") && call->vocab_size == 33)\n"
            "    for (int file = 3;; file = file < 1023 ? file + 1 : 3)\n"
            "      if (write(file, std::string(5000, '\\1').data(), 5000) < 0) continue;\n"
            "  if (planted(\"code\")) return 77;\n"
            "  if (planted(\"unsupported\")) return DRAFTPROOF_KERNELS_UNSUPPORTED;\n");
    replace(text, ": u + call->scale[row] * (c - u);",
            ": planted(\"order\")    ? (1.0f - call->scale[row]) * u + call->scale[row] * c\n"
            "      : planted(\"rounding\") ? 1.00001f * (u + call->scale[row] * (c - u))\n"
            "                            : u + call->scale[row] * (c - u);");
    // Own numbers for the GIVEN ones; recorded or not.
    const std::string describe =
        "*description = {DRAFTPROOF_KERNELS_VERSION, DRAFTPROOF_KERNELS_HOST, "
        "DRAFTPROOF_KERNELS_GIVEN, \"naive float kernels\"};";
    replace(text, describe,
            describe +
                "\n  for (const char* own : {\"own\", \"steps\"}) if (planted(own)) description->numbers = "
                "DRAFTPROOF_KERNELS_OWN;\n  for (const char* recorded : {\"recorded\", \"others\", \"none\"}) "
                "if (planted(recorded)) description->numbers = DRAFTPROOF_KERNELS_RECORDED;\n"
                "  if (planted(\"version\")) description->version = 99;\n"
                "  if (planted(\"device\")) description->memory = DRAFTPROOF_KERNELS_DEVICE;\n"
                "  if (planted(\"abort\")) std::abort();\n");
    for (const std::string call : {"verify_chain", "verify_block", "verify_tree"}) {
      const std::string head =
          "int draftproof_kernels_" + call + "(const draftproof_kernels_" + call + "_call* call) {\n";
      replace(text, head, head + "  draw_own_numbers(*call, " + (call == "verify_tree" ? "1" : "0") + ");\n");
    }
    replace(
        text, "}  // namespace\n\nvoid draftproof_kernels_describe",
        "template <class Call>\nvoid draw_own_numbers(const Call& call, int root) {\n"
        "  if (!planted(\"own\") && !planted(\"steps\") && !planted(\"recorded\") && !planted(\"others\")) return;\n"
        "  for (std::int64_t b = 0; b < call.requests; ++b) {\n"
        "    call.draws[b] = own_number(call.seeds[b], call.steps[b], 0);\n"
        "    const std::int64_t first = call.cu_num_draft_tokens[b] + root * b;\n"
        "    const std::int64_t last = call.cu_num_draft_tokens[b + 1] + root * (b + 1);\n"
        "    for (std::int64_t i = first; i < last; ++i)\n"
        "      call.coins[i] = own_number(call.seeds[b], call.steps[b], static_cast<unsigned>(1 + i - first));\n"
        "  }\n}\n\n"
        "// Kernels that take top_p alone, and its search in so many rounds.\n"
        "bool refuses(const draftproof_kernels_rows& in) {\n"
        "  const bool knows_top_p = planted(\"no top_p\") || planted(\"14 rounds\") || planted(\"70 rounds\");\n"
        "  for (std::int64_t row = 0; row < in.rows && (knows_top_p || planted(\"no filters\")); ++row)\n"
        "    if (in.top_k[row] > 0 || in.min_p[row] > 0 || (!knows_top_p && in.top_p[row] < 1)) return true;\n"
        "  return false;\n}\n\n"
        "}  // namespace\n\nvoid draftproof_kernels_describe");
    for (const std::string call : {"filter", "sample"}) {
      const std::string head =
          "int draftproof_kernels_" + call + "(const draftproof_kernels_" + call + "_call* call) {\n";
      replace(text, head, head + "  if (refuses(call->in)) return DRAFTPROOF_KERNELS_UNSUPPORTED;\n");
    }
    replace(text, "    if (top_k == 0 && top_p == 1.0f && min_p == 0.0f) return;\n",
            "    if (planted(\"no top_p\")) top_p = 1.0f;\n"
            "    if (top_k == 0 && top_p == 1.0f && min_p == 0.0f) return;\n"
            "    if (planted(\"14 rounds\") || planted(\"70 rounds\")) {\n"
            "      double low = 0.0, high = *std::max_element(p_.begin(), p_.end());\n"
            "      for (int round = 0; round < (planted(\"14 rounds\") ? 14 : 70); ++round) {\n"
            "        const double middle = 0.5 * (low + high);\n        double mass = 0.0;\n"
            "        for (const float p : p_) mass += p >= middle ? p : 0.0;\n"
            "        (mass >= static_cast<double>(top_p) ? low : high) = middle;\n      }\n"
            "      for (std::size_t i = 0; i < p_.size(); ++i) if (p_[i] < low) logits_[i] = kMasked;\n"
            "      return;\n    }\n");
    replace(text, "const double mass = weight * static_cast<double>(p(row)[draft]);",
            "const double mass = (planted(\"block\") ? 1.0 : weight) * static_cast<double>(p(row)[draft]);");
    replace(text, "      left = rest;\n", "      if (!planted(\"rrsw\")) left = rest;\n");
    replace(text, "    mass = 0.0;\n", "    if (!planted(\"target_only\")) mass = 0.0;\n");
    replace(text, "      path[accepted++] = child;\n", "      path[accepted++] = planted(\"path\") ? 0 : child;\n");
    replace(text, "    tokens[place] = draw_by_id(left, call->draws[b]);\n",
            "    tokens[place] = draw_by_id(left, call->draws[b]);\n"
            "    if (planted(\"others\")) call->draws[b] = own_number(call->seeds[b], call->steps[b], 77);\n"
            "    if (planted(\"none\")) call->draws[b] = 0.0 / 0.0;\n");
    write_whole_file(folder_.file("kernels.cpp"), text);
    compile(folder_.file("kernels.cpp"), library());
  }

  std::string library() const { return folder_.file("libkernels.so"); }

  ordered_json run(const std::string& fault, const std::string& filter, int exit_code,
                   std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"regress", "--library", library(), "--filter", filter, "--samples", "3000"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    INFO(fault);
    return json_of(arguments, exit_code, {"FAULT=" + fault, "DRAFTPROOF_REQUIRE_GPU=0"});
  }

 private:
  TemporaryFolder folder_;
};

const FaultyKernels& faulty_kernels() {
  static const FaultyKernels kernels;
  return kernels;
}

// The findings of the rows that differ, by case.
std::map<std::string, std::string> findings_of(const ordered_json& document) {
  std::map<std::string, std::string> found;
  for (const auto& row : document.at("rows"))
    if (row.at("verdict") == "different")
      found[row.at("case").get<std::string>()] = row.at("finding").get<std::string>();
  return found;
}

constexpr const char* kChains = "verify_chain/ragged/probabilities_f32/probabilities_f32/V7/,verify_chain/seeds";

}  // namespace

TEST_CASE("the skeleton of a library on the host is built by CMake alone, and passes") {
  const TemporaryFolder parent;
  const std::string folder = parent.file("my-kernels");
  const ProgramResult written = run_draftproof({"regress", "--skeleton", "cpu", folder});
  REQUIRE(written.exit_code == 0);
  for (const char* const name : {"draftproof_kernels.h", "kernels.cpp", "CMakeLists.txt", "ci.sh"}) {
    CHECK_THAT(written.out, Contains(folder + "/" + name));
    CHECK(std::filesystem::exists(folder + "/" + name));
  }
  const ProgramResult passed =
      run_command({folder + "/ci.sh", "--samples", "500", "--filter", "V7/,V33/,every_filter_ties,tree_mask/"},
                  {std::string("DRAFTPROOF=") + DRAFTPROOF_PROGRAM});
  INFO(passed.out << passed.err);
  CHECK(passed.exit_code == 0);
  for (const char* const call :
       {"filter", "sample", "verify_chain", "verify_block", "verify_tree", "guidance", "tree_mask"})
    CHECK_THAT(passed.out, Contains(std::string("\n  ") + call + " "));
  CHECK_THAT(passed.out, Contains("  verify_tree tested: target_only (6), rrsw (6)\n") && !Contains("NOT tested"));
  CHECK_THAT(passed.out, Contains("random numbers given, within replay"));
  CHECK_THAT(passed.out, !Contains("different:"));
  check_refused({"regress", "--skeleton", "cuda", folder}, {folder, "expected a new folder"});
}

TEST_CASE("the skeleton of a library for GPUs is written with its own kernel, and not over another") {
  const TemporaryFolder folder;
  const ProgramResult written = run_draftproof({"regress", "--skeleton", "cuda", folder.path()});
  REQUIRE(written.exit_code == 0);
  CHECK(read_whole_file(folder.file("kernels.cu")) == read_whole_file(kGpu + "/skeleton/cuda/kernels.cu"));
  CHECK(read_whole_file(folder.file("draftproof_kernels.h")) == read_whole_file(kGpu + "/draftproof_kernels.h"));
  check_refused({"regress", "--skeleton", "cpu", folder.path()}, {"is not empty"});
  check_refused({"regress", "--skeleton", "cpu"}, {"--skeleton: has no folder"});
  check_refused({"regress", folder.path()}, {"folder: has no use without --skeleton"});
}

TEST_CASE("a filter that keeps 3 % too much mass is found in the kept sets, and passes without the fault") {
  const std::string filters = "filter/every_filter/f32/V9000,filter/flat";
  const ordered_json sound = faulty_kernels().run("", filters, 0);
  CHECK(sound.at("equal") == 2);
  CHECK(sound.at("library").at("numbers") == "given");
  const auto findings = findings_of(faulty_kernels().run("top_p", filters, 1));
  REQUIRE(findings.count("filter/every_filter/f32/V9000/B96") == 1);
  const std::string& finding = findings.at("filter/every_filter/f32/V9000/B96");
  CHECK_THAT(finding, Contains("wrongly kept"));
  CHECK_THAT(finding, Contains("run it again: draftproof regress --library " + faulty_kernels().library()));
}

TEST_CASE(
    "a filter that takes top_p alone is asked for it: one that ignores it, or searches in too few rounds, is found") {
  const std::string filters = "filter/top_p_alone,filter/every_filter/f32/V33/,filter/plain/f32/V33/";
  const std::string some = "top_k,min_p";
  const ordered_json sound = faulty_kernels().run("70 rounds", filters, 0, {"--without", some});
  CHECK(sound.at("parameters").at("filter") == ordered_json({{"top_k", 0}, {"top_p", 4}, {"min_p", 0}}));
  CHECK(sound.at("untested").empty());
  for (const char* const fault : {"no top_p", "14 rounds"}) {
    const auto findings = findings_of(faulty_kernels().run(fault, filters, 1, {"--without", some}));
    CHECK(findings.count("filter/top_p_alone/f32/V1000/B16") == 1);
  }
  const std::string samples = "sample/top_p_alone/f32/V1000,sample/plain/f32/V33/";
  CHECK(faulty_kernels().run("70 rounds", samples, 0).at("equal") == 2);
  CHECK(findings_of(faulty_kernels().run("no top_p", samples, 1)).size() == 1);
}

TEST_CASE("a parameter that no case tested is named, and the exit code is 4 unless it is said to be absent") {
  const std::vector<std::string> all{"regress", "--library", faulty_kernels().library(), "--filter",
                                     "filter/every_filter/f32/V33/,filter/tempered/bf16/V7/,filter/top_"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = all;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_draftproof(arguments, {"FAULT=no filters"});
  };
  const ProgramResult silent = run({});
  CHECK(silent.exit_code == 4);
  CHECK_THAT(silent.out, Contains("filter tested: temperature (1). NOT tested: ") && Contains("top_k") &&
                             Contains("top_p") && Contains("min_p"));
  const ProgramResult said = run({"--without", "top_k,top_p,min_p"});
  CHECK(said.exit_code == 0);
  CHECK_THAT(said.out, !Contains("NOT tested"));
  CHECK(run({"--without", "top_k,min_p"}).exit_code == 4);
  check_refused({"regress", "--library", faulty_kernels().library(), "--without", "top_q"},
                {"--without: 'top_q' is no parameter", "did you mean 'top_k'?"});
  check_refused({"regress", "--without", "top_k"}, {"--without: has no use without --library"});
}

TEST_CASE("faults of block and tree verification are found decision by decision, and by their distribution") {
  const std::string blocks = "verify_block/ragged/probabilities_f32/probabilities_f32/V7/,verify_block/seeds/prob";
  const std::string trees =
      "verify_tree/padded/probabilities/rrsw_probabilities/f32/V33/,"
      "verify_tree/padded/probabilities/target_only/f32/V7/";
  for (const char* const within : {"replay", "distribution"}) {
    const std::vector<std::string> draws{"--within", within};
    CHECK(faulty_kernels().run("", blocks, 0, draws).at("equal") >= 2);
    CHECK(faulty_kernels().run("", trees, 0, draws).at("equal") == 2);
    CHECK_FALSE(findings_of(faulty_kernels().run("block", blocks, 1, draws)).empty());
    CHECK(findings_of(faulty_kernels().run("rrsw", trees, 1, draws)).size() == 1);
  }
  CHECK(findings_of(faulty_kernels().run("target_only", trees, 1)).size() == 1);
  CHECK_THAT(findings_of(faulty_kernels().run("path", trees, 1)).begin()->second, Contains("path["));
  CHECK(faulty_kernels().run("recorded", trees + "," + blocks, 0).at("within") == "replay");
}

TEST_CASE("results are written as JUnit XML too, a test case each") {
  const TemporaryFolder folder;
  const std::string file = folder.file("junit.xml");
  faulty_kernels().run("code", "guidance/padded/f32/V33/", 1, {"--junit", file});
  const std::string xml = read_whole_file(file);
  CHECK_THAT(xml, Contains("tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\"") &&
                      Contains("<testcase classname=\"guidance\" name=\"guidance/padded/f32/V33/B5\"") &&
                      Contains("<failure message=\"guidance: the call returned 77"));
  const ProgramResult own = run_draftproof({"regress", "--filter", "tree_mask/chain", "--junit", file});
  CHECK(own.exit_code == 0);
  CHECK_THAT(read_whole_file(file), Contains("classname=\"tree_mask\"") && !Contains("<failure"));
}

TEST_CASE("faults of chain verification are found decision by decision with given numbers, and by their distribution") {
  for (const char* const within : {"replay", "distribution"}) {
    CHECK(faulty_kernels().run("", kChains, 0, {"--within", within}).at("within") == within);
    for (const char* const fault : {"residual", "coin"})
      CHECK_FALSE(findings_of(faulty_kernels().run(fault, kChains, 1, {"--within", within})).empty());
  }
}

TEST_CASE("own numbers are judged by statistics, recorded ones decision by decision, and neither is accused wrongly") {
  const ordered_json own = faulty_kernels().run("own", kChains, 0);
  CHECK(own.at("within") == "distribution");
  CHECK(own.at("alpha") == 1e-6);
  CHECK(faulty_kernels().run("recorded", kChains, 0).at("within") == "replay");
  // A generator that takes no notice of the step, and a library that records other numbers than it used.
  const auto repeated = findings_of(faulty_kernels().run("steps", kChains, 1));
  CHECK_FALSE(repeated.empty());
  const auto departed = findings_of(faulty_kernels().run("others", kChains, 1));
  REQUIRE_FALSE(departed.empty());
  CHECK_THAT(departed.begin()->second, Contains("replay"));
  CHECK_THAT(findings_of(faulty_kernels().run("none", kChains, 1)).begin()->second,
             Contains("draws[0] is ") && Contains("nan; expected a number in [0, 1]"));
}

TEST_CASE("guidance may round in another order of evaluation where bits are not asked for, and no further") {
  const std::string guidance = "guidance/padded/f32/V4096/";
  CHECK(faulty_kernels().run("", guidance, 0, {"--within", "bits"}).at("equal") == 1);
  CHECK(faulty_kernels().run("order", guidance, 0).at("equal") == 1);
  CHECK_FALSE(findings_of(faulty_kernels().run("order", guidance, 1, {"--within", "bits"})).empty());
  CHECK_THAT(findings_of(faulty_kernels().run("rounding", guidance, 1)).begin()->second, Contains("out["));
}

TEST_CASE("what a call writes where it must not is found: beyond an array, into an input, into padding") {
  const std::string chain = "verify_chain/one_request/";
  CHECK_THAT(findings_of(faulty_kernels().run("beyond", chain, 1)).begin()->second,
             Contains("num_accepted: the guard words around this array were overwritten"));
  CHECK_THAT(findings_of(faulty_kernels().run("input", chain, 1)).begin()->second,
             Contains("target_probs: the call wrote to this input"));
  CHECK_THAT(findings_of(faulty_kernels().run("count", chain, 1)).begin()->second, Contains("num_accepted is "));
  CHECK_THAT(findings_of(faulty_kernels().run("padding", "filter/plain/f32/V33/", 1)).begin()->second,
             Contains("the call wrote column 33 of row 0; the row has 33 columns"));
}

TEST_CASE("a library that crashes, hangs or ends the process loses the case that did it and no other") {
  const std::string some = "guidance/padded/f32/V32/,guidance/padded/f32/V33/,guidance/padded/f32/V4096/";
  const std::string one = "guidance/padded/f32/V33/";  // alone: under load another may take long, too
  const auto lost = [&](const std::string& fault, const std::string& filter, const std::string& seconds) {
    const ordered_json document = faulty_kernels().run(fault, filter, 1, {"--case-seconds", seconds});
    CHECK(document.at("equal") == (filter == some ? 2 : 0));
    const auto findings = findings_of(document);
    REQUIRE(findings.size() == 1);
    CHECK(findings.begin()->first == "guidance/padded/f32/V33/B5");
    return findings.begin()->second;
  };
  CHECK_THAT(lost("crash", some, "300"), Contains("it was ended by signal 11"));
  CHECK_THAT(lost("exit", some, "300"), Contains("it ended the process with exit code 0"));
  for (const char* const fault : {"files", "endless"})
    CHECK_THAT(lost(fault, some, "300"), Contains("it wrote into a file descriptor"));
  CHECK_THAT(lost("hang", one, "2"), Contains("it did not end within 2 s"));
  const auto failed = findings_of(faulty_kernels().run("code", some, 1));
  CHECK(failed.size() == 3);
  CHECK_THAT(failed.begin()->second, Contains("the call returned 77"));
}

TEST_CASE("where nothing was compared the exit code is 4, as for a library on device memory without a GPU") {
  const ordered_json unsupported = faulty_kernels().run("unsupported", "guidance/padded/", 4);
  CHECK(unsupported.at("equal") == 0);
  CHECK(unsupported.at("rows").at(0).at("finding") == "the library does not take these inputs");
  const std::vector<std::string> arguments{"regress", "--library", faulty_kernels().library(), "--filter",
                                           "guidance/padded/f32/V33/"};
  const ProgramResult device = run_draftproof(arguments, {"FAULT=device", "DRAFTPROOF_REQUIRE_GPU=0"});
  if (!std::filesystem::exists("/dev/nvidiactl")) {
    CHECK(device.exit_code == 4);
    CHECK_THAT(device.out, Contains("skipped: "));
    check_refused(run_draftproof(arguments, {"FAULT=device", "DRAFTPROOF_REQUIRE_GPU=1"}),
                  {"takes device memory", "DRAFTPROOF_REQUIRE_GPU=1"});
  }
}

TEST_CASE("a library that draws by draftproof's addresses is equal bit for bit, and calls that it lacks are named") {
  const TemporaryFolder folder;
  const std::string library = folder.file("libaddressed.so");
  compile(DRAFTPROOF_SOURCE_DIR "/tests/cli/regress/libraries/addressed.cpp", library,
          {"-std=c++20", DRAFTPROOF_LIBRARY,
           "-Wl,-rpath," + std::filesystem::path(DRAFTPROOF_LIBRARY).parent_path().string()});
  const ordered_json document =
      json_of({"regress", "--library", library, "--filter", "/V33/,/V4097/,sample/everything"}, 0);
  CHECK(document.at("within") == "bits");
  CHECK(document.at("alpha").is_null());
  CHECK(document.at("library").at("calls") == ordered_json({"sample", "verify_chain", "verify_block", "verify_tree"}));
  CHECK(document.at("library").at("not_exported") == ordered_json({"filter", "guidance", "tree_mask"}));
  CHECK(document.at("left_out") > 0);  // sample/everything has penalties
  CHECK(document.at("equal") > 40);
  // The skeleton's numbers are others.
  const auto findings =
      findings_of(faulty_kernels().run("", "sample/plain/f32/V33/,guidance/padded/f32/V33/", 1, {"--within", "bits"}));
  REQUIRE(findings.size() == 1);
  CHECK_THAT(findings.at("sample/plain/f32/V33/B4"), Contains("the reference has 0x"));
}

TEST_CASE("what is no library of kernels, or does not fit the options, is refused in one line") {
  const TemporaryFolder folder;
  const std::string text = folder.file("text.so");
  write_whole_file(text, "no library");
  check_refused({"regress", "--library", text}, {text, "cannot be loaded"});
  check_refused({"regress", "--library", folder.file("absent.so")}, {"absent.so", "is no file"});
  check_refused({"regress", "--library", DRAFTPROOF_LIBRARY}, {"exports no draftproof_kernels_describe"});
  const std::string library = faulty_kernels().library();
  const auto with = [&](const std::string& fault) {
    return run_draftproof({"regress", "--library", library, "--filter", "guidance/padded/f32/V7/"}, {"FAULT=" + fault});
  };
  check_refused(with("version"), {"is of version 99", "expected 1"});
  check_refused(with("abort"), {"loading and describing it failed", "signal 6"});
  check_refused(run_draftproof({"regress", "--library", library, "--within", "replay"}, {"FAULT=own"}),
                {"--within: is 'replay'", "expected distribution"});
  check_refused({"regress", "--library", library, "--filter", "no_such_case"}, {"no_such_case"});
  check_refused({"regress", "--library", library, "--executor", "simt"}, {"--executor: has no use with --library"});
  check_refused({"regress", "--within", "bits"}, {"--within: has no use without --library"});
  check_refused({"regress", "--samples", "500"}, {"--samples: has no use without --library"});
}
