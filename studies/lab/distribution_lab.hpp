// The distribution lab: one verification step over a small vocabulary, where p and q are given by hand. What the rows
// become in the logits pipeline, what they have in common, and whether samples of the emitted token follow p.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "exactness/statistics/chi_squared.hpp"
#include "reference/step/lossy_distance.hpp"
#include "studies/figures/table.hpp"
#include "studies/job.hpp"

namespace draftproof {

inline constexpr std::int32_t kLabVocabMax = 32;
inline constexpr std::int32_t kLabDraftTokensMax = 8;
inline constexpr std::int64_t kLabSamplesMax = 100'000'000;
inline constexpr std::int64_t kLabLossySamples = 4'000;

struct DistributionLabSettings {
  // Weights [V], proportional to probabilities at temperature 1; 0 masks a token.
  std::vector<double> target{0.34, 0.22, 0.16, 0.12, 0.08, 0.05, 0.02, 0.01};
  std::vector<double> draft{0.12, 0.30, 0.10, 0.20, 0.16, 0.02, 0.06, 0.04};
  std::vector<double> unconditional;  // of guidance, for both rows; empty: uniform
  // Parameters of both rows, in the pipeline's order (logits/pipeline.hpp).
  float temperature = 1.0f;
  std::int32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  float guidance_scale = 1.0f;
  GuidanceForm guidance_form = GuidanceForm::logits;
  std::string verifier = "chain";  // as parse_verifier() reads it; a bug has its own
  std::int32_t draft_tokens = 1;   // K: of a chain, siblings of one node, or the length of a path
  std::string bug;                 // id of lab_bugs(); empty: the step layer as it is
  std::int64_t samples = 20'000;
  std::uint64_t seed = 0;
  bool lossy = false;          // with every rule of kComparedLossyRules, K drafts in a chain
  bool filters_first = false;  // shows p after the filters before all, in place of the test

  bool operator==(const DistributionLabSettings&) const = default;
};

// A fault of `draftproof bugs` that shows on any p and q, or in the filters of any row.
struct LabBug {
  std::string id, source, fault;
  std::string detectors;  // letters of the hunts that catch it, as in docs/exactness.md
};
const std::vector<LabBug>& lab_bugs();

// The test after the first `samples` samples.
struct LabLook {
  std::int64_t samples = 0;
  std::vector<std::int64_t> counts;  // [V]
  std::int64_t accepted = 0;         // samples whose first emitted token was a draft
  ChiSquaredTest test;
  double observed_tv = 0.0;    // between counts / samples and `expected`
  double detectable_tv = 1.0;  // at kDistributionAlpha with power kDistributionPower
};

enum class LabVerdict : std::uint8_t { sampling, consistent, biased };
std::string_view name_of(LabVerdict verdict);

struct DistributionLabSnapshot {
  DistributionLabSettings settings;

  // Rows [V] after the pipeline.
  std::vector<double> p, q;
  std::vector<double> overlap;   // min(p, q)
  std::vector<double> residual;  // max(p - q, 0) divided by its sum; zeros where p = q
  double total_variation = 0.0;  // sum |p - q| / 2
  double acceptance = 0.0;       // sum min(p, q): of one draft from q by the chain rule
  // With guidance of probabilities: its distance from the exact one in the target's and the draft's row
  // (logits/guidance.hpp).
  std::optional<std::array<std::optional<double>, 2>> guidance_distance = {};

  std::string verifier;          // with its parameters; of a bug empty
  bool lossless = true;          // as the registry or, of a bug, its sound twin promises
  std::vector<double> expected;  // [V] what samples should follow: p, but for bugs that filter or temper themselves

  // At growing numbers of samples; the last one is that of all so far.
  std::vector<LabLook> looks;
  std::optional<double> mean_accepted;  // drafts accepted a step; of bugs unknown
  LabVerdict verdict = LabVerdict::sampling;
  std::vector<LossyRule> lossy;  // distances in closed form, accepted drafts of at most kLabLossySamples steps
  std::string sentence;          // the verdict with its numbers; empty while sampling
};

using PublishDistributionLab = std::function<void(DistributionLabSnapshot)>;

// The rows and their numbers alone, without samples. Errors (usage) naming the option: see compute().
DistributionLabSnapshot rows_of(const DistributionLabSettings& settings);

// Publishes the rows, then a snapshot for every look. The verdict is that of the last look. Errors (usage) naming the
// option: rows of different lengths, fewer than 2 or more than kLabVocabMax weights, a weight that is negative or not
// finite, no positive weight, parameters outside their ranges, an unknown verifier or bug.
void compute(const DistributionLabSettings& settings, Job& job, const PublishDistributionLab& publish);

// `row` with entry i set to `probability` in [0, 1], and the others scaled to fill the rest, in equal parts where they
// were all zero.
std::vector<double> with_probability(std::vector<double> row, std::size_t i, double probability);
// `row` with the logit of entry i, ln(row[i]), set to `logit`; divided by its sum.
std::vector<double> with_logit(std::vector<double> row, std::size_t i, double logit);

nlohmann::ordered_json to_json(const DistributionLabSnapshot& snapshot);
Table to_table(const DistributionLabSnapshot& snapshot);
std::string to_figure(const DistributionLabSnapshot& snapshot);
std::vector<std::string> command_arguments(const DistributionLabSettings& settings);

}  // namespace draftproof
