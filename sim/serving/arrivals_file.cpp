#include "sim/serving/arrivals_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "sim/csv.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kTraceBytesMax = std::uint64_t{4} << 30;

constexpr std::array<std::string_view, 3> kArrivalNames{"arrival_s", "timestamp", "TIMESTAMP"};
constexpr std::array<std::string_view, 4> kPromptNames{"prompt_len", "input_length", "ContextTokens", "Request tokens"};
constexpr std::array<std::string_view, 4> kOutputNames{"output_len", "output_length", "GeneratedTokens",
                                                       "Response tokens"};

// Case does not count in the name of the arrival: "Timestamp" and "TIMESTAMP" are in use.
bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

template <std::size_t N>
std::string list_of(const std::array<std::string_view, N>& names) {
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

std::string line_of(const std::string& path, std::size_t line) {
  return path + ":" + std::to_string(line);
}

constexpr double kSecondsMax = 4e9;

// "2023-11-16 18:15:46.6805900": seconds since 1970 as nanoseconds (civil-from-days, without time zones); years whose
// seconds are within kSecondsMax.
std::optional<std::int64_t> read_date(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00 00:00:";
  for (std::size_t i = 0; i < std::min(kForm.size(), text.size()); ++i)
    if (kForm[i] == '0' && (text[i] < '0' || text[i] > '9')) return std::nullopt;  // sscanf takes blanks and signs, too
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, end = 0;
  if (std::sscanf(std::string(text.substr(0, 17)).c_str(), "%4d-%2d-%2d%*1[ T]%2d:%2d:%n", &year, &month, &day, &hour,
                  &minute, &end) != 5 ||
      end != 17)
    return std::nullopt;
  std::string_view rest = text.substr(17);
  if (rest.size() > 1 && rest.front() == '0') rest.remove_prefix(1);
  const std::optional<double> second = read_number(rest);
  if (!second || *second < 0.0 || *second >= 61.0 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 ||
      minute > 59)
    return std::nullopt;
  if (year < 1900 || year > 2090) return std::nullopt;
  const int years = month <= 2 ? year - 1 : year;
  const std::int64_t era = years / 400;
  const std::int64_t year_of_era = years - era * 400;
  const std::int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const std::int64_t days =
      era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
  return ((days * 24 + hour) * 60 + minute) * 60'000'000'000 + std::llround(*second * 1e9);
}

class Rows {
 public:
  explicit Rows(const std::string& path) : path_(path) {}

  // Times and their differences stay in 64 bits of nanoseconds.
  std::int64_t ns_of(std::size_t line, double seconds) const {
    if (std::abs(seconds) <= kSecondsMax) return std::llround(seconds * 1e9);
    throw input_error(line_of(path_, line),
                      "the arrival is at " + nlohmann::json(seconds).dump() + " s; expected seconds from -4e9 to 4e9");
  }

  void add(std::size_t line, std::int64_t arrival_ns, double prompt_len, double output_len) {
    if (rows_.empty()) first_ns_ = arrival_ns;
    const std::int64_t since_ns = arrival_ns - first_ns_;
    if (!rows_.empty() && since_ns < rows_.back().arrival_ns)
      throw input_error(line_of(path_, line),
                        "the arrival lies before that of the request above; expected times that "
                        "do not go back");
    if (static_cast<double>(since_ns) > kSecondsMax * 1e9)
      throw input_error(line_of(path_, line), "the arrival lies " +
                                                  nlohmann::json(static_cast<double>(since_ns) * 1e-9).dump() +
                                                  " s behind the first; expected at most 4e9 s");
    rows_.push_back({since_ns, length(line, "prompt", prompt_len), length(line, "output", output_len)});
  }
  std::vector<RecordedArrival> take() {
    if (rows_.empty()) throw input_error(path_, "it holds no request; expected at least one");
    return std::move(rows_);
  }

 private:
  std::int32_t length(std::size_t line, const char* name, double value) const {
    if (value >= 1.0 && value <= std::numeric_limits<std::int32_t>::max() && value == std::floor(value))
      return static_cast<std::int32_t>(value);
    throw input_error(line_of(path_, line), std::string("the ") + name + " has " + nlohmann::json(value).dump() +
                                                " tokens; expected a whole number from 1");
  }

  std::string path_;
  std::vector<RecordedArrival> rows_;
  std::int64_t first_ns_ = 0;
};

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields = split(line, ',');
  for (std::string_view& field : fields) field = without_blanks(field);
  return fields;
}

template <std::size_t N>
std::size_t column_of(const std::vector<std::string_view>& header, const std::array<std::string_view, N>& names,
                      const std::string& path) {
  for (std::size_t i = 0; i < header.size(); ++i)
    for (const std::string_view name : names)
      if (same_name(header[i], name)) return i;
  throw input_error(line_of(path, 1), "it has no column of " + list_of(names) + "; expected one of them");
}

template <class Use>
void for_each_line(std::string_view text, Use use) {
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.ends_with('\r')) one.remove_suffix(1);
    if (!one.empty()) use(line, one);
  }
}

std::vector<RecordedArrival> read_csv(const std::string& path, std::string_view text) {
  Rows rows(path);
  std::size_t columns = 0, arrival = 0, prompt = 0, output = 0;
  for_each_line(text, [&](std::size_t line, std::string_view content) {
    const std::vector<std::string_view> fields = fields_of(content);
    if (columns == 0) {
      columns = fields.size();
      arrival = column_of(fields, kArrivalNames, path);
      prompt = column_of(fields, kPromptNames, path);
      output = column_of(fields, kOutputNames, path);
      return;
    }
    const auto fail = [&](const std::string& what) { throw input_error(line_of(path, line), what); };
    if (fields.size() != columns)
      fail("it has " + std::to_string(fields.size()) + " fields; expected " + std::to_string(columns) +
           ", as in the header");
    const auto number = [&](std::size_t column, const char* name) {
      const std::optional<double> value = read_number(fields[column]);
      if (!value) fail(std::string("the ") + name + " is " + in_quotes(fields[column]) + "; expected a number");
      return *value;
    };
    std::optional<std::int64_t> arrival_ns = read_date(fields[arrival]);
    if (!arrival_ns) arrival_ns = rows.ns_of(line, number(arrival, "arrival"));
    rows.add(line, *arrival_ns, number(prompt, "prompt length"), number(output, "output length"));
  });
  return rows.take();
}

std::vector<RecordedArrival> read_jsonl(const std::string& path, std::string_view text) {
  Rows rows(path);
  for_each_line(text, [&](std::size_t line, std::string_view content) {
    const nlohmann::json object = parse_json<nlohmann::json>(content, line_of(path, line));
    const auto fail = [&](const std::string& what) { throw input_error(line_of(path, line), what); };
    if (!object.is_object()) fail("it is no JSON object; expected one a line");
    const auto number = [&](const auto& names, double scale_of_second) {
      for (const std::string_view name : names) {
        const auto found = object.find(std::string(name));
        if (found == object.end()) continue;
        if (!found->is_number()) fail(std::string(name) + " is " + found->dump() + "; expected a number");
        return found->template get<double>() * (name == names[0] ? 1.0 : scale_of_second);
      }
      fail("it has none of the keys " + list_of(names) + "; expected one of them");
      return 0.0;
    };
    rows.add(line, rows.ns_of(line, number(kArrivalNames, 1e-3)), number(kPromptNames, 1.0), number(kOutputNames, 1.0));
  });
  return rows.take();
}

}  // namespace

std::vector<RecordedArrival> read_arrivals_file(const std::string& path) {
  const InputFile file(path, kTraceBytesMax);
  return path.ends_with(".jsonl") ? read_jsonl(path, file.text()) : read_csv(path, file.text());
}

}  // namespace draftproof
