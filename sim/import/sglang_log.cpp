#include "sim/import/sglang_log.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/words.hpp"
#include "sim/import/log_records.hpp"
#include "sim/import/server_setup.hpp"

namespace draftproof {
namespace {

constexpr std::string_view kKeys[] = {"accept len",       "accept_len",         "accept length",
                                      "accept_length",    "spec_accept_length", "avg_spec_accept_length",
                                      "acceptance length"};
constexpr std::string_view kBenchmark = "token/s, acceptance length:";
constexpr std::string_view kGenThroughput = "gen throughput (token/s)";
constexpr std::string_view kPrefill = "Prefill batch";

std::optional<double> length_of(std::string_view line, const std::string& where) {
  for (const std::string_view key : kKeys)
    if (const auto length = field(line, key, where)) return length;
  return std::nullopt;
}

class SglangReader {
 public:
  SglangReader(std::string_view text, const std::string& name) : lines_(text, name) {}

  void read() {
    while (lines_.next()) {
      try {
        read_line(lines_.line(), lines_.where());
      } catch (const Error&) {
        if (!lines_.is_cut()) throw;
        data.notes.emplace_back("The last line ends early and is left out.");
      }
    }
    if (runs_ > 1) data.notes.push_back("The lengths of " + counted_noun(runs_, "run") + " are averaged.");
    if (repeated_ > 0)
      data.notes.push_back(counted_noun(repeated_, "line") +
                           " of further tensor-parallel ranks left out: they repeat the first one's.");
  }

  AcceptanceData data;
  std::vector<AcceptanceWindow> windows;
  LoggedDraft form;

 private:
  void read_line(const std::string& line, const std::string& where) {
    if (const auto said = sglang_logged_draft(line, where); said && said->levels) form = *said;
    if (const auto interval = count_field(line, "decode_log_interval", where); interval && *interval > 0)
      steps_of_line_ = static_cast<double>(*interval);
    if (has_words(line, kPrefill)) return read_prefill(line, where);
    const auto length = length_of(line, where);
    if (length && *length < 1.0)
      throw input_error(where, "the accept length is " + std::to_string(*length) +
                                   "; expected at least 1, since the bonus token counts");
    const auto throughput = field(line, kGenThroughput, where);
    if (!length && !throughput) return;
    const std::string_view prefix = std::string_view(line).substr(0, find_words(line, "decode batch"));
    const int group = number_of_word(prefix, "DP").value_or(0);
    if (!speaks_for(group, prefix)) {
      ++repeated_;
      return;
    }
    const auto running = count_field(line, "#running-req", where);
    if (running && *running == 0) return;
    const auto asked = running ? running : count_field(line, "#questions", where);
    if (length)
      windows.push_back({where, asked ? WindowSize(Weight(static_cast<double>(*asked))) : WindowSize(), {}, length});
    if (has_words(line, kBenchmark)) ++runs_;
    if (!throughput || !running) return;
    // The throughput is of the time since the group's line before, prefills included.
    const auto requests = static_cast<double>(*running);
    require_running(requests, where);
    const double generated = steps_of_line_ * requests * length.value_or(1.0);
    const double prompts = std::exchange(prompt_tokens_[group], 0.0) * *throughput / generated;
    data.throughput.push_back({requests, *throughput, prompts, group, length});
  }

  void read_prefill(std::string_view line, const std::string& where) {
    const std::string_view prefix = line.substr(0, find_words(line, kPrefill));
    const int group = number_of_word(prefix, "DP").value_or(0);
    if (!speaks_for(group, prefix)) return;
    prompt_tokens_[group] += static_cast<double>(count_field(line, "#new-token", where).value_or(0));
  }

  // All ranks of a group have the same batch: the first that is met speaks for it.
  bool speaks_for(int group, std::string_view prefix) {
    const std::pair rank{number_of_word(prefix, "PP").value_or(0), number_of_word(prefix, "TP").value_or(0)};
    return speakers_.try_emplace(group, rank).first->second == rank;
  }

  LogRecords lines_;
  std::map<int, std::pair<int, int>> speakers_;
  std::map<int, double> prompt_tokens_;  // of each group, since its last decode line
  double steps_of_line_ = 40.0;          // decode_log_interval
  std::int64_t repeated_ = 0;
  std::int64_t runs_ = 0;  // of a benchmark
};

}  // namespace

bool is_sglang_log(std::string_view text) {
  return has_words(text, "accept len") || has_words(text, "accept_len") || has_words(text, kGenThroughput) ||
         has_words(text, kBenchmark) || has_words(text, "server_args=ServerArgs(");
}

AcceptanceData read_sglang_log(std::string_view text, const std::string& name, bool plain) {
  SglangReader reader(text, name);
  reader.read();
  AcceptanceData data = std::move(reader.data);
  data.format = "SGLang log";
  if (reader.windows.empty() && plain && !data.throughput.empty()) return data;
  if (reader.windows.empty())
    throw input_error(name,
                      "has no line with an accept length; expected SGLang's \"Decode batch, ... accept len: ...\"");
  data.draft_len = reader.form.levels.value_or(0);
  data.tree_nodes = reader.form.tree_nodes;
  merge_windows(reader.windows, name, data);
  if (data.tree_nodes > 0)
    data.notes.push_back("The drafts were trees of " + counted_noun(data.tree_nodes, "node") +
                         " (num_draft_tokens counts the root).");
  return data;
}

}  // namespace draftproof
