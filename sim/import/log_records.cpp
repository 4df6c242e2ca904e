#include "sim/import/log_records.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace draftproof {
namespace {

constexpr int kLinesOfRecordMax = 400;  // of a server's arguments on a narrow terminal

// Marks that begin the records that are read; those of arguments go on while a bracket is open.
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

// Where the records of a line begin whose line ends were lost: at what a server writes in front of one, else at its
// mark. Arguments go on to the end of the line.
std::vector<std::size_t> record_begins(std::string_view line) {
  constexpr std::array<std::string_view, 7> kPrefixes{
      "(APIServer", "(EngineCore", "INFO ", "INFO:", "[20", "Engine 0", "\\n"};
  std::vector<std::pair<std::size_t, bool>> marks;
  for (const RecordKind& kind : kKinds)
    for (std::size_t at = line.find(kind.mark); at != std::string_view::npos; at = line.find(kind.mark, at + 1))
      marks.emplace_back(at, kind.has_brackets);
  std::ranges::sort(marks);
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 1; i < marks.size() && !marks[i - 1].second; ++i) {
    const std::size_t before = marks[i - 1].first + 1;
    const std::string_view between = line.substr(before, marks[i].first - before);
    std::size_t begin = between.size();
    for (const std::string_view prefix : kPrefixes) begin = std::min(begin, between.find(prefix));
    begins.push_back(before + begin);
  }
  return begins;
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
  if (next_of_line_ == begins_.size()) {
    if (!lines_.next()) return;
    begins_ = record_begins(lines_.line());
    next_of_line_ = 0;
  }
  const std::size_t begin = begins_[next_of_line_++];
  const std::size_t end = next_of_line_ < begins_.size() ? begins_[next_of_line_] : lines_.line().size();
  ahead_ = lines_.line().substr(begin, end - begin);
  // A mail breaks lines between words.
  ahead_is_full_ = width_ > 0 && ahead_->size() == width_ && !ahead_->starts_with('>');
  if (ahead_->starts_with('>')) ahead_->erase(0, std::min(ahead_->find_first_not_of("> "), ahead_->size()));
  ahead_where_ = lines_.where();
  ahead_cut_ = next_of_line_ == begins_.size() && lines_.is_cut();
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
