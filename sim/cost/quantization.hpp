// How weights are stored and multiplied, as a checkpoint or a server says: quantization_config, then torch_dtype. One
// list of methods for config.json and for `quantization=` in logs. The name of a path says nothing.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

struct WeightFormat {
  std::string name = "16-bit";
  double bytes = 2.0;          // of a weight, with its share of the scales
  double compute_bits = 16.0;  // of the multiplication: weights that are unpacked first multiply in 16
};

// The format that words name: "fp8", "AWQ-INT4", "weights w4a16", "NVFP4"; nothing where none does.
std::optional<WeightFormat> format_in(std::string_view text);

// A method as servers name it ("modelopt_fp4", "awq_marlin"), as --precision takes it ("nvfp4", "int4"). Empty: the
// method leaves the bits to the model's config.json (compressed-tensors, quark, ...). Input error at `where`: unknown.
std::string precision_of_method(std::string_view method, const std::string& where);

// Formats of a checkpoint's matrices.
class Quantization {
 public:
  // `config`: a whole config.json; `beside`: a description in a file of its own (hf_quant_config.json,
  // quantize_config.json, quant_model_description.json), or null. Input error at `where`: an unknown method or dtype,
  // or a method whose bits nothing says. `dynamic`: order_of_dynamic() of their texts; empty: by name.
  static Quantization of_config(const nlohmann::json& config, const nlohmann::json& beside, const std::string& where,
                                const std::vector<std::string>& dynamic = {});
  // GPTQModel's "dynamic" in a JSON text: its patterns as they stand there, since the first one that fits holds.
  static std::vector<std::string> order_of_dynamic(const std::string& text, const std::string& where);

  // Format of the matrix with this name, as "layers.3.self_attn.q_proj".
  const WeightFormat& of(const std::string& module) const;
  // Its format by name or by a pattern; null: the file has none, and the usual format holds.
  const WeightFormat* said(const std::string& module) const;
  // Format of the matrix over the vocabulary, which quantisers leave as it is unless they name it.
  const WeightFormat& head() const;
  const WeightFormat& unquantised() const { return plain_; }
  // Bytes of a cached number; 0: not given.
  double kv_bytes() const { return kv_bytes_; }

 private:
  struct Pattern {
    std::function<bool(const std::string& module)> matches;
    WeightFormat format;
  };

  void read(const nlohmann::json& q, const std::string& where, const std::vector<std::string>& dynamic);
  void read_groups(const nlohmann::json& groups, const std::string& where);
  // Modules by name, by a pattern with '*', or by a regular expression behind "re:"; the first rule holds.
  void add(const std::string& modules, const WeightFormat& format, const std::string& where);

  WeightFormat plain_, quantised_;
  std::optional<WeightFormat> experts_;
  std::map<std::string, WeightFormat> named_;
  std::vector<Pattern> patterns_;
  double kv_bytes_ = 0.0;
};

}  // namespace draftproof
