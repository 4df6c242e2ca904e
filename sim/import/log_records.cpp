#include "sim/import/log_records.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace draftproof {
namespace {

constexpr int kLinesOfRecordMax = 400;  // of a server's arguments on a narrow terminal

// What begins the records that are read; those of arguments go on while a bracket is open.
struct RecordKind {
  std::string_view mark;
  bool has_brackets;
};
constexpr std::array kKinds{RecordKind{"SpecDecoding metrics:", false},
                            RecordKind{"Speculative metrics:", false},
                            RecordKind{"Avg prompt throughput:", false},
                            RecordKind{"Decode batch", false},
                            RecordKind{"server_args=", true},
                            RecordKind{"non-default args:", true},
                            RecordKind{"LLM engine (v", true}};
// Names of fields that follow on one of the first four.
constexpr std::array<std::string_view, 16> kFields{
    "acceptance rate", "acceptance length", "throughput",   "accepted:",     "drafted:",   "running:",
    "waiting:",        "cache usage",       "hit rate",     "tokens/s",      "#queue-req", "accept len",
    "cuda graph",      "token usage",       "draft tokens", "emitted tokens"};

constexpr std::string_view kDigits = "0123456789";

bool is_digit(char c) {
  return kDigits.find(c) != std::string_view::npos;
}

const RecordKind* record_kind_of(std::string_view line) {
  const auto found = std::ranges::find_if(
      kKinds, [&](const RecordKind& kind) { return line.find(kind.mark) != std::string_view::npos; });
  return found == kKinds.end() ? nullptr : &*found;
}

// Where a line ends within the mark.
const RecordKind* kind_across(std::string_view line, std::string_view next, std::string_view between) {
  constexpr std::size_t kMarkMax = 32;
  line.remove_prefix(line.size() - std::min(line.size(), kMarkMax));
  return record_kind_of(std::string(line) + std::string(between) + std::string(next.substr(0, kMarkMax)));
}

// A time or a date near the front, "12:30" or "2026-05".
bool has_time(std::string_view line) {
  constexpr std::size_t kWithin = 40;
  line = line.substr(0, kWithin);
  for (std::size_t i = 2; i + 2 < line.size(); ++i)
    if ((line[i] == ':' || line[i] == '-' || line[i] == '/') && is_digit(line[i - 1]) && is_digit(line[i - 2]) &&
        is_digit(line[i + 1]) && is_digit(line[i + 2]))
      return true;
  return false;
}

bool begins_record(std::string_view line) {
  constexpr std::array<std::string_view, 4> kLevels{"INFO", "WARN", "ERROR", "DEBUG"};
  return line.empty() || record_kind_of(line) != nullptr || has_time(line) ||
         std::ranges::any_of(kLevels, [&](std::string_view level) { return line.starts_with(level); });
}

// Where a second record begins in a line of several, whose line ends were lost: at what a server writes in front of
// one, else at its mark. npos: there is one. The rest of a list of arguments is one record.
std::size_t second_record(std::string_view line) {
  constexpr std::array<std::string_view, 7> kPrefixes{
      "(APIServer", "(EngineCore", "INFO ", "INFO:", "[20", "Engine 0", "\\n"};
  const auto mark_from = [&](std::size_t from) {
    std::pair<std::size_t, bool> mark{std::string_view::npos, false};
    for (const RecordKind& kind : kKinds) mark = std::min(mark, {line.find(kind.mark, from), kind.has_brackets});
    return mark;
  };
  const auto [first, has_brackets] = mark_from(0);
  if (first == std::string_view::npos || has_brackets) return std::string_view::npos;
  const std::size_t second = mark_from(first + 1).first;
  if (second == std::string_view::npos) return second;
  std::size_t begin = second;
  for (const std::string_view prefix : kPrefixes) begin = std::min(begin, line.find(prefix, first + 1));
  return begin;
}

bool is_open(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  return depth > 0;
}

// Does `next`, which begins no record, belong to this one, whose last line is as wide as a terminal or is not?
bool goes_on(std::string_view record, bool is_full, const RecordKind& kind, std::string_view next) {
  if (kind.has_brackets) return is_full || record.ends_with(',') || is_open(record.substr(record.find(kind.mark)));
  constexpr std::string_view kBlanks = " \t";
  next.remove_prefix(std::min(next.find_first_not_of(kBlanks), next.size()));
  if (next.empty()) return false;
  const char last = record[record.find_last_not_of(kBlanks)];
  const bool is_finished = record.find("#queue-req: ") != std::string_view::npos || last == '%';
  if (next.front() == ',' || (last == ',' && !is_finished) || last == ':') return true;
  if (is_finished || is_full) return !is_finished;
  // The rest of a list, or of a number.
  if (next.find_first_not_of("0123456789., %") == std::string_view::npos) return true;
  return std::ranges::any_of(kFields, [&](std::string_view field) { return has_words(next, field); });
}

// The width at which a terminal wraps: that of the longest lines, if there are more than one.
std::size_t width_of(std::string_view text) {
  constexpr std::size_t kLeast = 40;
  std::size_t longest = 0, count = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    count = line.size() > longest ? 1 : count + (line.size() == longest ? 1 : 0);
    longest = std::max(longest, line.size());
  }
  return count > 1 && longest >= kLeast ? longest : 0;
}

}  // namespace

LogRecords::LogRecords(std::string_view text, std::string name)
    : lines_(text, std::move(name)), width_(width_of(text)) {
  take();
}

void LogRecords::take() {
  ahead_.reset();
  if (!rest_.empty()) {
    ahead_ = std::exchange(rest_, {});
  } else {
    if (!lines_.next()) return;
    ahead_ = lines_.line();
  }
  if (const std::size_t second = second_record(*ahead_); second != std::string_view::npos && second > 0) {
    rest_ = ahead_->substr(second);
    ahead_->resize(second);
  }
  // A mail breaks lines between words.
  ahead_is_full_ = width_ > 0 && ahead_->size() == width_ && !ahead_->starts_with('>');
  if (ahead_->starts_with('>')) ahead_->erase(0, std::min(ahead_->find_first_not_of("> "), ahead_->size()));
  ahead_where_ = lines_.where();
  ahead_cut_ = rest_.empty() && lines_.is_cut();
}

bool LogRecords::next() {
  if (!ahead_) return false;
  record_ = std::move(*ahead_);
  where_ = ahead_where_;
  cut_ = ahead_cut_;
  bool is_full = ahead_is_full_;
  take();
  const RecordKind* kind = record_kind_of(record_);
  for (int lines = 1; ahead_ && lines < kLinesOfRecordMax; ++lines) {
    if (record_.empty() || begins_record(*ahead_)) break;
    const auto is_of_number = [](char c) { return is_digit(c) || c == '.'; };
    const bool within_number = is_of_number(record_.back()) && is_of_number(ahead_->front());
    const std::string_view between = is_full || within_number ? "" : " ";
    if (kind == nullptr)
      kind = kind_across(record_, *ahead_, between);
    else if (!goes_on(record_, is_full, *kind, *ahead_))
      break;
    if (kind == nullptr) break;
    record_.append(between).append(*ahead_);
    is_full = ahead_is_full_;
    cut_ = ahead_cut_;
    take();
  }
  return true;
}

}  // namespace draftproof
