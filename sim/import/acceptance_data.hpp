// Acceptance in a server's counters, logs or tables, in one form: rates are unconditional (s_i, of the steps that had a
// draft) and the acceptance length counts the bonus or recovered token, whatever the file says them in.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/acceptance/acceptance_model.hpp"

namespace draftproof {

// Steps with a draft that were counted: trials, so that a rate of theirs is a quotient of whole numbers.
struct Steps {
  explicit Steps(std::integral auto n) : count(n) {}
  std::int64_t count;
};

// How much a mean counts beside others of its file, in any unit: running requests, requests. It says nothing of trials.
struct Weight {
  explicit Weight(double w) : value(w) {}
  double value;
};

using WindowSize = std::variant<std::monostate, Steps, Weight>;  // monostate: not said
// Nothing: not said.
inline WindowSize counted(std::optional<std::int64_t> steps) {
  return steps ? WindowSize(Steps(*steps)) : WindowSize();
}

struct Bounds {
  double low = 0.0, high = 0.0;
  bool is_exact() const { return low == high; }
};

// A stretch of time, or a configuration, that a file has means of, over the steps that had a draft.
struct AcceptanceWindow {
  std::string where;  // "server.log, line 12"
  WindowSize size;
  std::vector<double> survival = {};             // s_1 .. s_K; empty: not said
  std::optional<double> acceptance_length = {};  // with the bonus token
  // Share of the steps whose draft had a token at each position [K]; empty: all drafts had survival.size() tokens.
  std::vector<Bounds> reach = {};
};

// Tokens that one engine produced while so many requests ran on it. Ranks of data parallelism are engines: each batches
// requests of its own.
struct ThroughputWindow {
  double running = 0.0;            // requests
  double tokens_per_second = 0.0;  // generated
  double prompt_tokens_per_second = 0.0;
  int engine = 0;                              // of data parallelism, from 0
  std::optional<double> tokens_per_step = {};  // of a request, where the window's metrics of speculation say it
  std::optional<double> draft_tokens = {};     // of a draft, on average; likewise
};

struct AcceptanceData {
  std::string path;
  std::string format;         // "vLLM log"
  bool takes_choice = false;  // the format has several servers or drafters, of which ImportOptions choose
  bool takes_rates = false;   // the format may leave to ImportOptions what its rates are
  std::int64_t windows = 0;
  std::int32_t draft_len = 0;       // K, levels of a tree; 0: not said
  bool draft_len_is_least = false;  // nothing says K: it is no less than the mean draft, rounded up
  std::int32_t tree_nodes = 0;      // 0: chains, as far as is said
  std::optional<std::int64_t> drafts, draft_tokens, accepted_tokens;
  double acceptance_length = 1.0;  // of steps with a draft
  bool length_is_least = false;    // it is no less: steps are not counted
  std::optional<double> acceptance_length_error;
  // [K], each over the steps whose draft had a token there; empty: not said.
  std::vector<double> survival;
  std::vector<double> survival_error;  // [K], standard errors, with a third of the bounds' width; empty: not known
  // [K], where drafts were shorter than K and the file does not say how many had a token at a position; empty: the
  // rates are exact.
  std::vector<Bounds> survival_bounds;
  std::vector<Bounds> reach;  // [K], share of the drafts that had a token there; empty: all
  // Share of the steps that had a draft: prompt lookup often has none. Nothing: not said, and taken for 1.
  std::optional<double> draft_share;
  std::vector<ThroughputWindow> throughput;
  std::string model;                              // of a benchmark or of metrics that name it
  std::optional<std::int64_t> load;               // requests at a time of a benchmark that says it
  std::vector<std::string> notes;                 // what was converted, left out or assumed, in sentences
  std::vector<std::string> not_used;              // what looks like acceptance and was not read, as a list's items
  std::shared_ptr<const AcceptanceModel> replay;  // of recordings: more than rates

  // Tokens of a step, those without a draft included.
  double tokens_per_step() const { return 1.0 + draft_share.value_or(1.0) * (acceptance_length - 1.0); }
};

// Lengths of drafts below K, from counts: `draft_tokens` over `drafts` steps of which at least the share survival[i]
// had a token at position i. Exact where all drafts may have had one length, with nothing accepted behind it; empty
// where that length is K.
std::vector<Bounds> reach_of(double drafts, double draft_tokens, const std::vector<double>& survival);

// Options named where the number of drafts is missing: acceptance has -k, predict --metrics-drafts.
inline constexpr const char* kSayDrafts = "-k K (predict: --metrics-drafts K)";

// Fills windows, drafts, acceptance_length and survival with their errors: windows are weighted by their size, or
// equally where one does not say it. Standard errors are over windows where there are five or more (steps of one
// text depend on each other), else those of coins where steps are counted. Errors (input) at `where`: no window, none
// with a length.
void merge_windows(const std::vector<AcceptanceWindow>& windows, const std::string& where, AcceptanceData& data);

// The factor by which `count` rates behind one of `last`, each the one before it times it, add up to `sum`, as near as
// one from 0 to 1 comes.
double factor_of_sum(double last, std::int32_t count, double sum);

// Error (input) at `where`: more requests at a time than any engine runs, or none that can be counted.
void require_running(double requests, const std::string& where);

// K, where nothing says it, of so many tokens over so many steps: their mean, rounded up where it is not whole.
void set_least_draft_len(AcceptanceData& data, double draft_tokens, double steps);

// Errors (input) at `where`: a rate outside [0, 1], or above the one before it by more than `rounding`; such small
// rises are levelled.
void require_survival(std::vector<double>& survival, const std::string& where, double rounding);

}  // namespace draftproof
