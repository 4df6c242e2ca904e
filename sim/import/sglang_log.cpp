#include "sim/import/sglang_log.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kDigitsMax = 5;  // of a rank

// "TP1]", "TP1 " as a word of the prefix; nothing where there is none.
std::optional<int> rank_of(std::string_view line, std::string_view kind) {
  for (std::size_t at = line.find(kind); at != std::string_view::npos; at = line.find(kind, at + 1)) {
    if (at > 0 && line[at - 1] != ' ' && line[at - 1] != '[') continue;
    int rank = 0;
    std::size_t end = at + kind.size();
    const std::size_t most = std::min(line.size(), at + kDigitsMax + kind.size() + 1);
    for (; end < most && line[end] >= '0' && line[end] <= '9'; ++end) rank = rank * 10 + (line[end] - '0');
    if (end > at + kind.size() && end <= at + kDigitsMax + kind.size()) return rank;
  }
  return std::nullopt;
}

constexpr std::string_view kKeys[] = {"accept len",    "accept_len",         "accept length",
                                      "accept_length", "spec_accept_length", "avg_spec_accept_length"};

std::optional<double> length_of(std::string_view line, const std::string& where) {
  for (const std::string_view key : kKeys)
    if (const auto length = field(line, key, where)) return length;
  return std::nullopt;
}

}  // namespace

bool is_sglang_log(std::string_view text) {
  return has_words(text, "accept len") || has_words(text, "accept_len");
}

AcceptanceData read_sglang_log(std::string_view text, const std::string& name) {
  AcceptanceData data;
  data.format = "SGLang log";
  std::vector<AcceptanceWindow> windows;
  std::int64_t other_ranks = 0;
  std::int64_t top_k = 1;
  std::int64_t draft_tokens = 0;
  TextLines lines(text, name);
  while (lines.next()) {
    const std::string& line = lines.line();
    const std::string where = lines.where();
    try {
      if (const auto steps = count_field(line, "speculative_num_steps", where))
        data.draft_len = static_cast<std::int32_t>(*steps);
      if (const auto k = count_field(line, "speculative_eagle_topk", where)) top_k = *k;
      if (const auto n = count_field(line, "speculative_num_draft_tokens", where)) draft_tokens = *n;
    } catch (const Error&) {  // "speculative_num_steps=None": not set
    }
    try {
      const auto length = length_of(line, where);
      if (!length) continue;
      if (*length < 1.0)
        throw input_error(where, "the accept length is " + std::to_string(*length) +
                                     "; expected at least 1, since the bonus token counts");
      const std::string_view prefix = std::string_view(line).substr(0, find_words(line, "decode batch"));
      if (!rank_of(prefix, "DP") && rank_of(prefix, "TP").value_or(0) > 0) {
        ++other_ranks;
        continue;
      }
      const auto running = count_field(line, "#running-req", where);
      if (running && *running == 0) continue;
      windows.push_back({where, running, {}, length});
      if (const auto throughput = field(line, "gen throughput (token/s)", where))
        data.throughput.push_back({static_cast<double>(running.value_or(0)), *throughput, 0.0});
    } catch (const Error&) {
      if (!lines.is_cut()) throw;
      data.notes.push_back("The last line ends early and is left out.");
    }
  }
  if (windows.empty())
    throw input_error(name,
                      "has no line with an accept length; expected SGLang's \"Decode batch, ... accept len: ...\"");
  if (other_ranks > 0)
    data.notes.push_back(std::to_string(other_ranks) +
                         " lines of further tensor-parallel ranks repeat the first one's.");
  merge_windows(windows, name, data);
  data.drafts.reset();  // the weights were running requests, not steps
  if (top_k > 1 && draft_tokens > 1) {
    data.tree_nodes = static_cast<std::int32_t>(draft_tokens - 1);
    data.notes.push_back("The drafts were trees of " + std::to_string(draft_tokens - 1) +
                         " nodes (num_draft_tokens counts the root).");
  } else if (data.draft_len == 0 && draft_tokens > 1) {
    data.draft_len = static_cast<std::int32_t>(draft_tokens - 1);
  }
  return data;
}

}  // namespace draftproof
