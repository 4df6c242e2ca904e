#include "sim/import/prometheus_samples.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "sim/import/json_documents.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

Error malformed(const std::string& where, const std::string& what) {
  return input_error(where, what + "; expected NAME{LABEL=\"...\",...} NUMBER");
}

// One line: name{label="value",...} number [timestamp], where values escape \\, \" and \n.
class SampleLine {
 public:
  explicit SampleLine(std::string_view line) : line_(line) {
    skip(" \t|`*-");
    in_table_ = line_.substr(0, at_).find('|') != std::string_view::npos;
    const std::size_t begin = at_;
    while (at_ < line_.size() && is_name(line_[at_])) ++at_;
    name_ = line_.substr(begin, at_ - begin);
  }

  std::string_view name() const { return name_; }

  template <class Take>
  void read(const std::string& where, const Take& take) {
    where_ = where;
    PrometheusSample sample{std::string(name_), {}, 0.0};
    skip(" \t");
    if (at_ < line_.size() && line_[at_] == '{') read_labels(sample);
    skip(" \t|`*");
    for (const char* kind : {"(counter)", "(gauge)", "(vector)", "=>", "="})
      if (line_.substr(at_).starts_with(kind)) {
        at_ += std::string_view(kind).size();
        skip(" \t");
      }
    if (at_ < line_.size() && line_[at_] == '[') return read_vector(sample, take);
    if (at_ < line_.size() && line_[at_] == '+') ++at_;
    if (const auto value = read_value()) {
      sample.value = *value;
      take(sample);
    } else if (!in_table_) {
      throw malformed(where_, "the value is " + in_quotes(line_.substr(std::min(at_, line_.size()))));
    }
  }

 private:
  void skip(std::string_view characters) {
    while (at_ < line_.size() && characters.find(line_[at_]) != std::string_view::npos) ++at_;
  }

  std::optional<double> read_value() {
    double value = 0.0;
    const char* const last = line_.data() + line_.size();
    const auto [end, error] = std::from_chars(line_.data() + at_, last, value);
    if (name_.empty() || error != std::errc{} ||
        (end != last && std::string_view(" \t|`*,]").find(*end) == std::string_view::npos))
      return std::nullopt;
    at_ = static_cast<std::size_t>(end - line_.data());
    return value;
  }

  // Reads values by position.
  template <class Take>
  void read_vector(PrometheusSample& sample, const Take& take) {
    ++at_;
    for (int position = 0;; ++position) {
      skip(" \t,");
      if (at_ < line_.size() && line_[at_] == ']') return;
      const auto value = read_value();
      if (!value)
        throw malformed(where_, "a value of the vector is " + in_quotes(line_.substr(std::min(at_, line_.size()))));
      sample.labels["position"] = std::to_string(position);
      sample.value = *value;
      take(sample);
    }
  }

  void read_labels(PrometheusSample& sample) {
    for (++at_;;) {
      skip(" \t,");
      if (at_ < line_.size() && line_[at_] == '}') break;
      std::string label;
      while (at_ < line_.size() && is_name(line_[at_])) label += line_[at_++];
      skip(" \t");
      if (label.empty() || at_ + 1 >= line_.size() || line_[at_] != '=')
        throw malformed(where_, "has malformed labels");
      ++at_;
      skip(" \t");
      if (at_ >= line_.size() || line_[at_] != '"') throw malformed(where_, "has a label without quotes");
      std::string value;
      for (++at_; at_ < line_.size() && line_[at_] != '"'; ++at_) {
        if (line_[at_] == '\\' && at_ + 1 < line_.size()) {
          ++at_;
          value += line_[at_] == 'n' ? '\n' : line_[at_];
        } else {
          value += line_[at_];
        }
      }
      if (at_ >= line_.size()) throw malformed(where_, "has a label that does not end");
      ++at_;
      sample.labels[label] = value;
    }
    ++at_;
  }

  std::string_view line_;
  std::string where_;
  std::size_t at_ = 0;
  std::string_view name_;
  bool in_table_ = false;
};

// [time, "value"]
double value_of(const Json& pair, const std::string& where) {
  const auto value = pair.is_array() && pair.size() == 2 && pair[1].is_string()
                         ? read_number(pair[1].get_ref<const std::string&>())
                         : std::nullopt;
  if (!value) throw input_error(where, "has a sample " + pair.dump() + "; expected [TIME, \"NUMBER\"]");
  return *value;
}

template <class Take>
void read_api(std::string_view text, const std::string& name, const std::function<bool(std::string_view)>& wanted,
              const Take& take) {
  JsonDocuments documents(text, name);
  while (documents.next()) {
    const std::string& where = documents.where();
    const Json* const data = json_field(documents.document(), "data");
    const Json* const results = data == nullptr ? nullptr : json_field(*data, "result");
    if (results == nullptr || !results->is_array())
      throw input_error(where, "has no data.result; expected an answer of Prometheus' API to a query");
    for (const Json& result : *results) {
      const Json* const metric = json_field(result, "metric");
      const Json* const of = metric == nullptr ? nullptr : json_field(*metric, "__name__");
      if (of == nullptr || !of->is_string())
        throw input_error(where,
                          "has a result without __name__; expected counters themselves, not rates or sums of them");
      PrometheusSample sample{of->get<std::string>(), {}, 0.0};
      if (!wanted(sample.name)) continue;
      for (const auto& [label, value] : metric->items())
        if (label != "__name__" && value.is_string()) sample.labels[label] = value.template get<std::string>();
      const auto add = [&](const Json& pair) {
        sample.value = value_of(pair, where);
        take(sample, where);
      };
      if (const Json* const one = json_field(result, "value")) add(*one);
      if (const Json* const many = json_field(result, "values"); many != nullptr && many->is_array())
        for (const Json& pair : *many) add(pair);
    }
  }
}

}  // namespace

bool is_prometheus_api(std::string_view text) {
  constexpr std::size_t kLooked = 4096;
  return begins_as_json(text) && text.substr(0, kLooked).find("\"resultType\"") != std::string_view::npos;
}

void for_each_sample(std::string_view text, const std::string& name,
                     const std::function<bool(std::string_view)>& wanted,
                     const std::function<void(const PrometheusSample&, const std::string&)>& take) {
  if (is_prometheus_api(text)) return read_api(text, name, wanted, take);
  TextLines lines(text, name);
  while (lines.next()) {
    SampleLine line(lines.line());
    if (!wanted(line.name())) continue;
    const std::string where = lines.where();
    line.read(where, [&](const PrometheusSample& sample) { take(sample, where); });
  }
}

}  // namespace draftproof
