// Orders that must not change the result, or must: sorting tokens (noise belongs to ids), temperature before top-p.
#include <algorithm>
#include <numeric>

#include "exactness/bugs/distribution_sampler.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/filter/hunts.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

RowParameters with_both(float top_p, float temperature) {
  RowParameters parameters = with_top_p(top_p);
  parameters.temperature = temperature;
  return parameters;
}

struct SeededRow {
  Logits logits;
  RowParameters parameters;
  std::uint64_t seed;
};

// Philox words handed out by the rank of a token among its row's, not by its id.
struct RankedSource {
  std::vector<std::uint32_t> rank;  // of every token, and of the lanes that fill its last block

  RandomBlock block(std::uint64_t seed, Address address) const {
    RandomBlock words{};
    const std::size_t first = std::size_t{4} * address.index;
    for (std::size_t lane = 0; lane < 4; ++lane) {
      address.index = rank[first + lane] / 4;
      words.word[lane] = PhiloxSource().block(seed, address).word[rank[first + lane] % 4];
    }
    return words;
  }
};

std::vector<std::uint32_t> ranks_of(std::span<const float> logits) {
  std::vector<std::uint32_t> order((logits.size() + 3) / 4 * 4);
  std::iota(order.begin(), order.end(), 0u);
  const auto real = order.begin() + static_cast<std::ptrdiff_t>(logits.size());
  std::stable_sort(order.begin(), real, [&](std::uint32_t a, std::uint32_t b) { return logits[a] > logits[b]; });
  std::vector<std::uint32_t> rank(order.size());
  for (std::uint32_t r = 0; r < order.size(); ++r) rank[order[r]] = r;
  return rank;
}

// Rows are sorted where some row of the batch needs it for top-p.
std::vector<Token> raced_tokens(const std::vector<SeededRow>& batch, bool noise_by_rank) {
  const bool sorted = std::any_of(batch.begin(), batch.end(),
                                  [](const SeededRow& row) { return row.parameters.filters.top_p != 1.0f; });
  std::vector<Token> tokens;
  const auto race = [&](auto source, const SeededRow& row) {
    AddressedChance chance(source, row.seed, 0, Sampler::race);
    const ProcessedRow processed(row.logits, row.parameters);
    return chance.draw(DistributionMasses(processed.distribution), 0, Purpose::target_sample);
  };
  for (const SeededRow& row : batch)
    tokens.push_back(noise_by_rank && sorted ? race(RankedSource{ranks_of(row.logits)}, row)
                                             : race(PhiloxSource(), row));
  return tokens;
}

std::vector<SeededRow> rows_with_one_top_p() {
  std::vector<SeededRow> batch;
  for (std::uint64_t i = 0; i < 12; ++i) {
    Logits logits;
    for (std::uint32_t token = 0; token < 16; ++token)
      logits.push_back(static_cast<float>(PhiloxSource().block(i, {token, 0, 0, Purpose::simulator}).word[0] % 5));
    batch.push_back({logits, with_top_p(i == 1 ? 0.9f : 1.0f), derive_seed(0, i)});
  }
  return batch;
}

KeptTokens kept_before_temperature(std::span<const float> logits, const RowParameters& parameters) {
  const TemperedRow raw(logits, 1.0f);
  return kept_by_production(raw.distribution, parameters.filters);
}

ExactDistribution distribution_filtered_before_temperature(std::span<const float> logits,
                                                           const RowParameters& parameters) {
  const KeptTokens kept = kept_before_temperature(logits, parameters);
  return distribution_of_kept([&](const LogitsDistribution&, const FilterParameters&) { return kept; }, logits,
                              parameters);
}

// The probabilities of the kept tokens, taken for logits.
ExactDistribution distribution_after_second_softmax(std::span<const float> logits, const RowParameters& parameters) {
  ExactDistribution distribution = distribution_by_production(logits, parameters);
  for (Rational& p : distribution)
    if (p > 0) p = Rational(natural_exp(static_cast<double>(p)));
  return normalised(std::move(distribution));
}

Hunt distribution_hunt(const RowCode& faulty_code) {
  return {Detector::enumeration, [faulty_code](bool faulty) {
            std::vector<RowParameters> settings;
            for (const float temperature : {0.5f, 1.0f, 2.0f})
              for (const float top_p : {0.5f, 0.8f}) settings.push_back(with_both(top_p, temperature));
            return find_wrong_row_distribution(settings, faulty ? faulty_code : distribution_by_production);
          }};
}

LargeSampler sampler_filtered_before_temperature(const Logits& logits, const RowParameters& parameters) {
  const KeptTokens kept = kept_before_temperature(logits, parameters);
  return sampler_of_rule(logits, parameters, [&](const LogitsDistribution&, const FilterParameters&) { return kept; });
}

}  // namespace

std::vector<Bug> filter_order_bugs() {
  const auto batch_hunt = [](bool faulty) {
    return find_batch_dependence(rows_with_one_top_p(),
                                 [&](const std::vector<SeededRow>& batch) { return raced_tokens(batch, faulty); });
  };
  return {
      {.id = "B63",
       .source = "sglang #35697",
       .fault = "where a request of the batch has top-p, rows are sorted and noise goes by rank, not by token id",
       .hunts = {{Detector::batch, batch_hunt}}},
      {.id = "B64",
       .source = "mlc-llm #951, tt-metal #25341",
       .fault = "top-p cuts the row before the temperature; probabilities go through a second softmax after the mask",
       .hunts = {distribution_hunt(distribution_filtered_before_temperature),
                 distribution_hunt(distribution_after_second_softmax)},
       .filter_sampler = sampler_filtered_before_temperature},
  };
}

}  // namespace draftproof
