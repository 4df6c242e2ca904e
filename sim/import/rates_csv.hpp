// Acceptance rates as a table, in one of two forms.
//
//   one configuration or window a row   p1, p2, ... with rate_kind (conditional or unconditional, in words), and of
//                                       mean_acceptance_length with tau_kind (with or without the bonus token), K,
//                                       num_drafts, num_draft_tokens, num_accepted_tokens what is known; further
//                                       columns name the configuration (engine, hardware, target_model, draft_method,
//                                       draft_model) and are otherwise ignored
//   one position a row                  position with conditional or unconditional, or with counts: accepted with
//                                       reached (conditional), accepted (or accepted_all_steps) with steps or drafts
//                                       (unconditional). The demo's acceptance.csv is such a table
//
// or as a table of Markdown, where a row may also be a prompt, or a K: rounds (or cycles) and accepted as "538/660", a
// rate with K (accepted of drafted tokens, all drafts having K), "pos accept" with all positions' rates in a cell.
//
// Columns are separated by commas, semicolons or tabs, and known by more than one name (pos, conditional_rate,
// survival, ...; a column rate with a column kind beside it). Positions count from 0 or 1, whichever comes first.
// Where nothing says what kind the rates are, the acceptance length beside them decides; where that is missing too,
// the table is refused, unless the caller knows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/csv.hpp"
#include "sim/import/acceptance_data.hpp"

namespace draftproof {

// One row of the first form.
struct RateRow {
  int line = 0;
  std::string configuration;  // what must be equal where rows are merged
  std::int32_t draft_len = 0;
  AcceptanceWindow window;
  std::optional<std::int64_t> draft_tokens, accepted_tokens;
  std::vector<std::string> notes;
};

bool is_rates_csv(std::string_view text);
// Errors (input) naming file and line: a cell that is no number, rates outside [0, 1], unconditional rates that rise,
// rates of unknown kind.
std::vector<RateRow> read_rate_rows(const CsvTable& table, const std::string& name, const std::string& kind = "");
// All rows of a configuration as one; errors (input) also where there are several and none is chosen.
// kind: "conditional" or "unconditional" for rates of which the file does not say it; empty: not known.
// choice: the configuration, as the error names it, or its K; empty: the only one.
AcceptanceData read_rates_csv(std::string_view text, const std::string& name, const std::string& kind = "",
                              const std::string& choice = "");

// Reads the first Markdown table with an acceptance; rows without a rate, and those of means, are left out. A first
// column that names no prompts or tasks names configurations.
bool is_rates_table(std::string_view text);
// drafts: K, where no column says it; 0: not known.
AcceptanceData read_rates_table(std::string_view text, const std::string& name, const std::string& kind = "",
                                const std::string& choice = "", std::int32_t drafts = 0);

}  // namespace draftproof
