// How acceptance falls along a draft, for several drafters side by side, and what follows for the best number of
// drafts at a given draft cost (sim/acceptance/rates.hpp has the equations).
//
// A source is one of
//   FILE            what a server says of acceptance (sim/import/read_acceptance.hpp)
//   FOLDER          of a run of demo or speculate: its result.json; of speculate a curve for every drafter
//   drafter:NAME    medians of published rates of such a drafter, NAME as in sim/presets/drafters
//   MODEL           an acceptance model, as constant:0.8 (sim/acceptance/acceptance_choice.hpp)
// A file or folder of that name wins over the other two.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "studies/figures/table.hpp"
#include "studies/job.hpp"

namespace draftproof {

inline constexpr std::int32_t kDecayDraftsMax = 64;
inline constexpr double kDecayLevel = 0.95;  // of all intervals

struct AcceptanceDecaySettings {
  std::vector<std::string> sources{"drafter:EAGLE-3", "drafter:MTP", "drafter:n-gram", "constant:0.8"};
  double draft_cost = 0.1;      // c, a draft token in target steps
  std::int32_t drafts_max = 8;  // K of the longest chain looked at
  std::int32_t context = 1024;  // tokens, of models whose rates depend on it
  std::string name;             // of several in a file: a model_name, or a drafter
  std::string rates;            // "conditional" or "unconditional", of tables that do not say it
  std::int32_t drafts = 0;      // tokens of a draft there, where the file does not say it; 0: it does
  bool operator==(const AcceptanceDecaySettings&) const = default;
};

// With its interval where counts or standard errors are known.
struct DecayValue {
  double value = 0.0;
  std::optional<double> low, high;
};

struct DecayCurve {
  std::string name;                    // of the curve: the source, and its drafter where it has several
  std::string source;                  // as it was given
  std::optional<Error> error;          // why there is no curve; then nothing below is set
  std::string format;                  // "vLLM log", "acceptance model", "published rates"
  std::int32_t positions_known = 0;    // positions behind have rates by extrapolation
  std::optional<std::int64_t> drafts;  // steps counted
  double draft_share = 1.0;            // of the steps, that have a draft
  std::optional<double> acceptance_length, acceptance_length_error;  // as the file says it; standard error
  // [K_max], position i at index i - 1, of the steps that had a draft.
  std::vector<DecayValue> conditional, unconditional;
  std::vector<double> survival_product;  // [K_max] a_1 ... a_i
  // [K_max + 1], of a step with K drafts at index K.
  std::vector<DecayValue> tokens_per_step, speedup;
  std::optional<std::int32_t> running_k;  // of the server whose file it is, where it drafts chains of one length
  std::int32_t best_k = 0;
  std::optional<std::int32_t> best_k_low, best_k_high;  // at the ends of the survival's intervals
  double best_speedup = 1.0;
  double pays_below = 0.0;                   // the draft cost from which on no draft pays: E(1) - 1 over the share, s_1
  std::vector<std::int32_t> best_k_by_cost;  // at AcceptanceDecaySnapshot::costs
  std::vector<std::string> notes;
};

struct AcceptanceDecaySnapshot {
  AcceptanceDecaySettings settings;
  std::vector<double> costs;  // draft costs, rising
  std::vector<DecayCurve> curves;
  // Properties of the sources read: whether one is a file, and whether one takes settings.name and settings.rates.
  bool holds_file = false, takes_name = false, takes_rates = false;
};

// Errors (usage): a setting out of range. A source that cannot be read has its error in its curve.
void compute(const AcceptanceDecaySettings& settings, Job& job,
             const std::function<void(AcceptanceDecaySnapshot)>& publish);
nlohmann::ordered_json to_json(const AcceptanceDecaySnapshot& snapshot);
Table to_table(const AcceptanceDecaySnapshot& snapshot);
std::string to_figure(const AcceptanceDecaySnapshot& snapshot);
std::vector<std::string> command_arguments(const AcceptanceDecaySettings& settings);

}  // namespace draftproof
