// Measured speedups to be laid over a prediction: which rows are of the setup, and what is refused by its row.
#include "sim/predict/speedup_points.hpp"

#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

RooflineSetup llama_on_h100() {
  RooflineSetup setup;
  setup.model = find_model("Llama-3.1-8B");
  setup.gpu = find_gpu("H100");
  return setup;
}

nlohmann::json measured(const std::string& gpu) {
  return {{"hardware", gpu},     {"model", "Llama-3.1-8B"}, {"source", "lab\x1b[2J"},
          {"method", "EAGLE-3"}, {"draft", "K = 5"},        {"batch", 8},
          {"speedup", 1.75}};
}

std::string document(const std::vector<nlohmann::json>& rows) {
  return nlohmann::json{{"rows", rows}}.dump();
}

TEST_CASE(
    "of a document of validate the rows of the setup's model and GPU are points, and no text reaches a terminal") {
  const TemporaryFolder folder;
  const std::string path = folder.file("v.json");
  write_whole_file(path, document({measured("H100"), measured("A100"), measured("NVIDIA H100 SXM 80GB")}));
  const SpeedupPoints read = read_speedup_points(path, llama_on_h100());
  REQUIRE(read.points.size() == 2);
  CHECK(read.others == 1);
  CHECK(read.points[0].batch == 8);
  CHECK(read.points[0].speedup == 1.75);
  CHECK(read.points[0].source.find('\x1b') == std::string::npos);
}

TEST_CASE("a row of a document whose batch or speedup is none is refused by its number") {
  const TemporaryFolder folder;
  const std::string path = folder.file("v.json");
  const auto failure = [&](const char* field, const nlohmann::json& value) {
    nlohmann::json row = measured("H100");
    row[field] = value;
    write_whole_file(path, document({measured("H100"), row}));
    return error_of(ErrorKind::input, [&] { read_speedup_points(path, llama_on_h100()); });
  };
  for (const nlohmann::json& batch :
       {nlohmann::json(0), nlohmann::json(-3), nlohmann::json(1e300), nlohmann::json("8")})
    CHECK(failure("batch", batch) ==
          path + ", row 1: 'batch' is " + batch.dump() + "; expected an integer from 1 to 2^24");
  for (const nlohmann::json& speedup : {nlohmann::json(0), nlohmann::json(-1.5)})
    CHECK(failure("speedup", speedup) ==
          path + ", row 1: 'speedup' is " + speedup.dump() + "; expected a number above 0");
  CHECK(failure("speedup", "fast").starts_with(path + ", row 1: it has no hardware, model, source"));
}

}  // namespace
}  // namespace draftproof::testing
