#include "sim/import/report_lines.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/words.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

enum class Report : std::uint8_t { none, trtllm, omlx, mtp_bench };
constexpr std::array<const char*, 4> kFormats{"", "TensorRT-LLM report", "oMLX log", "llama.cpp benchmark"};

Report report_of(std::string_view line) {
  const auto has = [&](std::string_view words) { return line.find(words) != std::string_view::npos; };
  if (has("[AL] AVERAGE") || has("[AR] AVERAGE")) return Report::trtllm;
  if (has("vlm_mtp stats:") || (has(" cycles=") && has(" accept="))) return Report::omlx;
  if (has(" pred=") && has(" draft=") && has(" acc=")) return Report::mtp_bench;
  return Report::none;
}

constexpr std::int64_t kCountMost = std::int64_t{1} << 32;  // of a request: sums over a file stay in 64 bits

struct Fraction {
  std::int64_t part = 0, of = 0;
};

// The fraction of "KEY=12/34". Error (input) at `where`: anything else behind it, or more than all.
std::optional<Fraction> fraction(std::string_view text, std::string_view key, const std::string& where) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const end = text.data() + text.size();
  Fraction read;
  const auto [slash, error] = std::from_chars(text.data() + at + key.size(), end, read.part);
  const bool has_slash = error == std::errc{} && slash != end && *slash == '/';
  const auto [behind, error_of] = std::from_chars(has_slash ? slash + 1 : end, end, read.of);
  if (!has_slash || error_of != std::errc{} || read.part < 0 || read.part > read.of || read.of > kCountMost)
    throw input_error(where, std::string(key) + " is no ACCEPTED/DRAFTED with at most all accepted; expected it");
  return read;
}

class ReportReader {
 public:
  ReportReader(std::string_view text, std::string name) : lines_(text, name), name_(std::move(name)) {}

  AcceptanceData read() {
    while (lines_.next()) {
      try {
        read_line(lines_.line(), lines_.where());
      } catch (const Error&) {
        if (!lines_.is_cut()) throw;
        data_.notes.emplace_back("The last line ends early and is left out.");
      }
    }
    data_.format = kFormats.at(static_cast<std::size_t>(kind_));
    if (windows_.empty()) throw input_error(name_, "no request drafted; expected a run of a server that speculates");
    merge_windows(windows_, name_, data_);
    if (drafted_ > 0) {
      data_.draft_tokens = drafted_;
      data_.accepted_tokens = accepted_;
    }
    if (kind_ == Report::trtllm)
      finish_trtllm();
    else
      finish_requests();
    return std::move(data_);
  }

 private:
  void read_line(std::string_view line, const std::string& where) {
    const Report kind = report_of(line);
    if (kind != Report::none && kind_ != Report::none && kind != kind_)
      throw input_error(where, std::string("is of a ") + kFormats.at(static_cast<std::size_t>(kind)) +
                                   ", and lines before it of a " + kFormats.at(static_cast<std::size_t>(kind_)) +
                                   "; expected one of them");
    if (kind != Report::none) kind_ = kind;
    if (const auto requests = count_field(line, "number of requests", where)) requests_ = *requests;
    if (const auto running = field(line, "number of concurrent requests", where)) {
      require_running(*running, where);
      data_.load = std::max<std::int64_t>(1, std::llround(*running));
    }
    if (const auto drafted = field(line, "[DT] average", where)) mean_drafted_ = *drafted;
    if (const auto accepted = field(line, "[ADT] average", where)) mean_accepted_ = *accepted;
    if (kind == Report::trtllm) read_length(line, where);
    if (kind == Report::omlx) read_omlx(line, where);
    if (kind == Report::mtp_bench) read_mtp_bench(line, where);
  }

  void read_length(std::string_view line, const std::string& where) {
    auto length = field(line, "[AL] average", where);
    if (!length) length = field(line, "[AR] average", where);
    if (!length) return;
    windows_.push_back(
        {where, requests_ > 0 ? WindowSize(Weight(static_cast<double>(requests_))) : WindowSize(), {}, length});
  }
  void finish_trtllm() {
    if (windows_.size() > 1)
      data_.notes.push_back("The lengths of " + counted_noun(std::ssize(windows_), "run") + " are averaged.");
    // Drafts that all have K tokens: K = (length - 1) / (accepted / drafted).
    constexpr double kNearlyWhole = 0.1;
    const double k = windows_.size() == 1 && mean_accepted_ > 0.0
                         ? (data_.acceptance_length - 1.0) * mean_drafted_ / mean_accepted_
                         : 0.0;
    if (k >= 0.5 && k <= kAcceptanceDepthMax && std::abs(k - std::round(k)) < kNearlyWhole)
      data_.draft_len = static_cast<std::int32_t>(std::lround(k));
  }

  // `steps` had a draft, of `all`.
  void add(AcceptanceWindow window, std::int64_t steps, std::int64_t all, const Fraction& tokens) {
    if (tokens.of == 0 || steps == 0) return;
    window.size = Steps(steps);
    windows_.push_back(std::move(window));
    steps_ += steps;
    all_steps_ += all;
    drafted_ += tokens.of;
    accepted_ += tokens.part;
  }

  void read_omlx(std::string_view line, const std::string& where) {
    AcceptanceWindow window;
    window.where = where;
    if (const auto rounds = count_field(line, "rounds", where)) {
      const auto tokens = fraction(line, "accepted=", where);
      if (!tokens || *rounds > tokens->of) return refuse(where);
      if (*rounds > 0) window.acceptance_length = 1.0 + ratio(tokens->part, *rounds);
      if (const auto block = count_field(line, "block_size", where); block && *block > 1)
        data_.draft_len = std::max(data_.draft_len,
                                   static_cast<std::int32_t>(std::min<std::int64_t>(*block - 1, kAcceptanceDepthMax)));
      return add(std::move(window), *rounds, *rounds, *tokens);
    }
    const auto cycles = count_field(line, "cycles", where);
    const auto tokens = fraction(line, "accept=", where);
    if (!cycles || !tokens || *cycles > kCountMost) return refuse(where);
    std::int64_t steps = *cycles;
    std::int64_t reached = 0;
    for (std::int32_t i = 1; i <= kAcceptanceDepthMax; ++i) {
      const std::string key = (i == 1 ? "[d" : ",d") + std::to_string(i) + "=";
      const auto depth = fraction(line, key, where);
      if (!depth) break;
      if (i == 1) steps = reached = depth->of;
      if (steps == 0 || depth->of > reached) return refuse(where);
      window.survival.push_back(ratio(depth->part, steps));
      window.reach.push_back({ratio(depth->of, steps), ratio(depth->of, steps)});
      reached = depth->of;
    }
    if (steps > *cycles) return refuse(where);
    require_survival(window.survival, where, 1e-9);
    // Versions without a token behind an accepted draft say what the target added.
    const auto bonus = count_field(line, "bonus", where), verify = count_field(line, "verify", where);
    const bool says_tokens = window.survival.empty() && bonus && verify && *bonus <= *cycles && *verify <= *cycles;
    if (steps > 0)
      window.acceptance_length =
          says_tokens ? ratio(tokens->part + *bonus + *verify, steps) : 1.0 + ratio(tokens->part, steps);
    add(std::move(window), steps, *cycles, *tokens);
  }

  void read_mtp_bench(std::string_view line, const std::string& where) {
    const auto tokens = count_field(line, "pred", where);
    const auto drafted = count_field(line, "draft", where), accepted = count_field(line, "acc", where);
    if (!tokens || !drafted || !accepted || *accepted > *drafted || *accepted > *tokens || *tokens > kCountMost ||
        *drafted > kCountMost)
      return refuse(where);
    // The first token is the prompt's, and every step yields one more than it accepts.
    const std::int64_t steps = std::max<std::int64_t>(*accepted > 0 ? 1 : 0, *tokens - 1 - *accepted);
    AcceptanceWindow window;
    window.where = where;
    if (steps > 0) window.acceptance_length = 1.0 + ratio(*accepted, steps);
    const std::size_t first = line.find_first_not_of(" >\t");
    if (const std::size_t end = line.find(" pred="); first < end)
      runs_ = std::max(runs_, ++names_[std::string(line.substr(first, line.find(' ', first) - first))]);
    add(std::move(window), steps, steps, {*accepted, *drafted});
  }

  void finish_requests() {
    if (data_.draft_len == 0) set_least_draft_len(data_, static_cast<double>(drafted_), static_cast<double>(steps_));
    if (kind_ == Report::mtp_bench)
      data_.notes.emplace_back(
          "The acceptance length is of all steps, those without a draft included: tokens less accepted drafts.");
    if (runs_ > 1) data_.notes.push_back(counted_noun(runs_, "run") + " of the benchmark are added up.");
    if (steps_ == all_steps_) return;
    data_.draft_share = ratio(steps_, all_steps_);
    data_.notes.push_back("Only " + std::to_string(std::lround(100.0 * *data_.draft_share)) +
                          " % of the steps had a draft; the acceptance length is of those.");
  }

  static double ratio(std::int64_t part, std::int64_t of) {
    return static_cast<double>(part) / static_cast<double>(of);
  }
  [[noreturn]] static void refuse(const std::string& where) {
    throw input_error(where,
                      "has counts that contradict one another; expected accepted drafts up to all, in steps that "
                      "are at most the cycles or the tokens");
  }

  TextLines lines_;
  std::string name_;
  AcceptanceData data_;
  Report kind_ = Report::none;
  std::vector<AcceptanceWindow> windows_;
  std::int64_t requests_ = 0;
  double mean_drafted_ = 0.0, mean_accepted_ = 0.0;  // tokens of a request
  std::int64_t steps_ = 0, all_steps_ = 0, drafted_ = 0, accepted_ = 0;
  std::map<std::string, std::int64_t> names_;  // of mtp-bench's prompts, and how often each was asked
  std::int64_t runs_ = 0;
};

}  // namespace

bool is_report(std::string_view text) {
  TextLines lines(text, "");
  while (lines.next())
    if (report_of(lines.line()) != Report::none) return true;
  return false;
}

AcceptanceData read_report(std::string_view text, const std::string& name) {
  return ReportReader(text, name).read();
}

}  // namespace draftproof
