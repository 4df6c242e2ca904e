// Top-p as a request has it: a number, or a fraction "N/D", which is compared as it is.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/options.hpp"
#include "engine/decode/decoding_options.hpp"
#include "reference/logits/top_p_fraction.hpp"

namespace draftproof {

struct TopP {
  double value = 1.0;
  std::uint32_t numerator = 0;
  std::uint32_t denominator = 0;  // 0: no fraction
};

inline std::string text_of(const TopP& top_p) {
  return top_p.denominator == 0 ? number("%g", top_p.value)
                                : std::to_string(top_p.numerator) + "/" + std::to_string(top_p.denominator);
}

template <class Json>
void to_json(Json& json, const TopP& top_p) {
  if (top_p.denominator == 0)
    json = top_p.value;
  else
    json = text_of(top_p);
}

inline constexpr const char* kTopPExpected = "a number in (0, 1], or a fraction in it, as 4/5";

// Nothing for any other text than a number or a fraction in (0, 1].
inline std::optional<TopP> read_top_p(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    const auto value = read_number(text, kNucleusRange);
    return value ? std::optional(TopP{*value}) : std::nullopt;
  }
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const auto denominator = read_integer(text.substr(slash + 1), 1, kMost);
  const auto numerator = read_integer(text.substr(0, slash), 1, denominator.value_or(0));
  if (!numerator) return std::nullopt;
  return TopP{static_cast<double>(*numerator) / static_cast<double>(*denominator),
              static_cast<std::uint32_t>(*numerator), static_cast<std::uint32_t>(*denominator)};
}

// Value: TopP or an optional of one.
template <class Value>
void add_top_p(Options& options, const std::string& name, Value& top_p, const std::string& help) {
  std::string standard;
  if constexpr (std::is_same_v<Value, TopP>) standard = text_of(top_p);
  options.option(name, "NUMBER", standard, help, [name, &top_p](const std::string& text) {
    const std::optional<TopP> read = read_top_p(text);
    if (!read) throw Error(ErrorKind::usage, "", name + " is '" + text + "'; expected " + kTopPExpected);
    top_p = *read;
  });
}

inline RowParameters row_parameters(double temperature, const TopP& top_p, std::int64_t top_k, double min_p) {
  RowParameters parameters = row_parameters(temperature, top_p.value, top_k, min_p);
  set_top_p(parameters.filters, top_p.numerator, top_p.denominator);
  return parameters;
}

}  // namespace draftproof
