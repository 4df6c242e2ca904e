#include "studies/lab/distribution_lab.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "exactness/statistics/battery.hpp"
#include "exactness/statistics/distribution_check.hpp"
#include "studies/lab/distribution_lab_sampler.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kFirstLook = 50;
constexpr std::int64_t kLooksMax = 60;
constexpr std::int64_t kSamplesBetweenChecks = 256;

void require_row(const std::vector<double>& row, const char* option) {
  const auto size = static_cast<std::int64_t>(row.size());
  if (size < 2 || size > kLabVocabMax)
    throw usage_error(option,
                      "has " + std::to_string(size) + " weights; expected 2 to " + std::to_string(kLabVocabMax));
  double sum = 0.0;
  for (const double weight : row) {
    if (!(weight >= 0.0) || !std::isfinite(weight))
      throw usage_error(option, "has the weight " + short_number(weight) + "; expected finite numbers from 0");
    sum += weight;
  }
  if (!(sum > 0.0) || !std::isfinite(sum))
    throw usage_error(option, "has the sum " + short_number(sum) + "; expected a positive weight, and a finite sum");
}

void require_same_length(const DistributionLabSettings& settings, const std::vector<double>& row, const char* option) {
  if (row.size() != settings.target.size())
    throw usage_error(option, "has " + std::to_string(row.size()) + " weights; expected " +
                                  std::to_string(settings.target.size()) + ", as --target has");
}

void validate(const DistributionLabSettings& settings) {
  require_row(settings.target, "--target");
  require_row(settings.draft, "--draft");
  require_same_length(settings, settings.draft, "--draft");
  if (!settings.unconditional.empty()) {
    require_row(settings.unconditional, "--unconditional");
    require_same_length(settings, settings.unconditional, "--unconditional");
  }
  const auto require_range = [](const char* option, std::int64_t value, std::int64_t most) {
    if (value < 1 || value > most)
      throw usage_error(
          option, "is " + std::to_string(value) + "; expected a whole number in [1, " + std::to_string(most) + "]");
  };
  require_range("--num-speculative-tokens", settings.draft_tokens, kLabDraftTokensMax);
  require_range("--samples", settings.samples, kLabSamplesMax);
}

// kFirstLook, then by equal factors up to all samples.
std::vector<std::int64_t> look_sizes(std::int64_t samples) {
  std::vector<std::int64_t> sizes;
  const double factor = static_cast<double>(samples) / static_cast<double>(kFirstLook);
  for (std::int64_t i = 0; i + 1 < kLooksMax && factor > 1.0; ++i) {
    const auto size = static_cast<std::int64_t>(
        std::round(static_cast<double>(kFirstLook) *
                   std::pow(factor, static_cast<double>(i) / static_cast<double>(kLooksMax - 1))));
    if (size < samples && (sizes.empty() || size > sizes.back())) sizes.push_back(size);
  }
  sizes.push_back(samples);
  return sizes;
}

void judge(LabLook& look, const std::vector<double>& expected) {
  look.test = goodness_of_fit(look.counts, expected);
  const auto n = static_cast<double>(look.samples);
  look.detectable_tv = detectable_total_variation(n, look.test.df, kDistributionAlpha, kDistributionPower);
  look.observed_tv = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    look.observed_tv += std::abs(static_cast<double>(look.counts[i]) / n - expected[i]) / 2.0;
}

void decide(DistributionLabSnapshot& snapshot) {
  const LabLook& look = snapshot.looks.back();
  const bool biased = look.test.rejects(kDistributionAlpha);
  snapshot.verdict = biased ? LabVerdict::biased : LabVerdict::consistent;
  std::string text = std::string(name_of(snapshot.verdict)) + ": ";
  if (look.test.impossible_cell)
    text += "token " + std::to_string(*look.test.impossible_cell) + " has probability 0 and was emitted";
  else if (look.test.df == 0)
    text += "one token has all the mass, and nothing else was emitted";
  else
    text += "chi-squared " + short_number(look.test.statistic) + " at " + std::to_string(look.test.df) +
            " degrees of freedom, p-value " + short_number(look.test.p_value) + " against the level " +
            short_number(kDistributionAlpha);
  text += "; " + std::to_string(look.samples) + " samples";
  if (look.test.df > 0) text += ", which would show a total variation of " + short_number(look.detectable_tv);
  if (biased && !snapshot.lossless) text += "; a bias is expected of a lossy verifier";
  snapshot.sentence = text;
}

}  // namespace

std::string_view name_of(LabVerdict verdict) {
  switch (verdict) {
    case LabVerdict::sampling:
      return "sampling";
    case LabVerdict::consistent:
      return "consistent";
    case LabVerdict::biased:
      return "biased";
  }
  throw Error(ErrorKind::internal, "distribution lab", "no such verdict");
}

DistributionLabSnapshot rows_of(const DistributionLabSettings& settings) {
  validate(settings);
  DistributionLabSnapshot snapshot;
  snapshot.settings = settings;
  fill_rows(snapshot);
  snapshot.expected = snapshot.p;
  if (settings.bug.empty()) {
    const VerifierChoice choice = parse_verifier(settings.verifier, "--verifier");
    snapshot.verifier = text_of(choice);
    snapshot.lossless = choice.info().lossless;
  }
  return snapshot;
}

void compute(const DistributionLabSettings& settings, Job& job, const PublishDistributionLab& publish) {
  DistributionLabSnapshot snapshot = rows_of(settings);
  const LabSampler sampler = lab_sampler(snapshot);
  snapshot.expected = sampler.expected;
  publish(snapshot);
  if (settings.lossy) snapshot.lossy = lossy_rules(snapshot, job);

  LabLook look;
  look.counts.assign(snapshot.p.size(), 0);
  std::int64_t accepted_drafts = 0;
  bool acceptance_known = true;
  for (const std::int64_t size : look_sizes(settings.samples)) {
    for (; look.samples < size; ++look.samples) {
      if (look.samples % kSamplesBetweenChecks == 0) job.check();
      const LabSample sample = sampler.sample(static_cast<std::uint64_t>(look.samples));
      ++look.counts.at(static_cast<std::size_t>(sample.token));
      acceptance_known = sample.num_accepted >= 0;
      if (sample.num_accepted > 0) ++look.accepted;
      accepted_drafts += std::max(sample.num_accepted, 0);
    }
    judge(look, snapshot.expected);
    snapshot.looks.push_back(look);
    if (acceptance_known) snapshot.mean_accepted = static_cast<double>(accepted_drafts) / static_cast<double>(size);
    if (size == settings.samples) decide(snapshot);
    job.report(static_cast<double>(size) / static_cast<double>(settings.samples),
               "sampling, " + std::to_string(size) + " of " + std::to_string(settings.samples));
    publish(snapshot);
  }
}

std::vector<double> with_probability(std::vector<double> row, std::size_t i, double probability) {
  const double wanted = std::clamp(probability, 0.0, 1.0);
  double others = 0.0;
  for (std::size_t k = 0; k < row.size(); ++k)
    if (k != i) others += row[k];
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (k == i)
      row[k] = wanted;
    else
      row[k] = others > 0.0 ? row[k] * ((1.0 - wanted) / others) : (1.0 - wanted) / static_cast<double>(row.size() - 1);
  }
  return row;
}

std::vector<double> with_logit(std::vector<double> row, std::size_t i, double logit) {
  row[i] = std::exp(logit);
  double sum = 0.0;
  for (const double x : row) sum += x;
  for (double& x : row) x /= sum;
  return row;
}

}  // namespace draftproof
