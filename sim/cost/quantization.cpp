#include "sim/cost/quantization.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/words.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

// With a scale of 16 bits for 64 or 128 weights, and some layers left as they are.
constexpr double kFourBitBytes = 0.55;

// The first row holds of which a text has a word.
struct FormatRow {
  const char* name;
  double bytes, compute_bits;
  std::array<const char*, 8> words;  // in lower case
};
constexpr std::array kFormats{
    FormatRow{"4-bit", kFourBitBytes, 16, {"w4a16", "int4_weight_only", "int4wo"}},
    FormatRow{"4-bit, 8-bit arithmetic", kFourBitBytes, 8, {"w4a8", "w4afp8", "int4_fp8"}},
    FormatRow{"mxfp4", kFourBitBytes, 16, {"mxfp4", "mx_fp4"}},
    FormatRow{"fp4", kFourBitBytes, 4, {"fp4", "w4a4", "nv_fp"}},
    FormatRow{"4-bit", kFourBitBytes, 16, {"int4", "awq", "gptq", "4bit", "4-bit", "q4", "nf4", "w4"}},
    FormatRow{"int8", 1.0, 8, {"w8a8_int8", "w8a8_sq", "int8_dynamic_activation", "int8dynamicactivation"}},
    FormatRow{"fp8", 1.0, 8, {"fp8", "w8a8", "e4m3", "e5m2", "float8"}},
    FormatRow{"8-bit", 1.06, 16, {"int8", "w8a16", "8bit", "8-bit", "q8"}},
    FormatRow{"32-bit", 4.0, 16, {"fp32", "float32"}},
};

// Methods of vLLM, SGLang, TensorRT-LLM, transformers, vllm-ascend and MLX, with what they are where no file says more,
// as --precision takes it. Sources: vllm/model_executor/layers/quantization/__init__.py,
// sglang/srt/layers/quantization/__init__.py, transformers/utils/quantization_config.py.
struct MethodRow {
  const char* precision;  // empty: only the model's config says it
  std::array<const char*, 24> names;
};
constexpr std::array kMethods{
    MethodRow{"fp8",
              {"fp8", "fbgemm-fp8", "ptpc-fp8", "w8a8-fp8", "modelopt", "modelopt-fp8", "mxfp8", "modelopt-mxfp8",
               "fp8-per-tensor", "fp8-per-block", "fp8-blockwise", "finegrained-fp8", "quark-fp8"}},
    MethodRow{"nvfp4", {"modelopt-fp4", "nvfp4", "modelopt-nvfp4"}},
    MethodRow{"mxfp4", {"mxfp4", "gpt-oss-mxfp4", "quark-mxfp4", "modelopt-mxfp4"}},
    MethodRow{"w4a16",
              {"awq", "awq-marlin", "gptq", "gptq-marlin", "gptq-marlin-24", "marlin", "gptq-bitblas", "bitblas",
               "moe-wna16", "hqq", "cpu-awq", "cpu-gptq", "petit-nvfp4", "bitsandbytes", "int4", "ipex", "higgs"}},
    MethodRow{"w4a8", {"qqq", "qoq", "w4afp8", "quark-int4fp8-moe"}},
    MethodRow{"w8a8_int8", {"w8a8-int8", "blockwise-int8"}},
    MethodRow{"int8", {"experts-int8", "tpu-int8", "int8", "eetq", "rtn", "deepspeedfp"}},
    MethodRow{"",
              {"compressed-tensors",
               "quark",
               "torchao",
               "auto-round",
               "intel/auto-round",
               "autoround",
               "inc",
               "gguf",
               "modelopt-mixed",
               "quanto",
               "ascend",
               "modelslim",
               "neuron-quant",
               "aqlm",
               "vptq",
               "spqr",
               "bitnet",
               "fp-quant",
               "exl2",
               "exl3",
               "mlx",
               "sinq"}},
};

// The precision of a method; nothing where the list has no such.
std::optional<std::string> listed(std::string_view method) {
  std::string name = lower_case(method);
  std::ranges::replace(name, '_', '-');
  for (const MethodRow& row : kMethods)
    for (const char* const known : row.names)
      if (known != nullptr && name == known) return row.precision;
  return std::nullopt;
}

[[noreturn]] void refuse_method(std::string_view method, const std::string& where) {
  std::string names;
  for (const MethodRow& row : kMethods)
    for (const char* const known : row.names)
      if (known != nullptr) names += (names.empty() ? "" : ", ") + std::string(known);
  throw input_error(where, "the quantisation is " + in_quotes(std::string(method)) + "; expected one of " + names +
                               ", or --precision, which then holds");
}

WeightFormat format_of_bits(double weights, bool is_float, double activations, double group_size) {
  WeightFormat format;
  if (weights >= 16.0) {
    if (weights >= 32.0) format = {"32-bit", 4.0, 16.0};
    return format;
  }
  // A scale for every group: a byte beside floats of 4 bits, else two with a zero point of as many bits.
  const double scale = weights <= 4.0 && is_float ? 1.0 : 2.0 + weights / 8.0;
  format.bytes = weights / 8.0 + (group_size > 0.0 ? scale / group_size : 0.0);
  format.compute_bits = activations <= 4.0 && weights <= 4.0 ? 4.0 : activations <= 8.0 ? 8.0 : 16.0;
  const std::string bits = number("%.3g", weights);
  if (is_float)
    format.name = std::string(weights <= 4.0 && group_size == 32.0 ? "mxfp" : "fp") + bits;
  else if (weights == 8.0 && format.compute_bits <= 8.0)
    format.name = "int8";
  else
    format.name = bits + "-bit";
  if (weights < 8.0 && format.compute_bits == 8.0) format.name += ", 8-bit arithmetic";
  return format;
}

const Json* find(const Json& object, std::initializer_list<const char*> keys) {
  if (!object.is_object()) return nullptr;
  for (const char* key : keys)
    if (const auto found = object.find(key); found != object.end() && !found->is_null()) return &*found;
  return nullptr;
}

double number_in(const Json& object, std::initializer_list<const char*> keys, double otherwise) {
  const Json* const value = find(object, keys);
  return value != nullptr && value->is_number() ? value->get<double>() : otherwise;
}

bool is_on(const Json& object, const char* key) {
  const Json* const value = find(object, {key});
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// Text of the values, in lower case: a name, or an object that holds one.
std::string words_in(const Json& object, std::initializer_list<const char*> keys) {
  std::string words;
  for (const char* key : keys)
    if (const Json* const value = find(object, {key}); value != nullptr)
      words.append(1, ' ').append(lower_case(value->is_string() ? value->get<std::string>() : value->dump()));
  return words;
}

// A matrix as {"num_bits": 4, "type": "float"} or {"dtype": "fp8_e4m3"}; nothing where it says neither.
struct Element {
  double bits;
  bool is_float;
  double group_size;
};
std::optional<Element> element_of(const Json& description) {
  if (description.is_array() && !description.empty()) return element_of(description.back());
  const std::string type = words_in(description, {"type", "dtype", "data_type", "element"});
  Element element{number_in(description, {"num_bits", "bits"}, 0.0), type.find("f") != std::string::npos,
                  number_in(description, {"group_size"}, 0.0)};
  if (element.bits == 0.0)
    for (const double bits : {16.0, 8.0, 4.0, 2.0})
      if (element.bits == 0.0 && (type.find("int" + std::to_string(static_cast<int>(bits))) != std::string::npos ||
                                  type.find("fp" + std::to_string(static_cast<int>(bits))) != std::string::npos ||
                                  type.find("float" + std::to_string(static_cast<int>(bits))) != std::string::npos))
        element.bits = bits;
  if (!(element.bits > 0.0 && element.bits <= 32.0)) return std::nullopt;
  return element;
}

// Weights and what they are multiplied with: compressed-tensors' and Quark's names.
std::optional<WeightFormat> scheme_of(const Json& scheme) {
  const Json* const weights = find(scheme, {"weights", "weight"});
  const auto element = weights == nullptr ? std::nullopt : element_of(*weights);
  if (!element) return std::nullopt;
  const Json* const inputs = find(scheme, {"input_activations", "input_tensors"});
  const auto input = inputs == nullptr ? std::nullopt : element_of(*inputs);
  return format_of_bits(element->bits, element->is_float, input ? input->bits : 16.0, element->group_size);
}

double kv_bytes_of(const Json& q) {
  const Json* const scheme = find(q, {"kv_cache_scheme", "kv_cache_quant_algo", "kv_cache_quant_config"});
  if (scheme == nullptr || scheme->empty()) return 0.0;
  if (const auto element = scheme->is_object() ? element_of(*scheme) : std::nullopt) return element->bits / 8.0;
  const std::string words = lower_case(scheme->dump());
  return words.find('4') != std::string::npos && words.find('8') == std::string::npos ? 0.5
         : words.find('8') != std::string::npos                                       ? 1.0
                                                                                      : 0.0;
}

// The name from "layers." on, which stands behind other words in every family, without ".weight".
std::string from_layers(std::string name) {
  for (const char* const end : {".weight", ".weight_packed"})
    if (name.ends_with(end)) name.erase(name.size() - std::string_view(end).size());
  const std::size_t at = name.find("layers.");
  return at == std::string::npos || name.starts_with("re:") ? name : name.substr(at);
}

bool matches_star(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, behind = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      behind = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++behind;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// States of a regular expression's automaton, at most about so many: each "{from,to}" repeats what stands before it,
// repetitions in it included. std::regex goes down the stack once for each.
constexpr double kStatesMost = 4000.0;
double states_of(std::string_view expression) {
  auto states = static_cast<double>(expression.size());
  double count = 0.0;
  bool in_braces = false;
  for (const char c : expression) {
    if (c == '{' || c == ',' || c == '}') {
      if (in_braces) states *= std::max(1.0, count);
      in_braces = c == '{' || (c == ',' && in_braces);
      count = 0.0;
    } else if (c >= '0' && c <= '9') {
      count = 10.0 * count + (c - '0');
    }
  }
  return states;
}

// Format of one module, described by the keys of `q`.
std::optional<WeightFormat> format_of(const Json& q) {
  if (const auto scheme = scheme_of(q)) return scheme;
  const double group_size = number_in(q, {"group_size", "q_group_size"}, 0.0);
  if (const std::string algorithm = words_in(q, {"quant_algo"}); !algorithm.empty()) {
    auto format = format_in(algorithm);
    // 4 bits and a byte for every 16.
    if (format && algorithm.find("nvfp4") != std::string::npos) format->bytes = 0.5 + 1.0 / 16.0;
    return format;
  }
  if (is_on(q, "load_in_4bit") || is_on(q, "_load_in_4bit")) return format_of_bits(4, false, 16, 64);
  if (is_on(q, "load_in_8bit") || is_on(q, "_load_in_8bit")) return format_of_bits(8, false, 8, 0);
  double bits = number_in(q, {"bits", "w_bit", "wbits", "weight_bits", "nbits", "num_bits"}, 0.0);
  if (const Json* const hqq = find(q, {"quant_config"}); bits == 0.0 && hqq != nullptr)
    if (const Json* const weights = find(*hqq, {"weight_quant_params"})) bits = number_in(*weights, {"nbits"}, 0.0);
  if (const double code = number_in(q, {"nbits_per_codebook"}, 0.0); code > 0.0)  // AQLM
    bits = code * number_in(q, {"num_codebooks"}, 1.0) / std::max(1.0, number_in(q, {"in_group_size"}, 8.0));
  if (bits > 0.0 && bits <= 32.0) {
    const std::string type = words_in(q, {"data_type", "format", "fmt", "element"});
    const bool is_float = type.find("fp") != std::string::npos || type.find("float") != std::string::npos;
    return format_of_bits(bits, is_float, number_in(q, {"act_bits", "activation_bits"}, 16.0), group_size);
  }
  if (const Json* const whole = find(q, {"global_quant_config"})) return scheme_of(*whole);
  return format_in(words_in(q, {"weights", "quant_type", "model_quant_type", "default_quant_type", "quant_level",
                                "quantize", "forward_dtype"}));
}

}  // namespace

std::optional<WeightFormat> format_in(std::string_view text) {
  const std::string lower = lower_case(text);
  for (const FormatRow& row : kFormats)
    for (const char* const word : row.words)
      if (word != nullptr && lower.find(word) != std::string::npos)
        return WeightFormat{row.name, row.bytes, row.compute_bits};
  return std::nullopt;
}

std::string precision_of_method(std::string_view method, const std::string& where) {
  const auto precision = listed(method);
  if (!precision) refuse_method(method, where);
  return *precision;
}

void Quantization::add(const std::string& modules, const WeightFormat& format, const std::string& where) {
  constexpr std::size_t kPatternMost = 2000;
  const std::string text = from_layers(modules);
  if (text.size() > kPatternMost)
    throw input_error(where, "a pattern of modules has " + std::to_string(text.size()) +
                                 " characters; expected at most " + std::to_string(kPatternMost));
  if (text.starts_with("re:")) {
    auto flags = std::regex::ECMAScript | std::regex::nosubs;
#ifdef __GLIBCXX__
    flags |= std::regex_constants::__polynomial;  // no pattern takes exponential time
#endif
    if (states_of(text) > kStatesMost)
      throw input_error(where, "the pattern of modules " + in_quotes(text) +
                                   " repeats too much; expected repetitions "
                                   "whose product with its length is at most 4,000");
    try {
      patterns_.push_back(
          {[expression = std::regex(text.substr(3), flags)](const std::string& module) {
             // Prefixes that families put before "layers."
             for (const char* const before :
                  {"", "model.", "model.language_model.", "language_model.model.", "backbone."})
               if (std::regex_search(before + module, expression, std::regex_constants::match_continuous)) return true;
             return false;
           },
           format});
    } catch (const std::regex_error&) {
      throw input_error(where, "quantization_config has " + in_quotes(printable_line(text)) +
                                   "; expected a regular expression behind re:");
    }
  } else if (text.find('*') != std::string::npos) {
    patterns_.push_back({[text](const std::string& module) {
                           return matches_star(text, module) || matches_star(text + ".*", module) ||
                                  matches_star("*." + text, module) || matches_star("*." + text + ".*", module);
                         },
                         format});
  } else {
    named_.emplace(text, format);
  }
}

void Quantization::read_groups(const Json& groups, const std::string& where) {
  if (!groups.is_object()) throw input_error(where, "config_groups is no object; expected groups of modules");
  for (const auto& [name, group] : groups.items()) {
    const Json* const targets = group.is_array() ? &group : find(group, {"targets"});
    const auto format = group.is_array() ? format_in(name) : scheme_of(group);
    if (!format && find(group, {"weights"}) != nullptr)
      throw input_error(where, "config_groups " + in_quotes(name) +
                                   " does not say the bits of its weights; expected num_bits and type");
    const WeightFormat used = format.value_or(plain_);
    bool everything = targets == nullptr || !targets->is_array();
    if (!everything)
      for (const Json& target : *targets) {
        const std::string text = target.is_string() ? target.get<std::string>() : "";
        if (text == "Linear" || text == "FusedMoE" || text.empty())
          everything = true;
        else
          add(text, used, where);
      }
    if (everything) quantised_ = used;
  }
}

std::vector<std::string> Quantization::order_of_dynamic(const std::string& text, const std::string& where) {
  std::vector<std::string> order;
  const std::string decoded = as_utf8(text).value_or(text);
  if (decoded.find("\"dynamic\"") == std::string::npos) return order;
  int inside = -1;  // depth of the key
  const auto note = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key) return true;
    if (inside >= 0 && depth == inside + 1) order.push_back(parsed.get<std::string>());
    if (depth <= inside) inside = -1;
    if (inside < 0 && parsed == "dynamic") inside = depth;
    return true;
  };
  if (Json::parse(checked_json(decoded, where).value_or(decoded), note, false).is_discarded()) order.clear();
  return order;
}

void Quantization::read(const Json& q, const std::string& where, const std::vector<std::string>& dynamic_order) {
  std::string method = words_in(q, {"quant_method"});
  if (!method.empty()) method.erase(0, 1);
  const Json* const groups = find(q, {"config_groups"});
  if (method.empty())
    method = find(q, {"quant_algo"}) != nullptr                     ? "modelopt"
             : groups != nullptr                                    ? "compressed-tensors"
             : find(q, {"load_in_4bit", "load_in_8bit"}) != nullptr ? "bitsandbytes"
             : find(q, {"model_quant_type"}) != nullptr             ? "ascend"
             : find(q, {"bits", "w_bit"}) != nullptr                ? "mlx"
                                                                    : "";
  const auto usual = listed(method);
  if (!usual) refuse_method(method.empty() ? "without quant_method" : method, where);
  kv_bytes_ = kv_bytes_of(q);
  const bool is_fp8 = method == "fp8";

  // Formats of single modules: the first match holds, so exceptions stand before groups.
  bool named = false;
  for (const char* const key : {"quantized_layers", "layer_quant_config", "extra_config"})
    if (const Json* const layers = find(q, {key}); layers != nullptr && layers->is_object())
      for (const auto& [modules, said] : layers->items()) {
        named = true;
        add(modules, format_of(said).value_or(plain_), where);
      }
  if (const Json* const dynamic = find(q, {"dynamic"}); dynamic != nullptr && dynamic->is_object()) {  // GPTQModel
    std::vector<std::string> patterns = dynamic_order;
    if (patterns.empty())
      for (const auto& [modules, said] : dynamic->items()) patterns.push_back(modules);
    for (const std::string& modules : patterns) {
      if (!dynamic->contains(modules)) continue;
      const Json& said = dynamic->at(modules);
      Json whole = q;  // what it does not say is as in all others
      if (said.is_object()) whole.update(said);
      const bool has_sign = modules.starts_with("+:") || modules.starts_with("-:");
      add("re:" + modules.substr(has_sign ? 2 : 0),
          modules.starts_with('-') ? plain_ : format_of(whole).value_or(plain_), where);
    }
  }
  for (const auto& [key, value] : q.items())  // ascend: "model.layers.0.self_attn.q_proj.weight": "W8A8"
    if (value.is_string() && key.find("layers.") != std::string::npos)
      add(key, format_in(value.get<std::string>()).value_or(plain_), where);
  for (const char* const key :
       {"modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude", "llm_int8_skip_modules"}) {
    // Beside layers of 4 bits in a checkpoint of fp8 `ignore` means what is not of 4 bits.
    if (is_fp8 && named && std::string_view(key) == "ignore") continue;
    if (const Json* const modules = find(q, {key}); modules != nullptr && modules->is_array())
      for (const Json& module : *modules)
        if (module.is_string()) add(module.get<std::string>(), plain_, where);
  }

  if (const auto format = is_fp8 ? std::nullopt : format_of(q)) {
    quantised_ = *format;
    if (groups != nullptr) read_groups(*groups, where);
    return;
  }
  if (groups != nullptr && !is_fp8) {
    read_groups(*groups, where);  // what no group takes stays as it is
    return;
  }
  // Layers that are named one by one: the others stay as they are, but for those of a checkpoint of fp8.
  if (named && !is_fp8) return;
  const auto format = format_in(*usual);
  if (!format)
    throw input_error(where, "quantization_config is of " + in_quotes(method) +
                                 ", and nothing says the bits of its weights; expected --precision");
  quantised_ = *format;
  if (is_fp8 || usual == "mxfp4") quantised_ = is_fp8 ? WeightFormat{"fp8", 1.0, 8.0} : format_of_bits(4, true, 16, 32);
}

Quantization Quantization::of_config(const Json& config, const Json& beside, const std::string& where,
                                     const std::vector<std::string>& dynamic) {
  Quantization made;
  const Json* const text = find(config, {"text_config", "llm_config", "language_config"});
  const auto find_in = [&](std::initializer_list<const char*> keys) {
    const Json* const found = find(config, keys);
    return found != nullptr || text == nullptr ? found : find(*text, keys);
  };
  if (const Json* const type = find_in({"torch_dtype", "dtype"}); type != nullptr) {
    const std::string name = lower_case(type->is_string() ? type->get<std::string>() : type->dump());
    if (name.find("float32") != std::string::npos || name == "float" || name == "fp32") {
      made.plain_ = {"32-bit", 4.0, 16.0};
    } else if (name.find("float16") == std::string::npos && name.find("half") == std::string::npos && name != "auto" &&
               name != "bf16" && name != "fp16") {
      const auto format = format_in(name);
      if (!format) throw input_error(where, "torch_dtype is " + in_quotes(name) + "; expected bfloat16, float16, ...");
      made.plain_ = *format;
    }
  }
  made.quantised_ = made.plain_;
  if (const Json* const type = find_in({"expert_dtype"}); type != nullptr && type->is_string()) {  // DeepSeek-V4
    const auto format = format_in(type->get<std::string>());
    if (!format) throw input_error(where, "expert_dtype is " + type->dump() + "; expected fp4, fp8, ...");
    // Its 4 bits have a byte for every 32, and multiply values of 8 bits.
    made.experts_ = format->bytes < 1.0 ? WeightFormat{"mxfp4", 0.5 + 1.0 / 32.0, 8.0} : *format;
  }
  const Json* q = find_in({"quantization_config", "compression_config", "quantization"});
  if ((q == nullptr || (q->is_object() && q->size() <= 1)) && beside.is_object() && !beside.empty()) {
    const Json* const inside = find(beside, {"quantization"});
    q = inside != nullptr && inside->is_object() ? inside : &beside;
  }
  if (q == nullptr || (q->is_object() && q->empty())) return made;
  if (!q->is_object()) throw input_error(where, "quantization_config is no object; expected quant_method and its keys");
  made.read(*q, where, dynamic);
  return made;
}

const WeightFormat& Quantization::of(const std::string& module) const {
  if (const WeightFormat* const by_name = said(module)) return *by_name;
  return experts_ && module.find(".experts.") != std::string::npos ? *experts_ : quantised_;
}

const WeightFormat& Quantization::head() const {
  const auto named = named_.find("lm_head");
  return named == named_.end() ? plain_ : named->second;
}

const WeightFormat* Quantization::said(const std::string& module) const {
  const std::string name = from_layers(module);
  // Named whole, or by some of its words in a row ("gate", "self_attn").
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < name.size(); ++i)
    if (name[i] == '.') begins.push_back(i + 1);
  begins.push_back(name.size() + 1);
  for (std::size_t from = 0; from + 1 < begins.size(); ++from)
    for (std::size_t to = begins.size() - 1; to > from && !named_.empty(); --to)
      if (const auto found = named_.find(name.substr(begins[from], begins[to] - 1 - begins[from]));
          found != named_.end())
        return &found->second;
  for (const Pattern& pattern : patterns_)
    if (pattern.matches(name)) return &pattern.format;
  return nullptr;
}

}  // namespace draftproof
