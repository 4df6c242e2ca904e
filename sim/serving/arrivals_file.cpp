#include "sim/serving/arrivals_file.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "base/archives/text_file.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/csv.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kTraceBytesMax = std::uint64_t{4} << 30;
constexpr double kSecondsMax = 4e9;

using Names = std::span<const std::string_view>;

// Names by which traces call a value. Arrivals and delays may end with their unit, as arrival_s and delay_ms.
constexpr std::array<std::string_view, 7> kArrivalNames{
    "arrival", "timestamp", "arrived_at", "arrival_timestamp", "arrival_time", "created_time", "time"};
constexpr std::array<std::string_view, 1> kDelayNames{"delay"};
constexpr std::array<std::string_view, 1> kSessionNames{"session_id"};
constexpr std::array<std::string_view, 8> kPromptNames{"prompt_len",     "input_length",      "ContextTokens",
                                                       "Request tokens", "input_tokens",      "prompt_tokens",
                                                       "prompt_size",    "num_prefill_tokens"};
constexpr std::array<std::string_view, 8> kOutputNames{"output_len",      "output_length",    "GeneratedTokens",
                                                       "Response tokens", "output_tokens",    "completion_tokens",
                                                       "token_size",      "num_decode_tokens"};

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr std::array<Unit, 4> kUnits{{{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};

// A key that one public trace has, and the unit of its times. The first that a file has decides.
struct Mark {
  std::string_view key;
  std::string_view unit;
};
constexpr std::array<Mark, 9> kMarks{{{"parent_chat_id", "s"},
                                      {"chat_id", "s"},
                                      {"num_prefill_tokens", "s"},
                                      {"token_size", "s"},
                                      {"response tokens", "s"},
                                      {"delay", "ms"},
                                      {"delay_ms", "ms"},
                                      {"session_id", "ms"},
                                      {"input_length", "ms"}}};

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower_case(x) == lower_case(y); });
}

const Unit& unit_named(std::string_view name) {
  return *std::ranges::find(kUnits, name, &Unit::name);
}

// The unit with which a name ends, and the name without it.
std::pair<std::string_view, std::string_view> without_unit(std::string_view name) {
  for (const Unit& unit : kUnits)
    if (name.size() > unit.name.size() + 1 && name.ends_with(unit.name) &&
        name[name.size() - unit.name.size() - 1] == '_')
      return {name.substr(0, name.size() - unit.name.size() - 1), unit.name};
  return {name, ""};
}

bool is_one_of(std::string_view name, Names names) {
  return std::ranges::any_of(names, [&](std::string_view other) {
    return same_name(name, other) || (names.size() < kPromptNames.size() && same_name(without_unit(name).first, other));
  });
}

// Nanoseconds since 1970; of a date without a zone as if it were of UTC.
struct Date {
  std::int64_t ns = 0;
  bool has_zone = false;
};

// "2023-11-16 18:15:46.6805900", with Z, UTC, +00:00, -0800 or +05 behind it or no zone. Years whose seconds are within
// kSecondsMax.
std::optional<Date> read_date(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00 00:00:";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() < kForm.size() + 2) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == '0' ? !is_digit(text[i]) : text[i] != kForm[i] && !(i == 10 && text[i] == 'T')) return std::nullopt;
  const auto whole = [&](std::string_view from, std::size_t at, std::size_t digits) {
    int value = 0;
    for (const char c : from.substr(at, digits)) value = value * 10 + (c - '0');
    return value;
  };
  std::string_view rest = text.substr(kForm.size());
  const std::size_t end = rest.find_first_not_of("0123456789.");
  std::string_view zone = end == std::string_view::npos ? "" : rest.substr(end);
  rest = rest.substr(0, end);
  if (rest.size() > 1 && rest.front() == '0') rest.remove_prefix(1);
  const std::optional<double> second = read_number(rest);
  const std::chrono::year_month_day day{std::chrono::year(whole(text, 0, 4)),
                                        std::chrono::month(static_cast<unsigned>(whole(text, 5, 2))),
                                        std::chrono::day(static_cast<unsigned>(whole(text, 8, 2)))};
  const int hour = whole(text, 11, 2), minute = whole(text, 14, 2), year = whole(text, 0, 4);
  if (!second || *second >= 61.0 || !day.ok() || hour > 23 || minute > 59 || year < 1900 || year > 2090)
    return std::nullopt;
  int offset_minutes = 0;
  zone = without_blanks(zone);
  if (!zone.empty() && !same_name(zone, "Z") && !same_name(zone, "UTC")) {
    const int sign = zone.front() == '+' ? 1 : zone.front() == '-' ? -1 : 0;
    std::string digits(zone.substr(1));
    if (digits.size() == 5 && digits[2] == ':') digits.erase(2, 1);
    if (sign == 0 || (digits.size() != 2 && digits.size() != 4) || !std::ranges::all_of(digits, is_digit))
      return std::nullopt;
    const int hours = whole(digits, 0, 2), minutes = digits.size() == 4 ? whole(digits, 2, 2) : 0;
    if (hours > 14 || minutes > 59) return std::nullopt;
    offset_minutes = sign * (hours * 60 + minutes);
  }
  const std::int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
  return Date{((days * 24 + hour) * 60 + minute - offset_minutes) * 60'000'000'000 + std::llround(*second * 1e9),
              !zone.empty()};
}

// A time or a delay as it stands in the file.
struct Time {
  std::optional<Date> date;
  double value = 0.0;
  std::string_view unit = "";  // of a delay whose name says it
};

struct RawRequest {
  std::size_t line = 0;
  Time arrival;
  bool is_delay = false;  // of a later turn
  RecordedArrival recorded;
};

// Takes the rows of a file, and makes a trace of them once all are known.
class Rows {
 public:
  enum class Form : std::uint8_t { csv, json_lines, json_list };

  Rows(std::string path, Form form, std::string unit) : path_(std::move(path)), form_(form), unit_(std::move(unit)) {}

  std::string where(std::size_t line) const {
    return path_ + (form_ == Form::json_list ? ", item " : ":") + std::to_string(line);
  }
  [[noreturn]] void fail(std::size_t line, const std::string& what) const { throw input_error(where(line), what); }

  // Keys of the file, in the file's own words; `arrival` is the one that is read. The keys of JSON traces mean nothing
  // in CSV.
  void set_keys(const std::vector<std::string>& keys, const std::string& arrival) {
    arrival_name_ = arrival;
    if (const std::string_view unit = without_unit(arrival).second; !unit.empty()) {
      said_ = unit;
      return;
    }
    for (const Mark& mark : kMarks)
      for (const std::string& key : keys)
        if (said_.empty() && same_name(key, mark.key) && (form_ != Form::csv || mark.unit == "s")) {
          said_ = mark.unit;
          only_whole_ = mark.key == "input_length";
        }
  }

  void add(std::size_t line, std::optional<Time> arrival, const std::optional<Time>& delay, const std::string& session,
           double prompt_len, double output_len) {
    Session* const known = session.empty() ? nullptr : &sessions_[session];
    RawRequest request{line, {}, delay && known != nullptr && known->last >= 0, {}};
    if (request.is_delay) {
      arrival = delay;
      request.recorded.turn_before = known->last;
    } else if (delay && known != nullptr && known->arrival) {  // all turns before it failed
      arrival = known->arrival;
    }
    if (arrival && arrival->date) require_zone(line, arrival->date->has_zone);
    if (!arrival) fail(line, "it has none of the keys " + joined(kArrivalNames, ", ") + "; expected one of them");
    request.arrival = *arrival;
    if (known != nullptr && !request.is_delay) known->arrival = arrival;
    if (output_len == 0.0) {
      ++left_out_;
      return;
    }
    request.recorded.prompt_len = length(line, "prompt", prompt_len);
    request.recorded.output_len = length(line, "output", output_len);
    if (known != nullptr) known->last = static_cast<std::int64_t>(rows_.size());
    rows_.push_back(request);
  }

  ArrivalTrace take() {
    if (rows_.empty())
      throw input_error(path_, left_out_ == 0 ? "it holds no request; expected at least one"
                                              : "it holds no request with output tokens; expected at least one");
    ArrivalTrace trace;
    trace.left_out = left_out_;
    const Unit& unit = unit_of_times(trace.unit);
    std::int64_t first_ns = 0, last_ns = 0;
    bool any = false;
    for (RawRequest& row : rows_) {
      std::int64_t& ns = row.recorded.arrival_ns;
      ns = ns_of(row, unit);
      if (row.is_delay) {
        if (ns < 0) fail(row.line, "the delay is below 0; expected a time after the turn before");
        ++trace.later_turns;
      } else {
        if (!std::exchange(any, true)) first_ns = ns;
        ns -= first_ns;
        if (ns < last_ns)
          fail(row.line,
               "the arrival lies before that of the request above; expected times that "
               "do not go back");
        if (static_cast<double>(ns) > kSecondsMax * 1e9)
          fail(row.line, "the arrival lies " + nlohmann::json(static_cast<double>(ns) * 1e-9).dump() +
                             " s behind the first; expected at most 4e9 s");
        last_ns = ns;
      }
      trace.requests.push_back(row.recorded);
    }
    require_plausible(trace, last_ns);
    return trace;
  }

 private:
  struct Session {
    std::int64_t last = -1;  // number of its last request that did not fail
    std::optional<Time> arrival;
  };

  // A date without a zone beside others may be of any.
  void require_zone(std::size_t line, bool has_zone) {
    if (!first_date_) first_date_ = {line, has_zone};
    if (first_date_->second != has_zone)
      fail(line, std::string("its date has ") + (has_zone ? "a" : "no") + " zone, and that of line " +
                     std::to_string(first_date_->first) + " has " + (has_zone ? "none" : "one") +
                     "; expected one in every date, or in none");
  }

  std::int32_t length(std::size_t line, const char* name, double value) const {
    if (value >= 1.0 && value <= std::numeric_limits<std::int32_t>::max() && value == std::floor(value))
      return static_cast<std::int32_t>(value);
    fail(line, std::string("the ") + name + " has " + nlohmann::json(value).dump() +
                   " tokens; expected a whole number from 1");
  }

  [[noreturn]] void ask(const std::string& why) const {
    throw input_error(path_, why + "; expected its unit: --time-unit s, ms, us or ns (in a scenario time_unit)");
  }

  // The unit that numbers count. Sets the trace's word for it, and whether keys alone decide it.
  const Unit& unit_of_times(std::string& word) {
    const auto named = [&](std::string_view name) -> const Unit& {
      word = name;
      return unit_named(name);
    };
    if (!unit_.empty()) {
      if (std::ranges::all_of(rows_, [](const RawRequest& row) { return row.arrival.date.has_value(); }))
        throw input_error(path_,
                          "its times are dates, which count nothing; expected no --time-unit (in a scenario "
                          "no time_unit)");
      return named(unit_);
    }
    const bool is_in_name = !without_unit(arrival_name_).second.empty();
    const auto number = std::ranges::find_if(rows_, [](const RawRequest& row) { return !row.arrival.date; });
    if (number == rows_.end()) {
      word = "dates";
      return kUnits[0];
    }
    // Seconds since 1970 of our time have ten digits, other units three more each.
    if (!is_in_name && !number->is_delay)
      for (std::size_t i = 0; i < kUnits.size(); ++i)
        if (const double seconds = number->arrival.value * kUnits[i].seconds; seconds >= 9e8 && seconds <= kSecondsMax)
          return named(kUnits[i].name);
    const bool has_fractions = std::ranges::any_of(
        rows_, [](const RawRequest& row) { return row.arrival.value != std::floor(row.arrival.value); });
    if (said_.empty()) ask(in_quotes(arrival_name_) + " does not say what it counts");
    if (only_whole_ && has_fractions)
      ask(in_quotes(arrival_name_) + " has fractions, where such files count whole milliseconds");
    by_keys_alone_ = !is_in_name;
    return named(said_);
  }

  // Times and their differences stay in 64 bits of nanoseconds.
  std::int64_t ns_of(const RawRequest& row, const Unit& unit) const {
    if (row.arrival.date) return row.arrival.date->ns;
    const double unit_s = row.arrival.unit.empty() ? unit.seconds : unit_named(row.arrival.unit).seconds;
    const double seconds = row.arrival.value * unit_s;
    if (std::abs(seconds) <= kSecondsMax) return std::llround(row.arrival.value * (unit_s * 1e9));
    fail(row.line, "the arrival is at " + nlohmann::json(seconds).dump() + " s; expected seconds from -4e9 to 4e9");
  }

  void require_plausible(const ArrivalTrace& trace, std::int64_t span_ns) const {
    constexpr double kRateMax = 1000.0, kGapMaxS = 30.0 * 86'400.0;
    const auto gaps = static_cast<double>(static_cast<std::int64_t>(rows_.size()) - trace.later_turns - 1);
    const double gap_s = static_cast<double>(span_ns) * 1e-9 / gaps;
    if (!by_keys_alone_ || gaps < 1.0 || span_ns == 0) return;
    if (gap_s * kRateMax < 1.0)
      ask("read in " + trace.unit + ", " + number("%.4g", 1.0 / gap_s) + " requests come a second");
    if (gap_s > kGapMaxS)
      ask("read in " + trace.unit + ", requests come " + number("%.3g", gap_s / 86'400.0) + " days after one another");
  }

  std::string path_;
  Form form_;
  std::string unit_, arrival_name_;
  std::string said_;         // by the name of the arrival or the keys beside it; empty: nothing says it
  bool only_whole_ = false;  // of a trace whose times are whole numbers
  bool by_keys_alone_ = false;
  std::map<std::string, Session> sessions_;
  std::optional<std::pair<std::size_t, bool>> first_date_;  // its line, and whether it has a zone
  std::vector<RawRequest> rows_;
  std::int64_t left_out_ = 0;
};

// Fields of a line, in quotes or not.
std::vector<std::string> fields_of(std::string_view line, const std::string& where) {
  if (line.find('"') != std::string_view::npos) return parse_csv(line, where).columns;
  std::vector<std::string> fields;
  for (const std::string_view field : split(line, ',')) fields.emplace_back(without_blanks(field));
  return fields;
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

ArrivalTrace read_csv_trace(const std::string& path, std::string_view text, const std::string& unit) {
  Rows rows(path, Rows::Form::csv, unit);
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::string> header;
  std::size_t arrival = kNone, prompt = kNone, output = kNone;
  for_each_line(text, [&](std::size_t line, std::string_view content) {
    const std::vector<std::string> fields = fields_of(content, rows.where(line));
    if (header.empty()) {
      header = fields;
      const auto column_of = [&](Names names) {
        for (std::size_t i = 0; i < header.size(); ++i)
          if (is_one_of(header[i], names)) return i;
        rows.fail(line, "it has no column of " + joined(names, ", ") + "; expected one of them");
      };
      arrival = column_of(kArrivalNames), prompt = column_of(kPromptNames), output = column_of(kOutputNames);
      rows.set_keys(header, header[arrival]);
      return;
    }
    if (fields.size() != header.size())
      rows.fail(line, "it has " + std::to_string(fields.size()) + " fields; expected " + std::to_string(header.size()) +
                          ", as in the header");
    const auto number = [&](std::size_t column, const char* name) {
      const std::optional<double> value = read_number(fields[column]);
      if (!value)
        rows.fail(line, std::string("the ") + name + " is " + in_quotes(fields[column]) + "; expected a number");
      return *value;
    };
    Time time{read_date(fields[arrival]), 0.0};
    if (!time.date) time.value = number(arrival, "arrival");
    rows.add(line, time, std::nullopt, "", number(prompt, "prompt length"), number(output, "output length"));
  });
  return rows.take();
}

void add_object(Rows& rows, std::size_t line, const nlohmann::json& object, bool& has_keys) {
  if (!object.is_object()) rows.fail(line, "it is no JSON object; expected one a line");
  const auto find = [&](Names names) {
    auto found = object.begin();
    while (found != object.end() && !is_one_of(found.key(), names)) ++found;
    return found;
  };
  const auto number = [&](nlohmann::json::const_iterator found, Names names) {
    if (found == object.end())
      rows.fail(line, "it has none of the keys " + joined(names, ", ") + "; expected one of them");
    if (!found->is_number())
      rows.fail(line, printable_line(found.key()) + " is " + printable_line(found->dump()) + "; expected a number");
    return found->get<double>();
  };
  const auto arrival = find(kArrivalNames), delay = find(kDelayNames), session = find(kSessionNames);
  std::optional<Time> delay_time, time;
  if (delay != object.end() && session != object.end())
    delay_time = {std::nullopt, number(delay, kDelayNames), without_unit(delay.key()).second};
  if (arrival != object.end() && arrival->is_string())
    if (const auto date = read_date(arrival->get_ref<const std::string&>())) time = Time{date};
  if (!time && arrival != object.end()) time = Time{std::nullopt, number(arrival, kArrivalNames)};
  if (arrival != object.end() && !std::exchange(has_keys, true)) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    rows.set_keys(keys, arrival.key());
  }
  rows.add(line, time, delay_time, session == object.end() ? "" : session->dump(),
           number(find(kPromptNames), kPromptNames), number(find(kOutputNames), kOutputNames));
}

}  // namespace

double ArrivalTrace::seconds() const {
  const auto last =
      std::find_if(requests.rbegin(), requests.rend(), [](const RecordedArrival& r) { return r.turn_before < 0; });
  return last == requests.rend() ? 0.0 : static_cast<double>(last->arrival_ns) / 1e9;
}

bool names_arrivals(std::string_view line) {
  const auto has = [&](Names names) {
    return std::ranges::any_of(names, [&](std::string_view name) {
      return std::search(line.begin(), line.end(), name.begin(), name.end(), [](char a, char b) {
               return same_name({&a, 1}, {&b, 1});
             }) != line.end();
    });
  };
  return has(kArrivalNames) && has(kPromptNames) && has(kOutputNames);
}

ArrivalTrace read_arrivals_file(const std::string& path, const std::string& unit) {
  return parse_arrivals(read_text(path, kTraceBytesMax), path, unit);
}

ArrivalTrace parse_arrivals(std::string_view text, const std::string& path, const std::string& unit) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const char first = begin == std::string_view::npos ? '\0' : text[begin];
  bool has_keys = false;
  if (first != '{' && first != '[') return read_csv_trace(path, text, unit);
  const std::size_t next = text.find_first_not_of(" \t\r\n", begin + 1);
  if (first == '[' && next != std::string_view::npos && text[next] == '{') {
    Rows rows(path, Rows::Form::json_list, unit);
    const auto list = parse_json<nlohmann::json>(text, path);
    if (!list.is_array()) throw input_error(path, "it is no JSON list that ends; expected objects of requests");
    for (std::size_t i = 0; i < list.size(); ++i) add_object(rows, i, list[i], has_keys);
    return rows.take();
  }
  Rows rows(path, Rows::Form::json_lines, unit);
  for_each_line(text, [&](std::size_t line, std::string_view content) {
    add_object(rows, line, parse_json<nlohmann::json>(content, rows.where(line)), has_keys);
  });
  return rows.take();
}

}  // namespace draftproof
