// gpu/budget/budget.py on machine code written for the purpose: what it counts, and that a heavier loop does not pass.
#include "tests/support/test.hpp"

namespace {

// A loop that reads four floats a turn and has a slow way for some, behind code that comes before it and a function
// that both call. `extra`: more instructions of the loop's hot block.
std::string code_with(const std::string& extra) {
  return "\t.section\t.text._Z4hotPf\n"
         ".text._Z4hotPf:\n"
         "        /*0000*/                   S2R R0, SR_TID.X ;\n"
         "        /*0010*/                   CALL.REL.NOINC `($helper) ;\n"
         ".L_turn:\n"
         "        /*0020*/                   LDG.E.128 R4, desc[UR4][R2.64] ;\n"
         "        /*0030*/                   FSETP.GT.AND P0, PT, R4, RZ, PT ;\n"
         "        /*0040*/               @P0 BRA `(.L_slow) ;\n"
         ".L_fast:\n"
         "        /*0050*/                   FFMA R4, R4, R5, R6 ;\n"
         "        /*0060*/                   IADD3 R8, R8, R4, RZ ;\n" +
         extra +
         "        /*0070*/                   ISETP.NE.AND P1, PT, R0, RZ, PT ;\n"
         "        /*0080*/              @!P1 BRA `(.L_turn) ;\n"
         "        /*0090*/                   EXIT ;\n"
         ".L_slow:\n"
         "        /*00a0*/                   MUFU.RCP R4, R4 ;\n"
         "        /*00b0*/                   DADD R4, R4, R4 ;\n"
         "        /*00c0*/                   BRA `(.L_fast) ;\n"
         "$helper:\n"
         "        /*00d0*/                   F2I.U64 R4, R4 ;\n"
         "        /*00e0*/                   RET.REL.NODEC R2 `(_Z4hotPf) ;\n"
         "        /*00f0*/                   NOP;\n";
}

class Budget {
 public:
  Budget() {
    write_whole_file(folder_.file("loops.txt"),
                     "# a comment\n"
                     "turn | 4hotPf | loop | LDG.E.128>=1 | | 4 | 64*1000000 | 4\n"
                     "all  | 4hotPf | path | LDG.E.128>=1 | | 4 | 64*1000000 | 4\n"
                     "slow | 4hotPf | loop | MUFU.RCP$>=1 | | 4 | 64*1000000 | 4\n");
    write_code("");
  }
  void write_code(const std::string& extra) { write_whole_file(folder_.file("unit.sm_90.sass"), code_with(extra)); }
  void write_loops(const std::string& loops) { write_whole_file(folder_.file("loops.txt"), loops); }
  ProgramResult run(const std::vector<std::string>& more = {}, const std::string& compiler = "13.0") {
    std::vector<std::string> command{"python3",    DRAFTPROOF_SOURCE_DIR "/gpu/budget/budget.py",
                                     "--code",     folder_.path(),
                                     "--compiler", compiler,
                                     "--stored",   folder_.file("stored.txt"),
                                     "--loops",    folder_.file("loops.txt")};
    command.insert(command.end(), more.begin(), more.end());
    return run_command(command, {"PYTHONDONTWRITEBYTECODE=1"});
  }

 private:
  TemporaryFolder folder_;
};

// The first line of a text that begins so, with single spaces.
std::string line_of(const std::string& text, const std::string& beginning) {
  std::string words;
  for (std::size_t at = text.find("\n" + beginning) + 1; at < text.size() && text[at] != '\n'; ++at)
    if (text[at] != ' ' || words.back() != ' ') words += text[at];
  return words;
}

bool has_python() {
  if (run_command({"python3", "--version"}).exit_code == 0) return true;
  WARN("SKIPPED: python3 is not installed");
  return false;
}

}  // namespace

TEST_CASE("the budget counts the cheapest turn of a loop that has what is asked, and what a call costs") {
  if (!has_python()) return;
  Budget budget;
  const auto result = budget.run({"--update"});
  REQUIRE(result.exit_code == 0);
  // Seven instructions a turn: one of fma, three of alu, one that loads, two branches.
  CHECK(line_of(result.out, "turn") == "turn sm_90 1.75 0.25 0.75 0.00 0.00 0.25 0.50");
  // S2R, CALL, F2I and RET before it, EXIT behind.
  CHECK(line_of(result.out, "all") == "all sm_90 3.00 0.25 0.75 0.25 0.00 0.25 1.50");
  // MUFU, DADD and BRA more.
  CHECK(line_of(result.out, "slow") == "slow sm_90 2.50 0.25 0.75 0.25 0.25 0.25 0.75");
}

TEST_CASE("the budget predicts the slowest of bytes, issue slots and pipes") {
  if (!has_python()) return;
  Budget budget;
  const auto result = budget.run({"--update"});
  // 64 million elements of 4 bytes over 4.3 TB/s are 59.5 us. Three instructions in four of them go to memory, which
  // takes 32 a cycle: 64e6 / 4 / (32 * 132 * 1.755e9) = 2.2 us, less than the bytes take.
  CHECK_THAT(result.out.substr(result.out.find("Predicted")), Contains("59.5 bytes | 59.5"));
  CHECK_THAT(result.out, Contains("It ignores latency"));
}

TEST_CASE("a loop that got heavier by one instruction does not pass, nor does one that got lighter unexplained") {
  if (!has_python()) return;
  Budget budget;
  REQUIRE(budget.run({"--update"}).exit_code == 0);
  REQUIRE(budget.run().exit_code == 0);

  budget.write_code("        /*0068*/                   FMUL R4, R4, R4 ;\n");
  const auto heavier = budget.run();
  CHECK(heavier.exit_code == 1);
  CHECK_THAT(heavier.err, Contains("heavier: turn, sm_90: 2.00 issue slots for an element, 1.75 before"));
  CHECK_THAT(heavier.err, Contains("--update"));
  CHECK(budget.run({}, "14.0").exit_code == 0);  // of another compiler nothing is compared

  REQUIRE(budget.run({"--update"}).exit_code == 0);
  budget.write_code("");
  const auto lighter = budget.run();
  CHECK(lighter.exit_code == 1);
  CHECK_THAT(lighter.err, !Contains("heavier:") && Contains("explain the change"));
}

TEST_CASE("the budget says what it cannot find") {
  if (!has_python()) return;
  Budget budget;
  budget.write_loops("turn | 4coldPf | loop | LDG.E.128>=1 | | 4 | 1*1 | 4\n");
  const auto no_kernel = budget.run({"--update"});
  CHECK(no_kernel.exit_code == 2);
  CHECK_THAT(no_kernel.err, Contains("'4coldPf' fits 0 kernels; expected one"));
  budget.write_loops("turn | 4hotPf | loop | LDG.E.128>=2 | | 4 | 1*1 | 4\n");
  const auto no_loop = budget.run({"--update"});
  CHECK(no_loop.exit_code == 2);
  CHECK_THAT(no_loop.err, Contains("no way through _Z4hotPf"));
  budget.write_loops("turn | 4hotPf\n");
  const auto no_columns = budget.run({"--update"});
  CHECK(no_columns.exit_code == 2);
  CHECK_THAT(no_columns.err, Contains("line 1: expected name | kernel"));
}
