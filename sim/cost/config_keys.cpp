#include "sim/cost/config_keys.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

std::string short_dump(const Json& value) {
  const std::string text = printable_line(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

// A text_config is written as what differs from its class: what it leaves out is the class's (transformers 5).
Json left_out_of(const Json& text) {
  const auto type = text.find("model_type");
  if (type == text.end()) return Json::object();
  if (*type == "gemma3_text")
    return {{"hidden_size", 2304},      {"intermediate_size", 9216}, {"num_hidden_layers", 26},
            {"num_attention_heads", 8}, {"num_key_value_heads", 4},  {"head_dim", 256},
            {"vocab_size", 262208},     {"sliding_window", 4096},    {"sliding_window_pattern", 6}};
  if (*type == "llama")
    return {{"hidden_size", 4096},
            {"intermediate_size", 11008},
            {"num_hidden_layers", 32},
            {"num_attention_heads", 32},
            {"vocab_size", 32000}};
  if (*type == "mistral") return {{"num_attention_heads", 32}, {"num_key_value_heads", 8}};
  return Json::object();
}

constexpr std::size_t kListMost = 10'000;  // of layers, or of names

}  // namespace

ConfigKeys::ConfigKeys(const Json& config, std::string where) : json_(config), where_(std::move(where)) {
  if (!json_.is_object()) fail("it is not a JSON object; expected a config.json of a language model");
  for (const char* const inner : {"text_config", "llm_config", "language_config", "thinker_config"})
    if (const auto found = json_.find(inner); found != json_.end() && found->is_object()) {
      const Json text = *found;
      json_.erase(inner);
      const Json left_out = left_out_of(text);
      for (const auto& [key, value] : text.items())
        if (!value.is_null()) json_[key] = value;
      for (const auto& [key, value] : left_out.items())
        if (!text.contains(key) && !json_.contains(key)) json_[key] = value;
      if (text.contains("text_config")) *this = ConfigKeys(Json(json_), where_);  // of a speaking model's thinker
    }
  // DBRX has its attention and its experts in objects of their own.
  for (const char* const inner : {"attn_config", "ffn_config"})
    if (const auto found = json_.find(inner); found != json_.end() && found->is_object()) {
      const Json part = *found;
      for (const auto& [key, value] : part.items())
        if (value.is_number() && !json_.contains(key)) json_[key] = value;
    }
}

void ConfigKeys::fail(const std::string& what) const {
  throw input_error(where_, what);
}

const Json* ConfigKeys::find(const Names& names) const {
  for (const char* const name : names)
    if (name != nullptr) asked_.emplace(name);
  for (const char* const name : names) {
    if (name == nullptr) break;
    const auto found = json_.find(name);
    if (found != json_.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

double ConfigKeys::checked(const char* name, const Json& value) const {
  constexpr double kMost = 1e13;
  if (!value.is_number() || !(value.get<double>() >= 0.0 && value.get<double>() <= kMost))
    fail(std::string(name) + " is " + short_dump(value) + "; expected a number in [0, 1e13]");
  return value.get<double>();
}

double ConfigKeys::number(const Names& names, double otherwise) const {
  const Json* const value = find(names);
  if (value == nullptr) return otherwise;
  for (const char* const name : names)
    if (name != nullptr && json_.contains(name) && &*json_.find(name) == value) return checked(name, *value);
  return otherwise;
}

double ConfigKeys::required(const Names& names) const {
  const double value = number(names, 0.0);
  if (value < 1.0) fail(std::string("it has no ") + names.front() + "; expected a config.json of a language model");
  return value;
}

bool ConfigKeys::flag(const Names& names, bool otherwise) const {
  const Json* const value = find(names);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail(std::string(names.front()) + " is " + short_dump(*value) + "; expected true or false");
  return value->get<bool>();
}

std::string ConfigKeys::text(const Names& names) const {
  const Json* const value = find(names);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

double ConfigKeys::of_layer(const Names& names, std::size_t layer, double otherwise) const {
  const Json* const value = find(names);
  if (value == nullptr) return otherwise;
  if (!value->is_array()) return number(names, otherwise);
  if (layer >= value->size())
    fail(std::string(names.front()) + " has " + std::to_string(value->size()) +
         " numbers; expected one for each layer");
  const Json& element = (*value)[layer];
  return element.is_null() ? otherwise : checked(names.front(), element);
}

std::vector<double> ConfigKeys::numbers(const char* name) const {
  std::vector<double> numbers;
  const Json* const value = find(name);
  if (value == nullptr) return numbers;
  if (!value->is_array()) fail(std::string(name) + " is " + short_dump(*value) + "; expected a list of numbers");
  if (value->size() > kListMost)
    fail(std::string(name) + " has " + std::to_string(value->size()) + " numbers; expected at most 10,000");
  for (const Json& element : *value)
    numbers.push_back(element.is_boolean() ? (element.get<bool>() ? 1.0 : 0.0) : checked(name, element));
  return numbers;
}

std::vector<std::string> ConfigKeys::texts(const Names& names) const {
  std::vector<std::string> texts;
  const Json* const value = find(names);
  if (value == nullptr) return texts;
  if (!value->is_array()) fail(std::string(names.front()) + " is " + short_dump(*value) + "; expected a list of names");
  if (value->size() > kListMost)
    fail(std::string(names.front()) + " has " + std::to_string(value->size()) + " names; expected at most 10,000");
  for (const Json& element : *value) {
    if (!element.is_string())
      fail(std::string(names.front()) + " has " + short_dump(element) + "; expected a list of names");
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

std::optional<ConfigKeys> ConfigKeys::part(const char* name) const {
  const Json* const value = find(name);
  if (value == nullptr || !value->is_object()) return std::nullopt;
  return ConfigKeys(*value, where_ + ": " + name);
}

std::vector<std::string> ConfigKeys::not_asked() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_.items())
    if (!asked_.contains(key)) keys.push_back(key);
  return keys;
}

}  // namespace draftproof
