// The tool that plants faults: does it find every kind, and keep its hands off what is no code?
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/run_program.hpp"

namespace draftproof::testing {
namespace {

bool has_python() {
  if (run_command({"sh", "-c", "command -v python3"}).exit_code == 0) return true;
  WARN("SKIPPED: python3 is not installed");
  return false;
}

TEST_CASE("faults of every kind are planted in code, and none in comments, strings and declarations") {
  if (!has_python()) return;
  const TemporaryFolder folder;
  const std::string file = folder.file("a.cuh");
  write_whole_file(file,
                   "#include <a < b>\n"
                   "// i < 1 && j\n"
                   "static_assert(1 < 2);\n"
                   "void f(int count, const Row& row) {\n"
                   "  for (int i = begin; i < count; ++i) out[i] = \"1 < 2\";\n"
                   "  if (a && b) c = d - e;\n"
                   "  g(view.row_stride, out_stride);\n"
                   "    __syncthreads();\n"
                   "}\n");
  const ProgramResult run = run_command({"python3", DRAFTPROOF_SOURCE_DIR "/tests/mutation/faults.py", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  std::string expected;
  for (const char* line : {"5:25 relation: < -> <=", "5:27 loop end: count -> count - 1",
                           "5:27 loop end: count -> count + 1", "6:9 connective: && -> ||", "6:21 sign: - -> +",
                           "7:5 stride: view.row_stride -> out_stride", "7:22 stride: out_stride -> view.row_stride",
                           "7:5 argument: view.row_stride, out_stride -> out_stride, view.row_stride",
                           "7:5 argument: view.row_stride -> {}", "7:22 argument: out_stride -> {}",
                           "7:20 argument: , out_stride -> nothing", "8:5 barrier: __syncthreads(); -> ;"})
    expected += file + ":" + line + "\n";
  CHECK(run.out == expected);
}

TEST_CASE("a seed gives the same faults again and another seed gives others") {
  if (!has_python()) return;
  const auto faults = [](const std::string& seed) {
    const ProgramResult run = run_command({"python3", DRAFTPROOF_SOURCE_DIR "/tests/mutation/run.py", "--list",
                                           "--count", "20", "--only", "gpu/kernels", "--seed", seed});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return run.out;
  };
  const std::string first = faults("1");
  CHECK(std::count(first.begin(), first.end(), '\n') == 20);
  CHECK(first == faults("1"));
  CHECK(first != faults("2"));
}

}  // namespace
}  // namespace draftproof::testing
