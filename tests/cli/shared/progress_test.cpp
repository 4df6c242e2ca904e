#include "cli/shared/progress.hpp"

#include "tests/support/test.hpp"

namespace {

TEST_CASE("a progress line states share and rate and time left") {
  CHECK(progress_line("rows", 250, 1000, "rows", 0.5, 200) ==
        "rows [######..................] 25 %, 500 rows/s, 0:02 left");
  CHECK(progress_line("rows", 1000, 1000, "rows", 2.0, 200) ==
        "rows [########################] 100 %, 500 rows/s, 0:00 left");
  CHECK(progress_line("x", 1, 36001, "steps", 2.0, 200) ==
        "x [........................] 0 %, 0.50 steps/s, 20:00:00 left");
  CHECK(progress_line("x", 3000000, 6000000, "B", 2.0, 200) ==
        "x [############............] 50 %, 1.50M B/s, 0:02 left");
}

TEST_CASE("a progress line leaves out what is not known") {
  CHECK(progress_line("rows", 0, 1000, "rows", 0.5, 200) == "rows [........................] 0 %");
  CHECK(progress_line("rows", 7, 0, "rows", 2.0, 200) == "rows 7 rows, 3.50 rows/s");
  CHECK(progress_line("rows", 7, 0, "rows", 0.0, 200) == "rows 7 rows");
}

TEST_CASE("more work than announced does not overrun the bar") {
  CHECK(progress_line("rows", 30, 20, "rows", 0.0, 200) == "rows [########################] 100 %");
}

TEST_CASE("without a terminal progress is a line at every interval, and nothing is drawn over") {
  std::ostringstream out;
  {
    Progress progress("sim", 4, "runs", out, false, std::chrono::milliseconds(0));
    progress.advance();
    progress.say("study: a done");
    progress.advance(3);
  }
  CHECK(out.str().starts_with("sim [######..................] 25 %, "));
  CHECK(out.str().find(" left\nstudy: a done\nsim [########################] 100 %, ") != std::string::npos);
  CHECK(out.str().ends_with("0:00 left\n"));
  CHECK(out.str().find_first_of("\r\033") == std::string::npos);
  std::ostringstream quick;
  Progress("sim", 4, "runs", quick, false, std::chrono::milliseconds(30'000)).advance();
  CHECK(quick.str() == "");
}

TEST_CASE("a progress line fits the terminal") {
  CHECK(progress_line("rows", 250, 1000, "rows", 0.5, 12) == "rows [######");
  CHECK(progress_line("rows", 250, 1000, "rows", 0.5, 0).size() == 1);
}

}  // namespace
