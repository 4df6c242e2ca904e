#include "base/csv_text.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a CSV field is quoted where it must be, and is no formula of a spreadsheet") {
  CHECK(csv_field("") == "");
  CHECK(csv_field("plain text") == "plain text");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("a\"b") == "\"a\"\"b\"");
  CHECK(csv_field("a\nb") == "\"a\nb\"");
  CHECK(csv_field(" a") == "\" a\"");
  for (const char* const formula : {"=1+1", "+1+1", "-1+1", "@SUM(A1)", "\tx", "-", "=", "-nan-"})
    CHECK(csv_field(formula) == std::string("'") + formula);
  CHECK(csv_field("=HYPERLINK(\"http://x\",1)") == "\"'=HYPERLINK(\"\"http://x\"\",1)\"");
  CHECK(csv_field("\rx") == "\"'\rx\"");
  for (const char* const number : {"-1", "-0.5", "-1e-9", "1.5"}) CHECK(csv_field(number) == number);
}
