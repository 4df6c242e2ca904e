#include "studies/figures/table.hpp"

#include "sim/csv.hpp"
#include "tests/support/test.hpp"

namespace {

TEST_CASE("a table comes back from its CSV as it was") {
  Table table{{"name", "draft, ms", "count"}, {}};
  table.rows.push_back({std::string("plain"), 0.1, std::int64_t{-3}});
  table.rows.push_back({std::string("a \"quoted\", one\nof two lines"), 1.0 / 3.0, std::int64_t{0}});
  const CsvTable read = parse_csv(to_csv(table), "table");
  CHECK(read.columns == table.columns);
  REQUIRE(read.rows.size() == 2);
  CHECK(read.rows[0].fields == std::vector<std::string>{"plain", "0.1", "-3"});
  CHECK(read.rows[1].fields[0] == "a \"quoted\", one\nof two lines");
  CHECK(std::stod(read.rows[1].fields[1]) == 1.0 / 3.0);
}

TEST_CASE("what is not a number is an empty field, and a row of another length is refused") {
  CHECK(to_csv({{"x", "y"}, {{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}}}) ==
        "x,y\n,\n");
  CHECK_THROWS_WITH(to_csv({{"x", "y"}, {{1.0}}}), Contains("1 cells; expected 2"));
}

}  // namespace
