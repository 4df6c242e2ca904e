#include "sim/predict/speedup_points.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "sim/cost/measured_point.hpp"
#include "sim/toml.hpp"

namespace draftproof {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kBatchMax = 1 << 24;
constexpr std::uint64_t kDocumentBytesMax = std::uint64_t{1} << 28;

bool is_of(const std::string& model, const std::string& gpu, const RooflineSetup& setup) {
  return model == setup.model.name && gpu == setup.gpu.name;
}

SpeedupPoints points_of_csv(const std::string& path, const RooflineSetup& setup) {
  SpeedupPoints read;
  for (const MeasuredPoint& point : read_measured_data(path).points) {
    const RooflineSetup& measured = point.setups.front();
    if (!is_of(measured.model.name, measured.gpu.name, setup)) {
      ++read.others;
      continue;
    }
    read.points.push_back({printable_line(point.source), printable_line(point.method), point.draft, point.batch.batch,
                           point.speedup, point.speedup, point.speedup});
  }
  return read;
}

// Names of presets for the words of a row; empty where they name none.
template <class Preset>
std::string name_or_empty(const std::optional<Preset>& preset) {
  return preset ? preset->name : "";
}

SpeedupPoints points_of_json(const std::string& path, const RooflineSetup& setup) {
  const InputFile file(path, kDocumentBytesMax);
  const ordered_json document = parse_json<ordered_json>(file.text(), path);
  if (!document.is_object() || !document.contains("rows") || !document.at("rows").is_array())
    throw input_error(path, "is no document of `draftproof validate --json`; expected an object with a list \"rows\"");
  SpeedupPoints read;
  std::size_t number = 0;
  for (const ordered_json& row : document.at("rows")) {
    const std::string where = path + ", row " + std::to_string(number++);
    try {
      const std::string gpu = name_or_empty(match_gpu(row.at("hardware").get<std::string>()));
      const std::string model = name_or_empty(match_model(row.at("model").get<std::string>()));
      if (!is_of(model, gpu, setup)) {
        ++read.others;
        continue;
      }
      const ordered_json& batch = row.at("batch");
      if (!batch.is_number_integer() || batch < 1 || batch > kBatchMax)
        throw input_error(where, "'batch' is " + printable_line(batch.dump(-1, ' ', true)).substr(0, 40) +
                                     "; expected an integer from 1 to 2^24");
      const double speedup = row.at("speedup").get<double>();
      if (!(speedup > 0.0))
        throw input_error(where, "'speedup' is " + row.at("speedup").dump() + "; expected a number above 0");
      const auto text = [&](const char* key) { return printable_line(row.at(key).get<std::string>()); };
      read.points.push_back(
          {text("source"), text("method"), text("draft"), batch.get<std::int64_t>(), speedup, speedup, speedup});
    } catch (const ordered_json::exception&) {
      throw input_error(where,
                        "it has no hardware, model, source, method, draft, batch or speedup; expected a row of "
                        "`draftproof validate --json`");
    }
  }
  return read;
}

// The drafter and the draft of a policy of a scenario.
std::pair<std::string, std::string> draft_of_policy(const TomlValue& scenario, const std::string& name) {
  for (const TomlValue& policy : scenario.at("policy").items()) {
    if (policy.at("name").text() != name) continue;
    return {policy.text_or("drafter", scenario.text_or("drafter", "")), policy.at("speculation").text()};
  }
  return {"", name};
}

SpeedupPoints points_of_experiment(const std::string& path, const RooflineSetup& setup) {
  const TomlValue file = read_toml(path);
  if (file.text_or("kind", "") != "scenario" || file.text_or("quantity", "") != "speedup" ||
      file.text_or("x", "") != "batch size")
    throw input_error(path,
                      "is no experiment of speedups by batch size; expected kind = \"scenario\", quantity = "
                      "\"speedup\", x = \"batch size\"");
  const TomlValue scenario =
      read_toml((std::filesystem::path(path).parent_path() / file.at("scenario").text()).string());
  SpeedupPoints read;
  const TomlValue& server = scenario.at("server");
  const bool same = is_of(find_model(server.at("model").text()).name, find_gpu(server.at("gpu").text()).name, setup);
  for (const TomlValue& claim : file.at("claim").items()) {
    if (!same) {
      ++read.others;
      continue;
    }
    const TomlValue& claimed = claim.at("claimed");
    const bool range = claimed.kind() == TomlValue::Kind::array && claimed.items().size() == 2;
    const double low = range ? claimed.items()[0].number() : claimed.number();
    const double high = range ? claimed.items()[1].number() : low;
    const auto [drafter, draft] = draft_of_policy(scenario, claim.at("policy").text());
    read.points.push_back({"quoted: " + file.at("title").text(), drafter, draft, claim.at("x").integer(1, kBatchMax),
                           0.5 * (low + high), low, high});
  }
  return read;
}

}  // namespace

SpeedupPoints read_speedup_points(const std::string& path, const RooflineSetup& setup) {
  SpeedupPoints read;
  if (path.ends_with(".csv")) {
    read = points_of_csv(path, setup);
  } else if (path.ends_with(".json")) {
    read = points_of_json(path, setup);
  } else if (path.ends_with(".toml")) {
    read = points_of_experiment(path, setup);
  } else {
    throw input_error(path,
                      "has an unknown ending; expected measured speedups in .csv, a document of `draftproof "
                      "validate` in .json, or an experiment in .toml");
  }
  read.path = path;
  return read;
}

}  // namespace draftproof
