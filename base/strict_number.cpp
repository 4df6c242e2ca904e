#include "base/strict_number.hpp"

#include <charconv>
#include <cmath>

namespace draftproof {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Digits follow the sign, and the first of several is not 0.
bool begins_well(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return false;
  return text.front() != '0' || text.size() == 1 || !is_digit(text[1]);
}

template <class Number>
std::optional<Number> read_all(std::string_view text) {
  if (!begins_well(text)) return std::nullopt;
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end != last) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::int64_t> read_integer(std::string_view text, std::int64_t least, std::int64_t most) {
  const auto number = read_all<std::int64_t>(text);
  return number && *number >= least && *number <= most && text != "-0" ? number : std::nullopt;
}

std::optional<std::uint64_t> read_unsigned(std::string_view text) {
  return read_all<std::uint64_t>(text);
}

std::optional<double> read_number(std::string_view text) {
  const auto number = read_all<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace draftproof
