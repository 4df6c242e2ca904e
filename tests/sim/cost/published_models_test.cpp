// Parameters and caches of models against what their authors publish and against counts by hand: every preset, row by
// row of docs/model_presets.md, and public config.json files, of which public_configs.jsonl keeps the keys that matter
// (github:ai-dynamo/aiconfigurator@095f58a model_configs; the others from the models' papers and cards).
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "sim/cost/model_shape.hpp"
#include "tests/reference/trace/temporary_folder.hpp"

using namespace draftproof;

namespace {

constexpr double kContext = 32768.0;

// "50x1024x8192+10x32768x4096": layers, tokens, numbers of a token.
double sum_of(const std::string& count) {
  double sum = 0.0;
  for (const std::string_view term : split(count, '+')) {
    double product = 1.0;
    for (const std::string_view factor : split(term, 'x')) product *= read_number(factor).value();
    sum += product;
  }
  return sum;
}

// Within 3 %, or what rounds to a figure that is published as a whole number.
bool is_near(double counted_b, double published_b) {
  return std::abs(counted_b / published_b - 1.0) <= 0.03 ||
         (published_b == std::round(published_b) && std::round(counted_b) == published_b);
}

// Authors count the embedding, the head, both or neither among the active parameters.
bool is_near_active(const ModelShape& shape, double published_b) {
  const double active = shape.active_parameters(), head = shape.head_parameters;
  for (const double counted : {active, active - head, active + shape.embedding_parameters})
    if (is_near(counted / 1e9, published_b)) return true;
  return false;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

TEST_CASE("docs/model_presets.md is every preset, its parameters as published, its cache as counted by hand") {
  const std::string page = testing::read_whole_file(DRAFTPROOF_SOURCE_DIR "/docs/model_presets.md");
  std::vector<std::string> names;
  for (const std::string_view line : split(page, '\n')) {
    const auto cells = split(line, '|');
    if (cells.size() != 10 || trimmed(cells[1]) == "preset" || cells[1].starts_with("---")) continue;
    INFO(line);
    names.push_back(trimmed(cells[1]));
    const ModelShape shape = find_model(names.back());
    CHECK(shape.name == names.back());
    const auto cell = [&](std::size_t at) { return read_number(trimmed(cells[at])).value(); };
    const double total = shape.total_parameters() / 1e9, cached_mb = 2.0 * shape.cached_values(kContext) / 1e6;
    CHECK(cell(2) == Approx(total).epsilon(0.002));
    CHECK(is_near(total, cell(3)));
    CHECK(cell(4) == Approx(shape.active_parameters() / 1e9).epsilon(0.002));
    CHECK(is_near_active(shape, trimmed(cells[5]).empty() ? cell(3) : cell(5)));  // empty: of a dense model, the same
    CHECK(cell(6) == Approx(cached_mb).epsilon(0.002));
    CHECK(shape.cached_values(kContext) == Approx(sum_of(trimmed(cells[7]))).epsilon(0.001));
    CHECK(!trimmed(cells[8]).empty());
  }
  CHECK(names == model_preset_names());
}

TEST_CASE("Public config.json files give the parameters that are published and the cache that is counted by hand") {
  const std::string rows = testing::read_whole_file(DRAFTPROOF_SOURCE_DIR "/tests/sim/cost/public_configs.jsonl");
  std::size_t configs = 0;
  for (const std::string_view line : split(rows, '\n')) {
    if (line.empty()) continue;
    const auto row = nlohmann::json::parse(line);
    const std::string names = row.at("names");
    INFO(names);
    configs += split(names, ',').size();
    const ModelShape shape = model_from_config_json(row.at("config").dump(), "config.json");
    CHECK(is_near(shape.total_parameters() / 1e9, row.at("total_b")));
    CHECK(is_near_active(shape, row.at("active_b")));
    CHECK(shape.cached_values(kContext) == Approx(sum_of(row.at("kv"))).epsilon(0.001));
  }
  CHECK(configs >= 86);
}

TEST_CASE("A preset costs what the config.json of its model costs") {
  const std::string rows = testing::read_whole_file(DRAFTPROOF_SOURCE_DIR "/tests/sim/cost/public_configs.jsonl");
  std::size_t compared = 0;
  for (const std::string_view line : split(rows, '\n')) {
    if (line.empty()) continue;
    const auto row = nlohmann::json::parse(line);
    for (const std::string_view name : split(row.at("names").get_ref<const std::string&>(), ',')) {
      const auto preset = match_model(trimmed(name));
      // Names of families hold their members' (Qwen3-VL-2B is 1.7B of text), and quantised copies are of their own.
      if (!preset || !trimmed(name).ends_with(preset->name)) continue;
      INFO(name);
      ++compared;
      const ModelShape config = model_from_config_json(row.at("config").dump(), "config.json");
      CHECK(config.total_parameters() == Approx(preset->total_parameters()).epsilon(1e-9));
      CHECK(config.active_parameters() == Approx(preset->active_parameters()).epsilon(1e-9));
      CHECK(config.layers == preset->layers);
      for (const double context : {1.0, 1000.0, 100'000.0}) {
        CHECK(config.cached_values(context) == Approx(preset->cached_values(context)));
        CHECK(config.read_values(context) == Approx(preset->read_values(context)));
        CHECK(config.attention_products(context) == Approx(preset->attention_products(context)));
      }
      CHECK(config.state_values == preset->state_values);
      CHECK(name_of(config.precision) == name_of(preset->precision));
      CHECK(config.precision.weight_bytes == Approx(preset->precision.weight_bytes));
      CHECK(config.precision.bytes_of_expert() == Approx(preset->precision.bytes_of_expert()));
    }
  }
  CHECK(compared >= 20);
}
