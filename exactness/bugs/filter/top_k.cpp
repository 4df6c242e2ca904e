// Top-k: which tokens survive where values tie, and what k = 0 and k = 1 mean.
#include <algorithm>

#include "exactness/bugs/distribution_sampler.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/filter/hunts.hpp"

namespace draftproof {
namespace {

const std::vector<RowParameters>& top_k_settings() {
  static const std::vector<RowParameters> settings{with_top_k(0), with_top_k(1), with_top_k(2), with_top_k(3),
                                                   with_top_k(4)};
  return settings;
}

// A rule that looks at values alone cannot cut between equal ones.
KeptTokens kept_by_value(const LogitsDistribution& row, const FilterParameters& parameters) {
  FilterParameters by_value = parameters;
  by_value.ties = Ties::keep_all;
  return kept_by_production(row, by_value);
}

Bug value_only_pivot() {
  const auto rule = [](bool faulty) { return faulty ? kept_by_value : kept_by_production; };
  return {.id = "B46",
          .source = "flashinfer #3774",
          .fault = "top-k compares values with that of the k-th token and keeps all that tie with it",
          .hunts = {{Detector::enumeration,
                     [rule](bool faulty) {
                       return find_wrong_row_distribution(top_k_settings(), row_code_of(rule(faulty)));
                     }}},
          .filter_sampler = filter_sampler_of(kept_by_value)};
}

struct BatchRow {
  Logits logits;
  RowParameters parameters;
};

// Rows of every kind of tie, more than the batch size at which the code path changes.
std::vector<BatchRow> rows_with_ties(std::span<const RowParameters> settings) {
  const std::vector<Logits> rows = small_rows(3, 2);
  std::vector<BatchRow> batch;
  for (std::size_t i = 0; i < rows.size(); i += 2) batch.push_back({rows[i], settings[batch.size() % settings.size()]});
  return batch;
}

// One path for small batches, another with another rule for ties from `large_batch` rows on.
std::vector<ExactDistribution> distributions_of_batch(const std::vector<BatchRow>& batch, const KeptRule& small,
                                                      const KeptRule& large) {
  constexpr std::size_t kLargeBatch = 8;
  std::vector<ExactDistribution> distributions;
  for (const BatchRow& row : batch)
    distributions.push_back(
        distribution_of_kept(batch.size() < kLargeBatch ? small : large, row.logits, row.parameters));
  return distributions;
}

Bug two_code_paths() {
  const auto run = [](bool faulty) {
    const KeptRule large = faulty ? kept_by_value : kept_by_production;
    return find_batch_dependence(rows_with_ties(top_k_settings()), [&](const std::vector<BatchRow>& batch) {
      return distributions_of_batch(batch, kept_by_production, large);
    });
  };
  return {.id = "B47",
          .source = "vllm #50979",
          .fault = "batches of 8 rows and more are filtered by another kernel, which has another rule for ties",
          .hunts = {{Detector::batch, run}}};
}

constexpr float kTinyTemperature = 1e-6f;

// Greedy rows among random ones go through the softmax at a tiny temperature, which shares the mass between ties.
ExactDistribution distribution_by_tiny_temperature(std::span<const float> logits, const RowParameters& parameters) {
  return distribution_by_production(logits,
                                    parameters.temperature == 0.0f ? with_temperature(kTinyTemperature) : parameters);
}

std::vector<ExactDistribution> distributions_of_mixed_batch(const std::vector<BatchRow>& batch,
                                                            const RowCode& greedy_among_others) {
  const bool mixed =
      std::any_of(batch.begin(), batch.end(), [](const BatchRow& row) { return row.parameters.temperature != 0.0f; });
  std::vector<ExactDistribution> distributions;
  for (const BatchRow& row : batch)
    distributions.push_back((mixed ? greedy_among_others : distribution_by_production)(row.logits, row.parameters));
  return distributions;
}

Bug tiny_temperature() {
  const auto code = [](bool faulty) -> RowCode {
    return faulty ? distribution_by_tiny_temperature : distribution_by_production;
  };
  const auto batch_hunt = [code](bool faulty) {
    const std::vector<RowParameters> settings{with_temperature(0.0f), RowParameters{}};
    return find_batch_dependence(rows_with_ties(settings), [&](const std::vector<BatchRow>& batch) {
      return distributions_of_mixed_batch(batch, code(faulty));
    });
  };
  const auto distribution_hunt = [code](bool faulty) {
    return find_wrong_row_distribution(std::vector<RowParameters>{with_temperature(0.0f)}, code(faulty));
  };
  return {.id = "B48",
          .source = "vllm #5404, #41598",
          .fault = "greedy rows in a batch with random ones are sampled at temperature 1e-6, so that ties are drawn",
          .hunts = {{Detector::batch, batch_hunt}, {Detector::enumeration, distribution_hunt}}};
}

KeptTokens kept_with_k_clamped(const LogitsDistribution& row, const FilterParameters& parameters) {
  FilterParameters clamped = parameters;
  clamped.top_k = std::max(1, parameters.top_k);
  return kept_by_production(row, clamped);
}

Bug k_clamped_to_one() {
  const auto rule = [](bool faulty) { return faulty ? kept_with_k_clamped : kept_by_production; };
  return {.id = "B62",
          .source = "llama.cpp #5388",
          .fault = "top_k = 0, which means off, is clamped to 1, which means greedy",
          .hunts = {{Detector::enumeration,
                     [rule](bool faulty) {
                       return find_wrong_row_distribution(top_k_settings(), row_code_of(rule(faulty)));
                     }}},
          .filter_sampler = filter_sampler_of(kept_with_k_clamped)};
}

}  // namespace

std::vector<Bug> top_k_bugs() {
  return {value_only_pivot(), two_code_paths(), tiny_temperature(), k_clamped_to_one()};
}

}  // namespace draftproof
