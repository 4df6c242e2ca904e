// CSV as spreadsheets write it.
#include "sim/csv.hpp"
#include "tests/support/test.hpp"

TEST_CASE("Quoted fields of a CSV file hold commas, quotes and line ends, and lines are counted through them") {
  const CsvTable table = parse_csv("a, b ,c\r\n1,\"x, \"\"y\"\"\nz\",3\r\n\n4,,\n", "f.csv");
  CHECK(table.columns == std::vector<std::string>{"a", "b", "c"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].fields == std::vector<std::string>{"1", "x, \"y\"\nz", "3"});
  CHECK(table.rows[0].line == 2);
  CHECK(table.rows[1].fields == std::vector<std::string>{"4", "", ""});
  CHECK(table.rows[1].line == 5);
  CHECK(table.column("c") == 2);
  CHECK(table.column("d") == -1);
}

TEST_CASE("A byte order mark and a missing last line end change nothing") {
  const CsvTable table = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\n1,2",
      "f.csv");
  CHECK(table.columns.front() == "a");
  CHECK(table.rows.at(0).fields == std::vector<std::string>{"1", "2"});
}

TEST_CASE("An empty CSV file and a quote that does not end are errors with the file's name") {
  CHECK_THROWS_WITH(parse_csv("", "f.csv"), Catch::StartsWith("f.csv: it is empty"));
  CHECK_THROWS_WITH(parse_csv("a\nb\n\"c\n", "f.csv"), "f.csv:3: a quote does not end");
}
