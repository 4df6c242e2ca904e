#include "cli/shared/json_document.hpp"

#include "tests/support/test.hpp"

namespace {

constexpr double kInfiniteDouble = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

std::string written(const Json& document) {
  std::ostringstream out;
  write_json(out, "out", document);
  return out.str();
}

std::string message_of_writing(const Json& document) {
  std::ostringstream out;
  const std::string message = error_of(ErrorKind::internal, [&] { write_json(out, "out", document); });
  CHECK(out.str().empty());
  return message;
}

TEST_CASE("a document with a number that is not finite is refused by the key's name") {
  Json document;
  document["list"] = {1.0, 2.0};
  CHECK_NOTHROW(written(document));
  document["list"][1] = kNotANumber;
  CHECK(message_of_writing(document).rfind("/list/1: ", 0) == 0);
  document["list"][1] = nullptr;
  CHECK_NOTHROW(written(document));
  document["deep"]["rate"] = -kInfiniteDouble;
  CHECK(message_of_writing(document).rfind("/deep/rate: ", 0) == 0);
}

TEST_CASE("finite gives the value back or names it") {
  CHECK(finite("ms", 1.5) == 1.5);
  CHECK_THROWS_AS(finite("ms", kInfiniteDouble), Error);
  CHECK_THROWS_WITH(finite("ms", kNotANumber), Catch::StartsWith("ms: "));
}

TEST_CASE("numbers survive being written and read") {
  const Json document = {{"third", 1.0 / 3.0}, {"big", 18446744073709551615ULL}, {"least", 5e-324}};
  const Json read = Json::parse(written(document));
  CHECK(read.at("third").get<double>() == 1.0 / 3.0);
  CHECK(read.at("big").get<std::uint64_t>() == 18446744073709551615ULL);
  CHECK(read.at("least").get<double>() == 5e-324);
}

TEST_CASE("bytes that are not UTF-8 become the replacement character") {
  const std::string text = written(Json{{"text", "a\xff\x1b"}});
  CHECK(Json::parse(text).at("text") == "a\xEF\xBF\xBD\x1b");
  CHECK(text.find('\x1b') == std::string::npos);  // the escape byte itself would act on a terminal
}

TEST_CASE("a stream that fails is an input error that names it") {
  std::ofstream full("/dev/full");
  CHECK_THROWS_WITH(write_json(full, "result.json", Json{{"a", 1}}), Catch::StartsWith("result.json: "));
}

}  // namespace
