// Parameters and caches of models against what their authors publish and against counts by hand: every preset, row by
// row of published_models.tsv (billions; numbers of 16 bits that 32,768 tokens cache, as layers x tokens x numbers of a
// token), and public config.json files, of which public_configs.jsonl keeps the keys that matter
// (github:ai-dynamo/aiconfigurator@095f58a model_configs; the others from the models' papers and cards).
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "sim/cost/model_shape.hpp"
#include "tests/support/test.hpp"

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

TEST_CASE("Every preset has its parameters as published and its cache as counted by hand") {
  const std::string table = read_whole_file(DRAFTPROOF_SOURCE_DIR "/tests/sim/cost/published_models.tsv");
  std::vector<std::string> names;
  for (const std::string_view line : split(table, '\n')) {
    if (line.empty() || line.starts_with("preset\t")) continue;
    INFO(line);
    const auto cells = split(line, '\t');
    REQUIRE(cells.size() == 8);
    names.emplace_back(cells[0]);
    const ModelShape shape = find_model(names.back());
    CHECK(shape.name == names.back());
    const auto cell = [&](std::size_t at) { return read_number(cells[at]).value(); };
    const double total = shape.total_parameters() / 1e9, cached_mb = 2.0 * shape.cached_values(kContext) / 1e6;
    CHECK(cell(1) == Approx(total).epsilon(0.002));
    CHECK(is_near(total, cell(2)));
    CHECK(cell(3) == Approx(shape.active_parameters() / 1e9).epsilon(0.002));
    CHECK(is_near_active(shape, cells[4].empty() ? cell(2) : cell(4)));  // empty: of a dense model, the same
    CHECK(cell(5) == Approx(cached_mb).epsilon(0.002));
    CHECK(shape.cached_values(kContext) == Approx(sum_of(std::string(cells[6]))).epsilon(0.001));
    CHECK(!cells[7].empty());
  }
  CHECK(names == model_preset_names());
}

TEST_CASE("Public config.json files give the parameters that are published and the cache that is counted by hand") {
  const std::string rows = read_whole_file(DRAFTPROOF_SOURCE_DIR "/tests/sim/cost/public_configs.jsonl");
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
  CHECK(configs >= 150);
}

TEST_CASE("What several layers share is stored once and read by each of them") {
  // Attention over 2 x 64 numbers and a feed-forward of 128, in front of the last three of five layers.
  const auto model_of = [](const std::string& blocks) {
    return model_from_config_json(
        R"({"model_type": "zamba2", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
            "num_hidden_layers": 5, "n_mamba_heads": 2, "mamba_d_state": 16, "adapter_rank": 8, "vocab_size": 100,
            "hybrid_layer_ids": [2, 3, 4], "num_mem_blocks": )" +
            blocks + "}",
        "config.json");
  };
  const double block = 3.0 * 128 * 128 + 128.0 * 64 + 3.0 * 64 * 128;
  const ModelShape one = model_of("1"), two = model_of("2"), three = model_of("3");
  CHECK(one.again_parameters == 2 * block);
  CHECK(two.again_parameters == block);
  CHECK(three.again_parameters == 0.0);
  CHECK(three.total_parameters() - one.total_parameters() == 2 * block);
  CHECK(three.active_parameters() == one.active_parameters());
  CHECK(one.cached_values(10) == 3.0 * 2 * 128 * 10);
}

TEST_CASE("A model that encodes, or of layers that the file leaves open, is refused by the key that says it") {
  const auto error_of = [](const std::string& keys) {
    try {
      model_from_config_json("{" + keys + "}", "config.json");
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  const std::string shape = R"("hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8,
      "num_hidden_layers": 12, "vocab_size": 49408)";
  CHECK(error_of(shape) == "read");
  // In a wrapper, whose own type says nothing.
  CHECK_THAT(error_of(R"("model_type": "clip", "text_config": {"model_type": "clip_text_model", )" + shape + "}"),
             Contains("'clip_text_model' has an encoder"));
  CHECK_THAT(error_of(R"("model_type": "blip-2", "text_config": {"model_type": "t5", )" + shape + "}"),
             Contains("'t5' has an encoder"));
  CHECK_THAT(error_of(R"("model_type": "florence2", "text_config": {"is_encoder_decoder": true, )" + shape + "}"),
             Contains("has an encoder"));
  CHECK_THAT(error_of(R"("architectures": ["NewForMaskedLM"], )" + shape),
             Contains("its architecture 'NewForMaskedLM' fills gaps"));
  CHECK_THAT(error_of(R"("model_type": "qwen2", "is_causal": false, )" + shape), Contains("looks ahead"));
  CHECK_THAT(error_of(R"("model_type": "gemma3_text", "use_bidirectional_attention": true, )" + shape),
             Contains("looks ahead"));
  CHECK(error_of(R"("model_type": "bert", "is_decoder": true, )" + shape) == "read");
  CHECK_THAT(error_of(R"("model_type": "zamba2", )" + shape),
             Contains("it has neither layers_block_type nor hybrid_layer_ids"));
  CHECK_THAT(error_of(R"("model_type": "deepseek_v4", "sliding_window": 128, "head_dim": 64, "q_lora_rank": 64,
                         "o_lora_rank": 64, )" +
                      shape),
             Contains("it has neither compress_ratios nor layer_types"));
  // Doge writes a number of experts that only is_moe gives it.
  const std::string experts = R"("model_type": "doge", "num_experts": 16384, "num_experts_per_tok": 64, )" + shape;
  CHECK(error_of(R"("is_moe": false, )" + experts) == "read");
  CHECK_THAT(error_of(R"("is_moe": true, )" + experts), Contains("single neurons (is_moe)"));
}

TEST_CASE("A preset costs what the config.json of its model costs") {
  const std::string rows = read_whole_file(DRAFTPROOF_SOURCE_DIR "/tests/sim/cost/public_configs.jsonl");
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
