#include "base/json_text.hpp"

#include "tests/support/test.hpp"

TEST_CASE("JSON nests up to 64 levels, arrays and objects alike, and brackets in strings are text") {
  const auto nested = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += i % 2 == 0 ? "[" : R"({"a\\":)";
    text += R"("]}[{\"[{")";
    for (int i = levels; i-- > 0;) text += i % 2 == 0 ? "]" : "}";
    return text;
  };
  CHECK(parse_json<nlohmann::json>(nested(64), "f").is_array());
  for (const std::string& text : {nested(65), nested(50000), std::string(50000, '[')})
    CHECK(error_of(ErrorKind::input, [&] { parse_json<ordered_json>(text, "f"); }) == "f: nests deeper than 64 levels");
  CHECK(parse_json<nlohmann::json>("[1, 2], [3]", "f").is_discarded());
  CHECK(parse_json<nlohmann::json>("[[], [], {}]", "f").size() == 3);
}

TEST_CASE("numbers that Python writes and JSON has not are strings, so that whoever needs a number names the field") {
  const auto read = [](const std::string& text) { return parse_json<nlohmann::json>(text, "f"); };
  CHECK(read("[NaN, Infinity, -Infinity, -1, 2]").dump() == R"(["NaN","Infinity","-Infinity",-1,2])");
  CHECK(read(R"({"a": NaN, "NaN": "Infinity, \"NaN"})").dump() == R"({"NaN":"Infinity, \"NaN","a":"NaN"})");
  CHECK(read("Infinity") == "Infinity");
  for (const char* text : {"[Inf]", "[nan]", "[Infinityy]", "[- Infinity]", "[N]"}) CHECK(read(text).is_discarded());
  CHECK(read("\xFF\xFE" + std::string("[\0"
                                      "1\0]\0",
                                      6))
            .dump() == "[1]");
  CHECK(read("\xEF\xBB\xBF[1]").dump() == "[1]");
  std::string reason;
  CHECK(parse_json<nlohmann::json>("[1,", "f", &reason).is_discarded());
  CHECK(reason.find("parse error") != std::string::npos);
}
