// draftproof regress --python: functions of Python pass the cases of --library, and faults planted in them are found.
#include "tests/support/test.hpp"

namespace {

const std::string kNumpyKernels = DRAFTPROOF_SOURCE_DIR "/tests/cli/regress/libraries/numpy_kernels.py";

bool numpy_is_here() {
  const bool is_here =
      run_command({"sh", "-c", "\"${DRAFTPROOF_PYTHON:-python3}\" -I -c 'import numpy'"}).exit_code == 0;
  if (!is_here) WARN("SKIPPED: no Python with numpy; name one in DRAFTPROOF_PYTHON");
  return is_here;
}

ordered_json run_numpy(const std::string& fault, const std::string& what, const std::string& filter, int exit_code,
                       const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"regress",   "--python", kNumpyKernels + what, "--filter", filter,
                                     "--samples", "1000"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  INFO(fault);
  return json_of(arguments, exit_code, {"FAULT=" + fault});
}

std::string first_finding(const ordered_json& document) {
  for (const auto& row : document.at("rows"))
    if (row.at("verdict") == "different") return row.at("finding").get<std::string>();
  return "";
}

}  // namespace

TEST_CASE("functions of Python that are named as calls pass the cases of a library") {
  if (!numpy_is_here()) return;
  const ordered_json document = run_numpy("", "", "/V7/,/V33/,tree_mask/", 0);
  CHECK(document.at("within") == "replay");
  CHECK(document.at("library").at("calls") ==
        ordered_json({"filter", "sample", "verify_chain", "guidance", "tree_mask"}));
  CHECK(document.at("different") == 0);
  CHECK(document.at("equal") > 30);
  CHECK(document.at("untested").empty());
}

TEST_CASE("faults of functions are found: too much mass, no residual, a written input, an exception, an end") {
  if (!numpy_is_here()) return;
  const std::string filters = "filter/every_filter/f32/V33/,filter/top_p_alone/f32/V1000/";
  CHECK_THAT(first_finding(run_numpy("top_p", "", filters, 1)),
             Contains("wrongly kept") && Contains("run it again: draftproof regress --python " + kNumpyKernels));
  CHECK_THAT(first_finding(run_numpy("residual", "", "verify_chain/ragged/probabilities_f32/probabilities_f32/V7/", 1)),
             Contains("rejections are impossible under the distribution"));
  const std::string one = "filter/plain/f32/V33/";
  CHECK_THAT(first_finding(run_numpy("input", "", one, 1)), Contains("logits: the call wrote to this input"));
  CHECK_THAT(first_finding(run_numpy("raises", "", one, 1)), Contains("filter: IndexError: row 7 of 4"));
  CHECK_THAT(first_finding(run_numpy("exit", "", one, 1)), Contains("Python: it ended with exit code 3"));
  CHECK_THAT(first_finding(run_numpy("shape", "", one, 1)),
             Contains("filtered: has the shape [4, 32]; expected [4, 33]"));
}

TEST_CASE("one function with a name of its own is tested as a call, without what its parameters do not name") {
  if (!numpy_is_here()) return;
  const ordered_json document =
      run_numpy("", ":top_p_alone", "sample/top_p_alone/f32/V1000/,sample/plain/f32/V33/", 0, {"--call", "sample"});
  CHECK(document.at("within") == "distribution");
  CHECK(document.at("equal") == 2);
  CHECK(run_numpy("", ":seeds_alone", "sample/top_p_alone/f32/V1000/", 0, {"--call", "sample"}).at("equal") == 1);
  // One that takes no notice of the step draws the same token several times.
  CHECK_THAT(first_finding(run_numpy("step", ":top_p_alone", "sample/top_p_alone/f32/V1000/", 1, {"--call", "sample"})),
             Contains("correlat"));
  CHECK_FALSE(
      first_finding(run_numpy("top_p", ":top_p_alone", "sample/top_p_alone/f32/V1000/", 1, {"--call", "sample"}))
          .empty());
  check_refused({"regress", "--python", kNumpyKernels + ":top_p_alone"}, {"top_p_alone is no call's name", "--call"});
  check_refused({"regress", "--python", kNumpyKernels + ":wrong", "--call", "filter"},
                {"wrong takes target_logits", "top_k"});
  check_refused({"regress", "--python", "no_such_module"}, {"no_such_module: cannot be tested: ModuleNotFoundError"});
  check_refused({"regress", "--python", kNumpyKernels, "--library", "x.so"}, {"--library: has no use with --python"});
  check_refused({"regress", "--python", kNumpyKernels, "--call", "sample"},
                {"--call: has no use without MODULE:FUNCTION"});
}
