#include "sim/import/vllm_log.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/import/log_records.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

constexpr std::string_view kWindowMark = "SpecDecoding metrics";
constexpr std::string_view kCounterMark = "Speculative metrics";
constexpr std::string_view kThroughput = "Avg generation throughput";
constexpr double kRounding = 0.0006;       // of rates with three digits
constexpr double kDraftShareOfAll = 0.95;  // from here on all steps drafted: the two throughputs are of nearly one time

// K, which an engine has in such bounds.
std::optional<std::int64_t> draft_len_field(std::string_view line, std::string_view key, const std::string& where) {
  constexpr std::int64_t kMost = 1024;
  const auto k = count_field(line, key, where);
  if (k && *k > kMost)
    throw input_error(where,
                      std::string(key) + " is " + std::to_string(*k) + "; expected at most " + std::to_string(kMost));
  return k;
}

// How many steps drafted: exact where all drafts of the window had one length, up to K, else what rates and counts
// imply.
std::optional<std::int64_t> drafts_of(std::optional<std::int64_t> accepted, std::optional<std::int64_t> drafted,
                                      const std::vector<double>& survival, std::optional<double> length,
                                      std::int64_t draft_len) {
  if (!accepted || !drafted) return std::nullopt;
  const double sum = survival.empty() ? length.value_or(1.0) - 1.0 : acceptance_length_of(survival) - 1.0;
  const double slack = survival.empty() ? 0.006 : kRounding * static_cast<double>(survival.size());
  for (std::int64_t k = draft_len; k > 0 && *accepted > 0; --k) {
    if (std::cmp_less(k, survival.size()) && survival[static_cast<std::size_t>(k)] > 0.0) break;
    const std::int64_t steps = *drafted / k;
    if (*drafted % k == 0 && std::abs(static_cast<double>(steps) * sum - static_cast<double>(*accepted)) <=
                                 0.5 + slack * static_cast<double>(steps))
      return steps;
  }
  if (*accepted > 0 && sum > 0.0) return std::max<std::int64_t>(1, std::llround(static_cast<double>(*accepted) / sum));
  if (*accepted == 0 && draft_len > 0) return (*drafted + draft_len - 1) / draft_len;
  return std::nullopt;
}

// The number in front of words; 1 where there is none.
int count_before(std::string_view line, std::string_view words) {
  constexpr int kEnginesMax = 1024;
  const std::size_t end = find_words(line, words);
  if (end == std::string_view::npos) return 1;
  const std::size_t begin = line.substr(0, end).find_last_not_of("0123456789") + 1;
  return static_cast<int>(read_integer(std::string(line.substr(begin, end - begin)), 1, kEnginesMax).value_or(1));
}

// "Words of acceptance: number", and nothing else in the line: what a script prints of its counters.
bool is_unread_statistic(std::string_view line) {
  const std::string_view body = without_leading_blanks(line);
  const std::size_t sign = body.find_first_of(":=");
  if (sign == std::string_view::npos || (!has_words(body, "accept") && !has_words(body, "draft"))) return false;
  const auto is_of_key = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view(" _-()/").find(c) != std::string_view::npos;
  };
  std::string_view value = without_leading_blanks(body.substr(sign + 1));
  value = value.substr(0, value.find_last_not_of(" \t%") + 1);
  return std::ranges::all_of(body.substr(0, sign), is_of_key) && read_number(std::string(value)).has_value();
}

// One window of each engine: "Engine 003: Avg ...", or as many as are added up in "4 Engines Aggregated: Avg ...".
std::vector<ThroughputWindow> throughput_of(std::string_view line, const std::string& where) {
  const auto generated = field(line, kThroughput, where);
  if (!generated) return {};
  ThroughputWindow window{field(line, "running", where).value_or(0.0), *generated,
                          field(line, "avg prompt throughput", where).value_or(0.0)};
  require_running(window.running, where);
  window.engine = number_of_word(line, "Engine").value_or(0);
  const int engines = count_before(line, " engines aggregated");
  window.running /= engines, window.tokens_per_second /= engines, window.prompt_tokens_per_second /= engines;
  std::vector<ThroughputWindow> windows(static_cast<std::size_t>(engines), window);
  if (engines > 1)
    for (int i = 0; i < engines; ++i) windows[static_cast<std::size_t>(i)].engine = i;
  return windows;
}

class VllmReader {
 public:
  VllmReader(std::string_view text, const std::string& name, std::int32_t drafts)
      : lines_(text, name), name_(name), draft_len_hint_(drafts) {}

  AcceptanceData read(bool plain) {
    while (lines_.next()) {
      try {
        read_line(lines_.line(), lines_.where());
      } catch (const Error& error) {
        if (!lines_.is_cut()) throw;
        data_.notes.push_back("The last line ends early and is left out.");
      }
    }
    finish(plain);
    return std::move(data_);
  }

 private:
  void read_line(const std::string& line, const std::string& where) {
    for (const std::string_view key : {"num_spec_tokens", "num_speculative_tokens"})
      if (const auto k = draft_len_field(line, key, where)) draft_len_hint_ = *k;
    if (has_words(line, kWindowMark)) return read_window(line, where);
    if (has_words(line, kCounterMark)) return read_counters(line, where);
    if (has_words(line, kThroughput)) return read_throughput(line, where);
    read_summary(line, where);
  }

  void read_window(std::string_view whole, const std::string& where) {
    std::string_view line = whole;
    line.remove_prefix(find_words(line, kWindowMark) + kWindowMark.size());
    AcceptanceWindow window;
    window.where = where;
    window.acceptance_length = field(line, "mean acceptance length", where);
    const auto accepted = count_field(line, "accepted", where);
    const auto drafted = count_field(line, "drafted", where);
    const auto rate = share_field(line, "draft acceptance rate", where);
    window.survival = list_field(line, "per-position acceptance rate", where);
    if (window.acceptance_length && *window.acceptance_length < 1.0)
      throw input_error(where, "Mean acceptance length is " + std::to_string(*window.acceptance_length) +
                                   "; expected at least 1, since the bonus token counts");
    require_survival(window.survival, where, 2.0 * kRounding);
    if (drafted && accepted && *accepted > *drafted)
      throw input_error(where, std::to_string(*accepted) + " of " + std::to_string(*drafted) +
                                   " drafted tokens are accepted; expected at most all");
    if (drafted && *drafted == 0) return;  // nothing was drafted in this window
    if (!window.acceptance_length && window.survival.empty() && rate && accepted && drafted) {
      // Before mean acceptance lengths were printed: with K of the configuration, 1 + K x rate.
      if (draft_len_hint_ == 0) {
        ++without_length_;
        return;
      }
      window.acceptance_length =
          1.0 + static_cast<double>(draft_len_hint_) * static_cast<double>(*accepted) / static_cast<double>(*drafted);
    }
    if (!window.acceptance_length && window.survival.empty()) return;
    if (window.acceptance_length && !window.survival.empty()) check_sum(window);
    const std::int64_t draft_len = window.survival.empty() ? draft_len_hint_ : std::ssize(window.survival);
    // Where nothing was accepted, the depth alone says how many steps there were.
    const auto depth = draft_len_field(line, "current speculative depth", where);
    const auto drafts = drafts_of(accepted, drafted, window.survival, window.acceptance_length,
                                  accepted == 0 ? depth.value_or(draft_len) : draft_len);
    window.size = counted(drafts);
    if (drafts && *drafts > 0) {
      const auto steps = static_cast<double>(*drafts);
      if (window.survival.empty() || !list_is_short_)
        window.acceptance_length = 1.0 + static_cast<double>(*accepted) / steps;
      if (!window.survival.empty()) window.reach = reach_of(steps, static_cast<double>(*drafted), window.survival);
      if (generation_throughput_)
        for (ThroughputWindow& of : windows_of_line()) of.draft_tokens = static_cast<double>(*drafted) / steps;
    }
    accepted_ += accepted.value_or(0);
    drafted_ += drafted.value_or(0);
    has_counts_ &= accepted && drafted;
    if (const auto seconds = seconds_of(whole, field(line, "drafted throughput", where), drafted);
        seconds && generation_throughput_ && drafts && accepted)
      pairs_.push_back({*seconds, *generation_throughput_, static_cast<double>(*drafts), static_cast<double>(*accepted),
                        data_.throughput.size() - engines_of_line_, engines_of_line_});
    if (generation_throughput_)
      for (ThroughputWindow& of : windows_of_line()) of.tokens_per_step = window.acceptance_length;
    // K, where all drafts have as many tokens.
    const double mean = drafts && *drafts > 0      ? static_cast<double>(*drafted) / static_cast<double>(*drafts)
                        : rate.value_or(0.0) > 0.0 ? (window.acceptance_length.value_or(1.0) - 1.0) / *rate
                                                   : 0.0;
    if (depth || std::abs(mean - std::round(mean)) < 0.02 * mean)
      draft_len_seen_ = std::max(draft_len_seen_, depth.value_or(std::llround(mean)));
    generation_throughput_.reset();
    windows_.push_back(std::move(window));
  }

  // The time that metrics of speculation are of: by their throughput, else by the clock since those before them.
  std::optional<double> seconds_of(std::string_view line, std::optional<double> throughput,
                                   std::optional<std::int64_t> drafted) {
    constexpr int kDay = 86400;
    const std::optional<int> before = std::exchange(time_, time_of_day(line));
    if (drafted && throughput.value_or(0.0) > 0.0) return static_cast<double>(*drafted) / *throughput;
    if (throughput || !before || !time_ || *before == *time_) return std::nullopt;
    return (*time_ - *before + kDay) % kDay;
  }

  // 1 + the sum of the rates is the mean acceptance length, but for their rounding.
  void check_sum(const AcceptanceWindow& window) {
    const double sum = acceptance_length_of(window.survival);
    const double slack = 0.0051 + kRounding * static_cast<double>(window.survival.size());
    list_is_short_ = sum < *window.acceptance_length - slack;
    if (list_is_short_) ++short_lists_;
    if (sum > *window.acceptance_length + slack)
      throw input_error(window.where, "the per-position rates add up to an acceptance length of " +
                                          std::to_string(sum) + ", and Mean acceptance length is " +
                                          std::to_string(*window.acceptance_length) +
                                          "; expected unconditional rates, whose sum is that length less 1");
  }

  void read_counters(std::string_view line, const std::string& where) {
    const auto k = draft_len_field(line, "number of speculative tokens", where);
    const auto emitted = count_field(line, "number of emitted tokens", where);
    const auto accepted = count_field(line, "number of accepted tokens", where);
    const auto drafted = count_field(line, "number of draft tokens", where);
    if (!drafted || !accepted || *drafted == 0) return;
    if (!emitted || !k || *k == 0) {
      // A version in between, which counts as today's does, and tells no K.
      if (draft_len_hint_ == 0) {
        ++without_length_;
        return;
      }
      const std::int64_t drafts = (*drafted + draft_len_hint_ - 1) / draft_len_hint_;  // the last may be short
      if (drafts == 0) return;
      AcceptanceWindow window{
          where, Steps(drafts), {}, 1.0 + static_cast<double>(*accepted) / static_cast<double>(drafts)};
      accepted_ += *accepted;
      drafted_ += *drafted;
      windows_.push_back(std::move(window));
      return;
    }
    const Counters now{*k, *drafted, *emitted};
    // Counters since the start: the newest line has all, but for those before a restart.
    if (counters_ && (now.drafted < counters_->drafted || now.draft_len != counters_->draft_len)) close_counters();
    counters_ = now;
    counters_where_ = where;
  }

  void close_counters() {
    if (!counters_) return;
    const std::int64_t drafts = counters_->drafted / counters_->draft_len;
    if (drafts > 0)
      windows_.push_back(
          {counters_where_, Steps(drafts), {}, static_cast<double>(counters_->emitted) / static_cast<double>(drafts)});
    drafted_ += counters_->drafted;
    accepted_ += counters_->emitted - drafts;
    draft_len_hint_ = counters_->draft_len;
    had_counters_ = true;
    counters_.reset();
  }

  void read_throughput(std::string_view line, const std::string& where) {
    const std::vector<ThroughputWindow> windows = throughput_of(line, where);
    if (windows.empty()) return;
    engines_of_line_ = windows.size();
    generation_throughput_ = windows.front().tokens_per_second * static_cast<double>(engines_of_line_);
    data_.throughput.insert(data_.throughput.end(), windows.begin(), windows.end());
  }

  // Those of the newest line of throughput.
  std::span<ThroughputWindow> windows_of_line() { return std::span(data_.throughput).last(engines_of_line_); }

  // The blocks that benchmarks and scripts print at their end, a field a line.
  void read_summary(std::string_view line, const std::string& where) {
    bool is_read = false;
    const auto keep = [&](auto& value, auto read) {
      if (read) value = read;
      is_read = is_read || read;
    };
    const auto counts = [&](std::optional<std::int64_t>& value, std::initializer_list<const char*> keys) {
      for (const char* const key : keys) keep(value, count_field(line, key, where));
    };
    keep(summary_length_, field(line, "acceptance length", where));
    keep(summary_length_, field(line, "mean_acceptance_length", where));
    counts(summary_drafts_, {"num_drafts", "number of draft proposals"});
    counts(summary_drafted_, {"num_draft_tokens", "number of draft tokens generated"});
    counts(summary_accepted_, {"num_accepted_tokens", "number of draft tokens accepted"});
    counts(summary_without_draft_, {"num_tokens_generated_without_sd"});
    if (line.size() < 80 && !has_words(line, "speculative")) {
      counts(summary_drafts_, {"drafts"});
      counts(summary_drafted_, {"draft tokens"});
      counts(summary_accepted_, {"accepted tokens"});
    }
    // The part of a line of metrics that people quote.
    if (std::vector<double> rates = list_field(line, "per-position acceptance rate", where); !rates.empty()) {
      require_survival(rates, where, 2.0 * kRounding);
      windows_.push_back({where, {}, std::move(rates), std::nullopt});
    }
    for (const std::string_view key : {"acceptance at token ", "acceptance rate at token ", "position "}) {
      const std::size_t at = find_words(line, key);
      if (at > 8) continue;  // as where there is none
      const std::string position = std::to_string(summary_rates_.size());
      const std::string whole = std::string(key) + position;
      if (const auto rate = field(line, whole, where)) {
        // bench serve prints percentages without their sign.
        const bool percent = key == "position ";
        summary_rates_.push_back(percent ? *rate / 100.0 : *rate);
        is_read = true;
      }
    }
    if (is_read)
      ++summary_lines_;
    else if (is_unread_statistic(line))
      unread_.emplace_back(line);
  }

  void finish(bool plain) {
    close_counters();
    data_.format = "vLLM log";
    if (windows_.empty() && (summary_length_ || !summary_rates_.empty() || (summary_drafts_ && summary_accepted_)))
      windows_.push_back(summary_window());
    if (windows_.empty() && plain && without_length_ == 0 && !data_.throughput.empty()) return;
    if (windows_.empty())
      throw input_error(name_,
                        without_length_ > 0
                            ? std::string("has acceptance rates of drafted tokens only, and does not say how many "
                                          "tokens a draft has; expected a log with Mean acceptance length or "
                                          "num_spec_tokens=K, or ") +
                                  kSayDrafts
                            : "has no line of speculative-decoding metrics; expected vLLM's "
                              "\"SpecDecoding metrics: ...\"");
    merge_windows(windows_, name_, data_);
    if (data_.draft_len == 0)
      data_.draft_len = static_cast<std::int32_t>(draft_len_hint_ > 0 ? draft_len_hint_ : draft_len_seen_);
    if (drafted_ > 0 && has_counts_) {
      data_.draft_tokens = drafted_;
      data_.accepted_tokens = accepted_;
    }
    if (short_lists_ > 0)
      data_.notes.push_back(counted_noun(short_lists_, "list") +
                            " of rates shorter than the drafts: the sum is below the mean acceptance length.");
    if (had_counters_)
      data_.notes.push_back(
          "Counters of vLLM before 0.9: the acceptance length is emitted tokens / drafts, since their accepted tokens "
          "count drafts behind a rejected one.");
    if (without_length_ > 0)
      data_.notes.push_back(counted_noun(without_length_, "line") + " without the number of tokens of a draft.");
    if (summary_lines_ > 0 && !summary_is_used_)
      data_.not_used.push_back(counted_noun(summary_lines_, "line") + " of totals, since the windows say more");
    if (!unread_.empty())
      data_.not_used.push_back(counted_noun(std::ssize(unread_), "line") + " of acceptance that " +
                               (unread_.size() == 1 ? "is" : "are") + " not known, the first " +
                               in_quotes(unread_.front()));
    set_draft_share();
    if (pairs_.empty() && summary_drafts_ && *summary_drafts_ > 0 && summary_without_draft_.value_or(0) > 0) {
      data_.draft_share = static_cast<double>(*summary_drafts_) /
                          (static_cast<double>(*summary_drafts_) + static_cast<double>(*summary_without_draft_));
      note_draft_share("By the tokens generated without one");
    }
  }
  void note_draft_share(const std::string& by) {
    data_.notes.push_back(by + " only " + std::to_string(std::lround(100.0 * *data_.draft_share)) +
                          " % of the steps had a draft; the acceptance length is of those.");
  }

  // Steps without a draft, by the tokens that were generated. The metrics of speculation are of the time since those
  // before them, the throughput is of one interval of the server's: where they are not of one time they say nothing.
  void set_draft_share() {
    constexpr double kInterval = 10.0;  // seconds, unless windows show another
    constexpr double kSlack = 1.25;
    constexpr std::ptrdiff_t kWindowsOfInterval = 3;
    if (pairs_.empty()) return;
    const double shortest = std::ranges::min(pairs_, {}, &Pair::seconds).seconds;
    const auto is_of = [](double interval) { return [=](const Pair& p) { return p.seconds <= kSlack * interval; }; };
    const bool known =
        shortest <= kSlack * kInterval || std::ranges::count_if(pairs_, is_of(shortest)) >= kWindowsOfInterval;
    const auto share_of = [](double drafts, double steps) {
      return steps > 0.0 && drafts < kDraftShareOfAll * steps ? drafts / steps : 1.0;
    };
    double drafts = 0.0, steps = 0.0;
    std::vector<double> shares(data_.throughput.size(), -1.0);
    for (const Pair& pair : pairs_) {
      if (!known || !is_of(shortest)(pair)) continue;
      drafts += pair.drafts;
      steps += pair.steps();
      for (std::size_t i = 0; i < pair.count; ++i) shares[pair.first + i] = share_of(pair.drafts, pair.steps());
    }
    const double share = share_of(drafts, steps);
    for (std::size_t i = 0; i < shares.size(); ++i)
      if (std::optional<double>& tokens = data_.throughput[i].tokens_per_step)
        tokens = 1.0 + (shares[i] < 0.0 ? share : shares[i]) * (*tokens - 1.0);
    if (share == 1.0) return;
    data_.draft_share = share;
    note_draft_share("By the generation throughput");
  }

  AcceptanceWindow summary_window() {
    summary_is_used_ = true;
    AcceptanceWindow window{name_, counted(summary_drafts_), summary_rates_, summary_length_};
    require_survival(window.survival, name_, 0.001);
    if (summary_drafts_ && summary_accepted_ && *summary_drafts_ > 0)
      window.acceptance_length = 1.0 + static_cast<double>(*summary_accepted_) / static_cast<double>(*summary_drafts_);
    if (summary_drafts_ && summary_drafted_ && *summary_drafts_ > 0 && !window.survival.empty())
      window.reach =
          reach_of(static_cast<double>(*summary_drafts_), static_cast<double>(*summary_drafted_), window.survival);
    accepted_ = summary_accepted_.value_or(0);
    drafted_ = summary_drafted_.value_or(0);
    if (summary_drafts_ && *summary_drafts_ > 0 && drafted_ % *summary_drafts_ == 0)
      draft_len_seen_ = drafted_ / *summary_drafts_;
    return window;
  }

  struct Counters {
    std::int64_t draft_len, drafted, emitted;
  };

  LogRecords lines_;
  std::string name_;
  AcceptanceData data_;
  std::vector<AcceptanceWindow> windows_;
  std::int64_t draft_len_hint_ = 0;
  std::int64_t accepted_ = 0;
  std::int64_t drafted_ = 0;
  bool has_counts_ = true;
  std::int64_t without_length_ = 0;  // lines
  std::int64_t short_lists_ = 0;
  bool list_is_short_ = false;  // of the window that is read
  std::optional<Counters> counters_;
  std::string counters_where_;
  bool had_counters_ = false;
  std::optional<double> generation_throughput_;  // of the newest line, until a window takes it
  std::size_t engines_of_line_ = 0;              // that it is of
  // Metrics of speculation with the throughput before them.
  struct Pair {
    double seconds, generated_per_second, drafts, accepted;
    std::size_t first, count;  // of the windows of throughput
    double steps() const { return generated_per_second * seconds - accepted; }
  };
  std::vector<Pair> pairs_;
  std::optional<int> time_;  // of the newest metrics of speculation, seconds of the day
  std::int64_t draft_len_seen_ = 0;
  std::optional<double> summary_length_;
  std::optional<std::int64_t> summary_drafts_, summary_drafted_, summary_accepted_, summary_without_draft_;
  std::vector<double> summary_rates_;
  std::int64_t summary_lines_ = 0;
  bool summary_is_used_ = false;
  std::vector<std::string> unread_;
};

}  // namespace

bool is_vllm_log(std::string_view text) {
  for (const std::string_view mark :
       {kWindowMark, kCounterMark, kThroughput, std::string_view("acceptance at token "),
        std::string_view("acceptance rate at token "), std::string_view("acceptance length:"),
        std::string_view("LLM engine (v"), std::string_view("per-position acceptance rate:")})
    if (has_words(text, mark)) return true;
  return false;
}

AcceptanceData read_vllm_log(std::string_view text, const std::string& name, bool plain, std::int32_t drafts) {
  return VllmReader(text, name, drafts).read(plain);
}

}  // namespace draftproof
