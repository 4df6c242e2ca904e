// Acceptance in a server's counters, logs or tables, in one form: rates are unconditional (s_i, of the steps that had a
// draft) and the acceptance length counts the bonus or recovered token, whatever the file says them in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/acceptance/acceptance_model.hpp"

namespace draftproof {

// A stretch of time, or a configuration, that a file has figures of.
struct AcceptanceWindow {
  std::string where;                        // "server.log, line 12"
  std::optional<std::int64_t> drafts;       // steps that had a draft
  std::vector<double> survival;             // s_1 .. s_K; empty: not said
  std::optional<double> acceptance_length;  // with the bonus token
};

// Tokens that a server produced while so many requests ran.
struct ThroughputWindow {
  double running = 0.0;            // requests
  double tokens_per_second = 0.0;  // generated
  double prompt_tokens_per_second = 0.0;
};

struct AcceptanceData {
  std::string path;
  std::string format;         // "vLLM log"
  bool takes_choice = false;  // the format has several servers or drafters, of which ImportOptions choose
  bool takes_rates = false;   // the format may leave to ImportOptions what its rates are
  std::int64_t windows = 0;
  std::int32_t draft_len = 0;   // K, levels of a tree; 0: not said
  std::int32_t tree_nodes = 0;  // 0: chains, as far as is said
  std::optional<std::int64_t> drafts, draft_tokens, accepted_tokens;
  double acceptance_length = 1.0;  // of steps with a draft
  std::optional<double> acceptance_length_error;
  std::vector<double> survival;        // [K]; empty: not said
  std::vector<double> survival_error;  // [K], standard errors; empty: not known
  // Share of the steps that had a draft: prompt lookup often has none. Nothing: not said, and taken for 1.
  std::optional<double> draft_share;
  std::vector<ThroughputWindow> throughput;
  std::vector<std::string> notes;                 // what was converted, left out or assumed, in sentences
  std::shared_ptr<const AcceptanceModel> replay;  // of recordings: more than rates

  // Tokens of a step, those without a draft included.
  double tokens_per_step() const { return 1.0 + draft_share.value_or(1.0) * (acceptance_length - 1.0); }
};

// Fills windows, drafts, acceptance_length and survival with their errors: windows are weighted by their drafts, or
// equally where one does not say them. Standard errors are over windows where there are five or more (steps of one
// text depend on each other), else those of coins. Errors (input) at `where`: no window, none with a length.
void merge_windows(const std::vector<AcceptanceWindow>& windows, const std::string& where, AcceptanceData& data);

// Errors (input) at `where`: a rate outside [0, 1], or above the one before it by more than `rounding`; such small
// rises are levelled.
void require_survival(std::vector<double>& survival, const std::string& where, double rounding);

}  // namespace draftproof
