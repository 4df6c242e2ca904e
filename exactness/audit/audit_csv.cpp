#include "exactness/audit/audit_csv.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "reference/numerics/fixed_point.hpp"

namespace draftproof {
namespace {

// 1 GiB of probabilities; more belong into a safetensors file.
constexpr std::int64_t kCellsMax = std::int64_t{1} << 28;
constexpr std::int64_t kIdMax = std::int64_t{1} << 53;
constexpr std::int64_t kCountMax = 1'000'000'000'000;
// A line of text takes several times its length in memory.
constexpr std::uint64_t kCsvBytesMax = std::uint64_t{1} << 28;
constexpr double kSumTolerance = 1e-3;

struct Line {
  std::int64_t number;  // from 1
  std::int64_t group;
  std::int64_t token;
  std::string_view value;
};

std::string at(const std::string& path, std::int64_t line) {
  return path + ": line " + std::to_string(line);
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// The file without the byte-order mark that spreadsheets write before UTF-8.
std::string_view utf8_text(std::string_view text, const std::string& path) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw input_error(path, "is UTF-16, as its byte-order mark says; expected UTF-8 (\"CSV UTF-8\" in a spreadsheet)");
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

// The text up to the next separator, taken off `text`.
std::string_view next_part(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return part;
}

class CsvReader {
 public:
  CsvReader(const std::string& path, std::string_view value_column) : path_(path), value_column_(value_column) {}

  std::int64_t whole(std::string_view text, std::int64_t max, std::int64_t line, std::string_view column) const {
    if (const std::optional<std::int64_t> number = read_integer(text, 0, max)) return *number;
    throw input_error(at(path_, line), std::string(column) + " is " + in_quotes(text) +
                                           "; expected a whole number in [0, " + std::to_string(max) + "]");
  }

  // Calls visit(line) for every line but the first.
  template <class Visit>
  void read(const Visit& visit) {
    const InputFile file(path_, kCsvBytesMax);
    std::string_view rest = utf8_text(file.text(), path_);
    bool has_header = false;
    for (std::int64_t number = 1; !rest.empty(); ++number) {
      const std::string_view line = trimmed(next_part(rest, '\n'));
      if (line.empty()) continue;
      if (!has_header) {
        read_header(line, number);
        has_header = true;
      } else {
        visit(fields_of(line, number));
      }
    }
    if (!has_header) throw input_error(path_, "is empty; expected a first line " + header());
  }

 private:
  std::string header() const { return "'group,token," + std::string(value_column_) + "'"; }

  void read_header(std::string_view line, std::int64_t number) {
    std::array<bool, 3> found{};
    while (!line.empty()) {
      const std::string_view name = trimmed(next_part(line, ','));
      const std::array<std::string_view, 3> names = {"group", "token", value_column_};
      const auto column = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
      if (column == names.size() || found[column])
        throw input_error(at(path_, number),
                          (column == names.size() ? "does not know the column " : "has twice the column ") +
                              in_quotes(name) + "; expected a first line " + header());
      found[column] = true;
      columns_.push_back(column);
    }
    if (!found[1] || !found[2])
      throw input_error(at(path_, number), "does not name the columns; expected a first line " + header());
  }

  Line fields_of(std::string_view line, std::int64_t number) const {
    std::array<std::string_view, 3> fields = {"0", "", ""};
    const auto commas = static_cast<std::size_t>(std::count(line.begin(), line.end(), ','));
    if (commas + 1 != columns_.size())
      throw input_error(at(path_, number), "has " + std::to_string(commas + 1) + " fields; expected " +
                                               std::to_string(columns_.size()) + ", as in the first line");
    for (const std::size_t column : columns_) fields[column] = trimmed(next_part(line, ','));
    return {number, whole(fields[0], kIdMax, number, "group"), whole(fields[1], kVocabularyLimit - 1, number, "token"),
            fields[2]};
  }

  std::string path_;
  std::string_view value_column_;
  std::vector<std::size_t> columns_;  // meaning of each field: 0 group, 1 token, 2 value
};

struct Probability {
  std::int64_t group;
  std::int64_t token;
  double value;
  std::int64_t line;
};

std::vector<Probability> read_probabilities(const std::string& path) {
  std::vector<Probability> all;
  CsvReader(path, "prob").read([&](const Line& line) {
    const std::optional<double> p = read_number(line.value);
    if (!p || *p < 0.0 || *p > 1.0)
      throw input_error(at(path, line.number), "prob is " + in_quotes(line.value) + "; expected a number in [0, 1]");
    all.push_back({line.group, line.token, *p, line.number});
  });
  std::stable_sort(all.begin(), all.end(), [](const Probability& a, const Probability& b) {
    return std::pair(a.group, a.token) < std::pair(b.group, b.token);
  });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].group == all[i - 1].group && all[i].token == all[i - 1].token)
      throw input_error(at(path, all[i].line), "gives token " + std::to_string(all[i].token) + " of group " +
                                                   std::to_string(all[i].group) + " again, after line " +
                                                   std::to_string(all[i - 1].line) + "; expected once");
  }
  return all;
}

}  // namespace

DrawSample read_audit_csv(const std::string& counts_path, const std::string& probs_path) {
  const std::vector<Probability> probabilities = read_probabilities(probs_path);
  DrawSample sample;
  std::int64_t vocab_size = 0;
  for (const Probability& p : probabilities) {
    if (sample.group_ids.empty() || sample.group_ids.back() != p.group) sample.group_ids.push_back(p.group);
    vocab_size = std::max(vocab_size, p.token + 1);
  }
  std::map<std::pair<std::size_t, Token>, std::int64_t> counts;
  std::int64_t total = 0;
  CsvReader counts_file(counts_path, "count");
  counts_file.read([&](const Line& line) {
    const auto found = std::lower_bound(sample.group_ids.begin(), sample.group_ids.end(), line.group);
    if (found == sample.group_ids.end() || *found != line.group)
      throw input_error(at(counts_path, line.number),
                        "group " + std::to_string(line.group) + " has no probabilities in " + probs_path);
    const std::int64_t count = counts_file.whole(line.value, kCountMax, line.number, "count");
    if (count == 0) return;
    total += count;
    if (total > kCountMax)
      throw input_error(at(counts_path, line.number), "the counts up to here add up to " + std::to_string(total) +
                                                          "; expected at most " + std::to_string(kCountMax));
    counts[{static_cast<std::size_t>(found - sample.group_ids.begin()), static_cast<Token>(line.token)}] += count;
    vocab_size = std::max(vocab_size, line.token + 1);
  });

  const auto groups = static_cast<std::int64_t>(sample.group_ids.size());
  if (groups * vocab_size > kCellsMax)
    throw input_error(probs_path, std::to_string(groups) + " groups of " + std::to_string(vocab_size) +
                                      " tokens are too many for text; expected a safetensors file");
  // [G, V] of which the sample's distributions are views.
  const auto rows = std::make_shared<std::vector<float>>(static_cast<std::size_t>(groups * vocab_size), 0.0f);
  std::vector<double> sums(static_cast<std::size_t>(groups), 0.0);
  std::size_t group = 0;
  for (const Probability& p : probabilities) {
    if (sample.group_ids[group] != p.group) ++group;
    (*rows)[group * static_cast<std::size_t>(vocab_size) + static_cast<std::size_t>(p.token)] =
        static_cast<float>(p.value);
    sums[group] += p.value;
  }
  for (std::size_t g = 0; g < sums.size(); ++g) {
    if (!(std::abs(sums[g] - 1.0) <= kSumTolerance))
      throw input_error(probs_path, "the probabilities of group " + std::to_string(sample.group_ids[g]) + " sum to " +
                                        std::to_string(sums[g]) + "; expected 1 within 0.001");
    VerifyRequest distribution;
    distribution.target_is_probabilities = true;
    distribution.target = {DType::f32, rows->data() + g * static_cast<std::size_t>(vocab_size), 1, vocab_size,
                           vocab_size};
    sample.distributions.push_back(distribution);
  }
  sample.begins.assign(sample.distributions.size() + 1, 0);
  for (const auto& [cell, count] : counts) {
    sample.counts.push_back({cell.second, count});
    ++sample.begins[cell.first + 1];
  }
  for (std::size_t g = 0; g < sample.distributions.size(); ++g) sample.begins[g + 1] += sample.begins[g];
  sample.keeps = rows;
  return sample;
}

}  // namespace draftproof
