#include "base/text_encoding.hpp"

#include "tests/support/test.hpp"

using namespace std::string_literals;

TEST_CASE("UTF-8 with line feeds is left as it is") {
  CHECK(!as_utf8(""));
  CHECK(!as_utf8("a\nb"));
  CHECK(!as_utf8("a\rb"));
  CHECK(!as_utf8("\xC3\xA9"));
}

TEST_CASE("byte order marks, UTF-16 and carriage returns become UTF-8 with line feeds") {
  CHECK(as_utf8("\xEF\xBB\xBF{}") == "{}");
  CHECK(as_utf8("a\r\nb\r\r\nc\r") == "a\nb\r\nc\r");
  CHECK(as_utf8("\xFF\xFE"s + "h\0i\0\r\0\n\0"s) == "hi\n");
  CHECK(as_utf8("\xFE\xFF"s + "\0h\0i"s) == "hi");
  CHECK(as_utf8("{\0}\0"s) == "{}");
  CHECK(as_utf8("\0{\0}"s) == "{}");
  // Python: '\u00e9\u20ac\U0001f600'.encode('utf-16-le'), and in UTF-8.
  CHECK(as_utf8("\xFF\xFE\xE9\x00\xAC\x20\x3D\xD8\x00\xDE"s) == "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(as_utf8("\xFF\xFE\x3D\xD8h\0"s) == "\xEF\xBF\xBDh");  // half of a pair
  CHECK(as_utf8("\xFF\xFEh\0i"s) == "h");                     // cut within a character
}
