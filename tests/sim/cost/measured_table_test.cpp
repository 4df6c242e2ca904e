// A table of measured step times as a cost model.
#include <catch2/catch.hpp>

#include "sim/cost/measured_table.hpp"

using namespace draftproof;

namespace {

const char* const kTable =
    "part,rows,kv_tokens,ms\n"
    "target,1,0,5\ntarget,8,0,5.5\ntarget,64,0,9\n"
    "target,1,10000,6\ntarget,8,10000,6.5\ntarget,64,10000,10\n"
    "draft,1,,0.4\ndraft,8,,0.6\noverhead,1,,1\nspeculation,1,,0.5\n";

MeasuredTable table() {
  return MeasuredTable(parse_csv(kTable, "t.csv"), "t.csv");
}

double ms(double ns) {
  return ns / 1e6;
}

}  // namespace

TEST_CASE("Measured times come back at the measured rows, and between them nothing falls or overshoots") {
  const MeasuredTable measured = table();
  CHECK(ms(measured.target_ns({1, 1, 0, 0, 1})) == Approx(5.0));
  CHECK(ms(measured.target_ns({8, 8, 0, 0, 8})) == Approx(5.5));
  CHECK(ms(measured.target_ns({64, 8, 10000, 0, 8})) == Approx(10.0));
  CHECK(ms(measured.target_ns({8, 8, 5000, 0, 8})) == Approx(6.0));
  CHECK(ms(measured.target_ns({8, 8, 20000, 0, 8})) == Approx(7.5));
  double last = 0.0;
  for (int rows = 1; rows <= 64; ++rows) {
    const double now = ms(measured.target_ns({rows, rows, 0, 0, rows}));
    CHECK(now >= last);
    CHECK(now <= 9.0);
    last = now;
  }
  CHECK(ms(measured.draft_ns({8, 5, 40, 0, false})) == Approx(5 * 0.6));
  CHECK(ms(measured.overhead_ns(4, {})) == Approx(1.0));
  CHECK(ms(measured.overhead_ns(4, {4, 5, 20, 0, false})) == Approx(1.5));
}

TEST_CASE("Beyond the last row the last slope goes on, and the table says that it extrapolates") {
  const MeasuredTable measured = table();
  CHECK(ms(measured.target_ns({120, 8, 0, 0, 8})) == Approx(9.0 + 56 * (9.0 - 5.5) / 56));
  CHECK(measured.extrapolates(PassLoad{64, 8, 10000, 0, 8}).empty());
  CHECK(measured.extrapolates(PassLoad{65, 8, 0, 0, 8}) == "65 rows: measured up to 64");
  CHECK(measured.extrapolates(PassLoad{8, 8, 10001, 0, 8}) == "10001 KV tokens: measured up to 10000");
  CHECK(measured.extrapolates(DraftLoad{16, 5, 80, 0, false}) == "16 rows of a draft pass: measured up to 8");
  CHECK(measured.extrapolates(DraftLoad{1, 5, 5, 0, false}).empty());
}

TEST_CASE("Noise that lets a longer pass look shorter is averaged out") {
  const MonotoneCurve curve({1, 2, 3, 4}, {5.0, 7.0, 6.0, 9.0});
  CHECK(curve.at(1) == 5.0);
  CHECK(curve.at(2) == 6.5);
  CHECK(curve.at(2.5) == Approx(6.5));
  CHECK(curve.at(3) == 6.5);
  CHECK(curve.at(4) == 9.0);
  CHECK(curve.at(0) == 5.0);
}

TEST_CASE("What is wrong in a table of step times is named with its line") {
  const auto error = [](const std::string& text) { return MeasuredTable(parse_csv(text, "t.csv"), "t.csv"); };
  CHECK_THROWS_WITH(error("rows,ms\n1,2\n"), "t.csv: it lacks a column; expected part, rows and ms");
  CHECK_THROWS_WITH(error("part,rows,ms\nverify,1,2\n"),
                    Catch::StartsWith("t.csv:2: part is 'verify'; expected target"));
  CHECK_THROWS_WITH(error("part,rows,ms\ntarget,1,0\n"), Catch::StartsWith("t.csv:2: ms is '0'; expected"));
  CHECK_THROWS_WITH(error("part,rows,ms\ntarget,x,1\n"), Catch::StartsWith("t.csv:2: rows is 'x'; expected"));
  CHECK_THROWS_WITH(error("part,rows,ms\ntarget,1\n"), Catch::StartsWith("t.csv:2: it has 2 fields; expected 3"));
  CHECK_THROWS_WITH(error("part,rows,ms\ndraft,1,1\n"), "t.csv: it has no row of part target; expected at least one");
}
