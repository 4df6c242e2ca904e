#include "base/json_text.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/error_of.hpp"

using namespace draftproof;

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
    CHECK(error_of(ErrorKind::input, [&] { parse_json<nlohmann::ordered_json>(text, "f"); }) ==
          "f: nests deeper than 64 levels");
  CHECK(parse_json<nlohmann::json>("[1, 2], [3]", "f").is_discarded());
  CHECK(parse_json<nlohmann::json>("[[], [], {}]", "f").size() == 3);
}
