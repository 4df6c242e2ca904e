#include "sim/cost/model_shape.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "sim/cost/model_fields.hpp"
#include "sim/cost/preset_folder.hpp"

namespace draftproof {
namespace {

ModelShape model_of(const TomlValue& entry) {
  entry.allow_only(
      {"name",       "aliases",       "layers",    "width",     "heads",        "kv_heads",          "head_dim",
       "ffn",        "gated",         "vocab",     "tied",      "experts",      "experts_per_token", "expert_ffn",
       "shared_ffn", "expert_layers", "kv_layers", "kv_values", "parameters_b", "native_bits",       "source"});
  ModelFields fields;
  fields.name = entry.at("name").text();
  fields.source = entry.text_or("source", entry.where());
  fields.layers = entry.at("layers").number(1, 1e4);
  fields.width = entry.at("width").number(1, 1e6);
  fields.heads = entry.at("heads").number(1, 1e4);
  fields.kv_heads = entry.number_or("kv_heads", fields.heads, 1, 1e4);
  fields.head_dim = entry.number_or("head_dim", fields.width / fields.heads, 1, 1e4);
  fields.ffn = entry.number_or("ffn", 0.0, 0, 1e7);
  fields.gated = entry.flag_or("gated", true);
  fields.vocab = entry.at("vocab").number(1, 1e8);
  fields.tied = entry.flag_or("tied", false);
  fields.experts = entry.number_or("experts", 0.0, 0, 1e5);
  fields.experts_per_token = entry.number_or("experts_per_token", 0.0, 0, 1e5);
  fields.expert_ffn = entry.number_or("expert_ffn", 0.0, 0, 1e7);
  fields.shared_ffn = entry.number_or("shared_ffn", 0.0, 0, 1e7);
  fields.expert_layers = entry.number_or("expert_layers", -1.0, 0, 1e4);
  fields.kv_layers = entry.number_or("kv_layers", -1.0, 0, 1e4);
  fields.kv_values = entry.number_or("kv_values", -1.0, 0, 1e7);
  fields.parameters = 1e9 * entry.number_or("parameters_b", 0.0, 0, 1e5);
  fields.native_bits = entry.number_or("native_bits", 16.0, 1, 64);
  return shape_of(fields, entry.where());
}

const PresetFolder<ModelShape>& model_folder() {
  static const PresetFolder<ModelShape> read = read_presets<ModelShape>("models", "model", model_of);
  return read;
}

void require(bool holds, const std::string& where, const std::string& what_is_wrong) {
  if (!holds) throw input_error(where, what_is_wrong);
}

std::string text_of(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

ModelShape shape_of(const ModelFields& f, const std::string& where) {
  const bool moe = f.experts > 0.0;
  require(f.kv_heads <= f.heads, where,
          "kv_heads is " + text_of(f.kv_heads) + "; expected at most the number of heads, " + text_of(f.heads));
  require(!moe || (f.experts_per_token >= 1.0 && f.experts_per_token <= f.experts), where,
          "experts_per_token is " + text_of(f.experts_per_token) + "; expected 1 .. " + text_of(f.experts) +
              ", the experts");
  require(!moe || f.expert_ffn > 0.0, where, "it has experts but no expert_ffn, the width of one");
  const double expert_layers = !moe ? 0.0 : f.expert_layers < 0.0 ? f.layers : f.expert_layers;
  require(expert_layers <= f.layers, where,
          "expert_layers is " + text_of(expert_layers) + "; expected at most the layers, " + text_of(f.layers));
  require(f.ffn > 0.0 || expert_layers == f.layers, where, "it has no ffn, the width of the feed-forward layers");

  ModelShape shape;
  shape.name = f.name;
  shape.source = f.source;
  shape.layers = f.layers;
  shape.width = f.width;
  shape.heads = f.heads;
  shape.kv_heads = f.kv_heads;
  shape.head_dim = f.head_dim;
  shape.vocab = f.vocab;
  shape.tied = f.tied;
  shape.native_bits = f.native_bits;
  shape.experts = f.experts;
  shape.experts_per_token = moe ? f.experts_per_token : 0.0;
  shape.expert_layers = expert_layers;
  shape.kv_layers = f.kv_layers < 0.0 ? f.layers : std::min(f.kv_layers, f.layers);
  shape.kv_values = f.kv_values < 0.0 ? 2.0 * f.kv_heads * f.head_dim : f.kv_values;

  const double matrices = f.gated ? 3.0 : 2.0;
  const double attention = 2.0 * f.width * f.head_dim * (f.heads + f.kv_heads);
  shape.expert_parameters = matrices * f.width * f.expert_ffn;
  shape.head_parameters = f.width * f.vocab;
  shape.embedding_parameters = f.tied ? 0.0 : f.width * f.vocab;
  shape.body_parameters = f.layers * attention + (f.layers - expert_layers) * matrices * f.width * f.ffn +
                          expert_layers * (matrices * f.width * f.shared_ffn + f.width * f.experts);
  if (f.parameters > 0.0) {
    const double rest = f.parameters - shape.head_parameters - shape.embedding_parameters -
                        f.experts * expert_layers * shape.expert_parameters;
    // Less than a tenth of what was counted: the total is of other parts, or it is wrong.
    require(rest > 0.1 * shape.body_parameters, where,
            "parameters_b is " + text_of(f.parameters / 1e9) +
                "; expected more than head, embedding and experts have, " + text_of((f.parameters - rest) / 1e9));
    shape.body_parameters = rest;
  }
  return shape;
}

std::optional<ModelShape> match_model(const std::string& name) {
  const ModelShape* shape = model_folder().match(name, false);
  return shape ? std::optional(*shape) : std::nullopt;
}

std::vector<std::string> model_preset_names() {
  return model_folder().preset_names();
}

ModelShape find_model(const std::string& name_or_path) {
  std::string path = name_or_path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path += "/config.json";
  if (path.ends_with(".json")) return model_from_config_json(std::string(InputFile(path, 16u << 20).text()), path);
  if (path.ends_with(".toml")) return model_of(read_one_preset(path, "model"));
  if (const auto shape = match_model(name_or_path)) return *shape;
  throw input_error("model " + in_quotes(name_or_path),
                    "unknown; expected a preset (nearest: " + near_names(name_or_path, model_folder().names) +
                        "), a TOML file, or a config.json");
}

}  // namespace draftproof
