#include "sim/import/llama_cpp_log.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

constexpr double kLengthRounding = 0.0051;  // of lengths with two digits
constexpr double kRateRounding = 0.0006;    // of rates with three
constexpr double kNearlyAll = 0.95;         // of the positions of all drafts: a last draft is cut, or one at a stop
constexpr std::string_view kRequest = "draft acceptance";
constexpr std::string_view kStatistics = "#gen tokens";
constexpr std::string_view kStep = " draft tokens";
constexpr std::string_view kRunEnd = "n_accept ";
constexpr std::string_view kDepth = "adaptive ";  // of a draft, that changes by what was accepted

// Drafts of a request, of a drafter since the start, or of a run.
struct Drafted {
  std::string where;
  std::int64_t accepted = 0, generated = 0;
  std::optional<std::int64_t> drafts;  // steps with one
  std::optional<std::int64_t> steps;   // all
  std::optional<std::int64_t> first;   // steps that accepted the first token of a draft
  std::optional<double> length;        // over the steps with a draft
  std::vector<double> survival;        // likewise
  std::int64_t longest = 0;            // K; 0: not said

  bool list_is_short() const {
    return length && !survival.empty() &&
           acceptance_length_of(survival) <
               *length - kLengthRounding - kRateRounding * static_cast<double>(survival.size());
  }
};

// The whole number in front of `words`.
std::optional<std::int64_t> number_before(std::string_view line, std::string_view words) {
  std::size_t end = find_words(line, words);
  if (end == std::string_view::npos) return std::nullopt;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (end > 0 && line[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(line[begin - 1])) --begin;
  return read_integer(std::string(line.substr(begin, end - begin)), 0, std::int64_t{1} << 53);
}

// "[49965] " of a router, wherever a log's own prefix ends.
std::string port_of(std::string_view line) {
  for (std::size_t at = line.find('['); at < std::min<std::size_t>(line.size(), 100); at = line.find('[', at + 1)) {
    if (at > 0 && line[at - 1] != ' ') continue;
    const std::size_t end = line.find("] ", at);
    if (end == std::string_view::npos) break;
    std::string_view inside = line.substr(at + 1, end - at - 1);
    inside.remove_prefix(std::min(inside.find_first_not_of(' '), inside.size()));
    if (read_integer(std::string(inside), 1, 65535)) return std::string(inside);
  }
  return "";
}

void require_possible(const Drafted& drafted) {
  if (drafted.accepted > drafted.generated)
    throw input_error(drafted.where, std::to_string(drafted.accepted) + " of " + std::to_string(drafted.generated) +
                                         " drafted tokens are accepted; expected at most all");
  if (drafted.length && !(*drafted.length >= 1.0))
    throw input_error(drafted.where, "the mean length is " + number("%g", *drafted.length) +
                                         "; expected at least 1, since the bonus token counts");
}

// The first position is counted; the others share what the length is above it, each the one before it by one factor.
// With so many of them as the longest draft has, bounds are what a length and rates that never rise leave.
void add_first_rate(AcceptanceData& data, std::int64_t first, const std::string& name) {
  const auto drafts = static_cast<double>(*data.drafts);
  const double rate = static_cast<double>(first) / drafts;
  if (rate > data.acceptance_length - 1.0 + 1e-9)
    throw input_error(name, std::to_string(first) + " of " + std::to_string(*data.drafts) +
                                " drafts accepted a token, and " + std::to_string(*data.accepted_tokens) +
                                " tokens were accepted; expected at least as many tokens");
  const double rest = data.acceptance_length - 1.0 - rate;
  if (rest > 0.0 && rate > 0.0)
    data.draft_len =
        std::max(data.draft_len,
                 static_cast<std::int32_t>(std::min<double>(kAcceptanceDepthMax, 1.0 + std::ceil(rest / rate - 1e-9))));
  const std::int32_t behind = std::max(0, data.draft_len - 1);
  const double factor = factor_of_sum(rate, behind, rest);
  bool exact = true;
  for (std::int32_t i = 0; i <= behind; ++i) {
    const auto before = static_cast<double>(i);
    const double s = i == 0 ? rate : data.survival.back() * factor;
    const Bounds bounds =
        i == 0 ? Bounds{rate, rate}
               : Bounds{std::max(0.0, (rest - (before - 1.0) * rate) / (static_cast<double>(behind) - before + 1.0)),
                        std::min(rate, rest / before)};
    const double width = bounds.high - bounds.low;
    exact &= width < 1e-9;
    data.survival.push_back(s);
    data.survival_bounds.push_back(width < 1e-9 ? Bounds{s, s} : bounds);
    data.survival_error.push_back(
        std::hypot(std::sqrt(std::max(0.0, s * (1.0 - s)) / drafts), width / std::sqrt(12.0)));
  }
  if (exact)
    data.survival_bounds.clear();
  else
    data.notes.emplace_back("The first position is counted; those behind it share the rest of the length.");
}

// One server: its requests, its drafters' counters, its steps, its runs.
class Server {
 public:
  void read_request(std::string_view line, const std::string& where, const std::string& task) {
    Drafted request;
    request.where = where;
    const auto accepted = number_before(line, "accepted /");
    const auto generated = number_before(line, "generated)");
    if (!accepted || !generated)
      throw input_error(where, "says a draft acceptance without \"N accepted / M generated\"; expected both counts");
    request.accepted = *accepted;
    request.generated = *generated;
    request.length = field(line, "mean acceptance length", where);
    if (!request.length) request.length = field(line, "mean len", where);
    request.survival = list_field(line, "acceptance rate per position", where);
    // The first token is the prompt's.
    if (const auto tokens = tokens_.find(task); tokens != tokens_.end()) {
      if (tokens->second - 1 > request.accepted) request.steps = tokens->second - 1 - request.accepted;
      tokens_.erase(tokens);
    }
    requests_.push_back(std::move(request));
  }
  void read_rates(std::string_view line, const std::string& where) {
    if (!requests_.empty()) requests_.back().survival = list_field(line, "acc per pos", where);
  }
  void read_tokens(std::string_view line, const std::string& task) {
    if (const auto tokens = number_before(line, " tokens")) tokens_[task] = *tokens;
  }

  void read_statistics(std::string_view line, const std::string& where) {
    const std::size_t begin = find_words(line, "statistics") + std::string_view("statistics").size();
    std::string drafter(line.substr(begin, line.find('#', begin) - begin));
    std::erase_if(drafter, [](char c) { return c == ' ' || c == ':'; });
    Counters now;
    now.sum.where = where;
    now.sum.drafts = count_field(line, "#gen drafts", where).value_or(0);
    now.sum.first = count_field(line, "#acc drafts", where);
    now.sum.generated = count_field(line, kStatistics, where).value_or(0);
    now.sum.accepted = count_field(line, "#acc tokens", where).value_or(0);
    now.sum.length = field(line, "#mean acc len", where);
    now.sum.survival = list_field(line, "#acc rate/pos", where);
    if (const std::vector<double> calls = list_field(line, "#calls(b,g,a)", where); calls.size() == 3)
      now.calls = calls[1];
    else
      now.calls = field(line, "#calls", where).value_or(0.0);
    Counters& newest = drafters_[drafter];
    // Counters since the start: the newest line has all, but for those before a restart.
    if (now.sum.generated < newest.sum.generated) before_restarts_.push_back(newest);
    newest = std::move(now);
  }

  void read_step(std::string_view line, const std::string& where) {
    const std::size_t begin = find_words(line, "accepted ") + std::string_view("accepted ").size();
    const std::size_t slash = line.find('/', begin);
    const auto drafted = number_before(line, kStep);
    const auto accepted =
        slash == std::string_view::npos ? std::nullopt : number_before(line.substr(0, slash + 1), "/");
    if (!accepted || !drafted || *drafted > kAcceptanceDepthMax || *accepted > *drafted)
      throw input_error(where, "says no \"accepted N/M draft tokens\" with N up to M and M up to " +
                                   std::to_string(kAcceptanceDepthMax) + "; expected it");
    accepted_.resize(std::max<std::size_t>(accepted_.size(), static_cast<std::size_t>(*drafted)));
    for (std::size_t i = 0; std::cmp_less(i, *accepted); ++i) ++accepted_[i];
    step_.where = where;
    step_.drafts = step_.drafts.value_or(0) + 1;
    step_.generated += *drafted;
    step_.accepted += *accepted;
  }

  void read_run_field(std::string_view line, const std::string& where) {
    if (const auto k = count_field(line, "n_draft", where)) run_.longest = *k;
    if (const auto tokens = count_field(line, "n_predict", where)) run_.steps = *tokens;
    if (const auto drafted = count_field(line, "n_drafted", where)) run_.generated = *drafted;
    if (const auto accepted = count_field(line, "n_accept", where)) {
      run_.where = where;
      run_.accepted = *accepted;
      if (run_.steps) run_.steps = *run_.steps > *accepted ? std::optional(*run_.steps - *accepted) : std::nullopt;
      if (run_.generated > 0) runs_.push_back(run_);
      run_ = {};
    }
  }

  void read_depth() { ++depths_; }

  bool speculates() const {
    return !requests_.empty() || !drafters_.empty() || !runs_.empty() || step_.drafts || depths_ > 0;
  }

  AcceptanceData read(const std::string& name) {
    AcceptanceData data;
    data.format = "llama.cpp log";
    std::vector<Drafted> drafted = chosen(name, data);
    std::int64_t accepted = 0, generated = 0;
    for (Drafted& one : drafted) {
      require_possible(one);
      accepted += one.accepted;
      generated += one.generated;
    }
    const bool short_lists = std::ranges::any_of(drafted, &Drafted::list_is_short);
    if (short_lists)
      data.notes.emplace_back(
          "Rates by position are not used: their lists end before the drafts, of several drafters.");
    std::vector<AcceptanceWindow> windows;
    std::int64_t first = 0;
    bool has_first = true;
    for (Drafted& one : drafted) {
      if (short_lists) one.survival.clear();
      windows.push_back(window_of(one));
      has_first &= one.first && one.drafts && *one.first <= *one.drafts;
    }
    merge_windows(windows, name, data);
    data.draft_tokens = generated;
    data.accepted_tokens = accepted;
    for (const Drafted& one : drafted)
      data.draft_len =
          std::max(data.draft_len, static_cast<std::int32_t>(std::min<std::int64_t>(one.longest, kAcceptanceDepthMax)));
    if (data.draft_len == 0 && data.drafts)
      set_least_draft_len(data, static_cast<double>(generated), static_cast<double>(*data.drafts));
    if (!has_first || !data.survival.empty() || !data.drafts) return data;
    for (const Drafted& one : drafted) first += *one.first;
    add_first_rate(data, first, name);
    return data;
  }

 private:
  struct Counters {
    Drafted sum;
    double calls = 0.0;  // for a draft
  };

  // The most informative source: lengths of requests, counters, else tokens.
  std::vector<Drafted> chosen(const std::string& name, AcceptanceData& data) const {
    const bool lengths =
        !requests_.empty() && std::ranges::all_of(requests_, [](const Drafted& r) { return r.length.has_value(); });
    if (!drafters_.empty()) add_draft_share(data);
    if (lengths) {
      if (drafters_.empty()) add_share_by_tokens(data);
      return requests_;
    }
    if (requests_.empty() && drafters_.empty() && runs_.empty() && !step_.drafts)
      throw input_error(name,
                        "names only the steps at which the depth of drafts changed, and it changes by what they "
                        "accepted; expected the lines \"draft acceptance = ...\" of requests beside them");
    if (!drafters_.empty()) {
      std::vector<Drafted> all;
      const auto add = [&](const Counters& counters) {
        if (counters.sum.drafts.value_or(0) == 0) return;
        all.push_back(counters.sum);
        const auto drafts = static_cast<double>(*counters.sum.drafts);
        if (!all.back().length) all.back().length = 1.0 + static_cast<double>(counters.sum.accepted) / drafts;
      };
      for (const Counters& counters : before_restarts_) add(counters);
      for (const auto& [drafter, counters] : drafters_) add(counters);
      if (drafters_.size() > 1) {
        std::string names;
        for (const auto& [drafter, counters] : drafters_) names += (names.empty() ? "" : ", ") + drafter;
        data.notes.push_back("The drafts of " + names + " are added up.");
      }
      if (all.empty()) throw input_error(name, "its statistics count no draft; expected a server that drafted");
      return all;
    }
    if (step_.drafts) {
      Drafted steps = step_;
      for (const std::int64_t n : accepted_)
        steps.survival.push_back(static_cast<double>(n) / static_cast<double>(*step_.drafts));
      steps.length = acceptance_length_of(steps.survival);
      return {steps};
    }
    std::vector<Drafted> counted;
    for (const std::vector<Drafted>* of : {&requests_, &runs_})
      for (const Drafted& one : *of)
        if (one.steps) {
          counted.push_back(one);
          counted.back().drafts = one.steps;
          counted.back().length = 1.0 + static_cast<double>(one.accepted) / static_cast<double>(*one.steps);
        }
    if (counted.empty())
      throw input_error(name,
                        "counts accepted drafts but neither steps nor tokens, so that no acceptance length is known; "
                        "expected lines \"eval time = ... / N tokens\" or \"n_predict\" beside them");
    data.notes.emplace_back(
        "The acceptance length is of all steps, those without a draft included: tokens less accepted drafts.");
    return counted;
  }

  AcceptanceWindow window_of(const Drafted& one) const {
    AcceptanceWindow window;
    window.where = one.where;
    window.survival = one.survival;
    require_survival(window.survival, one.where, 2.0 * kRateRounding);
    window.acceptance_length = one.length;
    const std::int64_t longest = one.survival.empty() ? one.longest : std::ssize(one.survival);
    std::optional<std::int64_t> drafts = one.drafts;
    if (!drafts) {
      const double mean = one.survival.empty() ? *one.length - 1.0 : acceptance_length_of(one.survival) - 1.0;
      if (one.accepted > 0 && mean > 0.0)
        drafts = std::max<std::int64_t>(1, std::llround(static_cast<double>(one.accepted) / mean));
      else if (longest > 0)
        drafts = (one.generated + longest - 1) / longest;
    }
    window.size = counted(drafts);
    if (!drafts || *drafts == 0) return window;
    const auto steps = static_cast<double>(*drafts), generated = static_cast<double>(one.generated);
    window.acceptance_length = 1.0 + static_cast<double>(one.accepted) / steps;
    if (!window.survival.empty() && generated < kNearlyAll * steps * static_cast<double>(longest))
      window.reach = reach_of(steps, std::max(generated, steps), window.survival);
    return window;
  }

  void add_draft_share(AcceptanceData& data) const {
    double drafts = 0.0, calls = 0.0;
    for (const auto& [drafter, counters] : drafters_) {
      drafts += static_cast<double>(counters.sum.drafts.value_or(0));
      calls = std::max(calls, counters.calls);  // all are asked in turn, the first in every step
    }
    set_share(data, drafts, calls, "By the drafters' calls");
  }
  void add_share_by_tokens(AcceptanceData& data) const {
    double drafts = 0.0, steps = 0.0;
    for (const Drafted& request : requests_) {
      const AcceptanceWindow window = window_of(request);
      const auto* counted = std::get_if<Steps>(&window.size);
      if (!request.steps || counted == nullptr) return;
      drafts += static_cast<double>(counted->count);
      steps += static_cast<double>(*request.steps);
    }
    set_share(data, drafts, steps, "By the tokens");
  }
  static void set_share(AcceptanceData& data, double drafts, double steps, const std::string& by) {
    if (!(drafts > 0.0 && drafts < kNearlyAll * steps)) return;
    data.draft_share = drafts / steps;
    data.notes.push_back(by + " only " + std::to_string(std::lround(100.0 * drafts / steps)) +
                         " % of the steps had a draft; the acceptance length is of those.");
  }

  std::vector<Drafted> requests_, runs_;
  Drafted run_, step_;
  std::int64_t depths_ = 0;                     // changes of an adaptive one
  std::vector<std::int64_t> accepted_;          // steps that accepted so many drafts and one
  std::map<std::string, std::int64_t> tokens_;  // by task, until its line of drafts takes them
  std::map<std::string, Counters> drafters_;    // by name, the newest
  std::vector<Counters> before_restarts_;
};

// "task 42" of a slot's line; lines of other versions have none, and follow one another.
std::string task_of(std::string_view line) {
  const std::size_t at = find_words(line, "| task ");
  if (at == std::string_view::npos) return "";
  const std::size_t begin = at + std::string_view("| task ").size();
  return std::string(line.substr(begin, line.find_first_of(" |", begin) - begin));
}

bool is_run_field(std::string_view line) {
  constexpr std::size_t kLongest = 80;
  return line.size() < kLongest && line.find(',') == std::string_view::npos &&
         (has_words(line, "n_draft") || has_words(line, "n_predict") || has_words(line, kRunEnd));
}

// The records of a line; those of several whose line ends were lost begin with these words.
std::vector<std::string_view> records_of(std::string_view line) {
  std::vector<std::size_t> begins;
  for (const std::string_view words : {"slot print_timing", "slot update_slots", "statistics "})
    for (std::size_t at = line.find(words); at != std::string_view::npos; at = line.find(words, at + 1))
      begins.push_back(at);
  if (begins.size() < 2) return {line};
  std::ranges::sort(begins);
  begins.front() = 0;
  begins.push_back(line.size());
  std::vector<std::string_view> records;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i)
    records.push_back(line.substr(begins[i], begins[i + 1] - begins[i]));
  return records;
}

// "accepted  2/ 3 draft tokens".
bool is_step(std::string_view line) {
  const std::size_t end = find_words(line, kStep);
  if (end == std::string_view::npos || end == 0) return false;
  const std::size_t begin = line.substr(0, end).find_last_not_of("0123456789/ ");
  return begin != std::string_view::npos && line.substr(0, begin + 1).ends_with("accepted") &&
         line.substr(begin, end - begin).find('/') != std::string_view::npos;
}

bool is_depth(std::string_view line) {
  return has_words(line, kDepth) && has_words(line, "n_draft=") && has_words(line, "n_accepted=");
}

void read_line(std::string_view line, const std::string& where, Server& server) {
  if (has_words(line, kRequest) && has_words(line, "generated)"))
    server.read_request(line, where, task_of(line));
  else if (has_words(line, "acc per pos"))
    server.read_rates(line, where);
  else if (has_words(line, kStatistics) && has_words(line, "statistics"))
    server.read_statistics(line, where);
  else if (is_step(line))
    server.read_step(line, where);
  else if (has_words(line, " eval time =") && !has_words(line, "prompt eval time"))
    server.read_tokens(line, task_of(line));
  else if (is_run_field(line))
    server.read_run_field(line, where);
  else if (is_depth(line))
    server.read_depth();
}

}  // namespace

bool is_llama_cpp_log(std::string_view text) {
  TextLines lines(text, "");
  while (lines.next()) {
    const std::string& line = lines.line();
    if ((has_words(line, kRequest) && has_words(line, "generated)")) ||
        (has_words(line, kStatistics) && has_words(line, "#gen drafts")) || is_step(line) ||
        (has_words(line, kRunEnd) && is_run_field(line)) || is_depth(line))
      return true;
  }
  return false;
}

AcceptanceData read_llama_cpp_log(std::string_view text, const std::string& name, const std::string& server) {
  std::map<std::string, Server> servers;
  std::map<std::string, std::string> models;  // by port
  std::vector<std::string> notes;
  TextLines lines(text, name);
  constexpr std::string_view kSpawn = "spawning server instance with name=";
  while (lines.next()) {
    const std::string_view line = lines.line();
    if (const std::size_t at = find_words(line, kSpawn); at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + kSpawn.size());
      if (const std::size_t on = find_words(rest, " on port "); on != std::string_view::npos)
        models[std::string(rest.substr(on + 9, rest.find_first_not_of("0123456789", on + 9) - on - 9))] =
            std::string(rest.substr(0, on));
      continue;
    }
    const std::string port = port_of(line);
    const auto model = models.find(port);
    try {
      for (const std::string_view record : records_of(line))
        read_line(record, lines.where(), servers[model == models.end() ? port : model->second]);
    } catch (const Error&) {
      if (!lines.is_cut()) throw;
      notes.emplace_back("The last line ends early and is left out.");
    }
  }
  std::erase_if(servers, [](const auto& entry) { return !entry.second.speculates(); });
  std::vector<std::string> names;
  for (const auto& [of, found] : servers) names.push_back(of);
  const std::string shown = first_names(names);
  if (names.empty()) throw input_error(name, "has no line of llama.cpp's speculation; expected \"draft acceptance\"");
  if (server.empty() && names.size() > 1)
    throw input_error(name, "has several servers that speculate (" + shown + "); expected one, chosen by its name");
  const auto found = server.empty() ? servers.begin() : servers.find(server);
  if (found == servers.end())
    throw input_error(name, "has no server " + in_quotes(server) + " that speculates; expected one of " + shown);
  AcceptanceData data = found->second.read(name);
  data.notes.insert(data.notes.end(), notes.begin(), notes.end());
  return data;
}

}  // namespace draftproof
