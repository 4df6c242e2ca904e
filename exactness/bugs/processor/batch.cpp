// Requests of different kinds in one batch: greedy rows beside random ones, and ids that point into a neighbour's row.
#include <algorithm>
#include <cmath>

#include "exactness/bugs/families.hpp"
#include "exactness/bugs/filter/hunts.hpp"
#include "reference/logits/edits.hpp"
#include "reference/random/injected.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

// A random row of a mixed batch: softmax in float, then the first token whose cumulative sum exceeds u. With
// temperature 0, which this code takes for a temperature since its own sentinel is -1, all of it is NaN, which no u is
// below.
Token sampled_by_division(std::span<const float> logits, float temperature, const RandomBlock& block) {
  float greatest = -INFINITY;
  for (const float l : logits) greatest = std::max(greatest, l / temperature);
  std::vector<float> weights;
  float total = 0.0f;
  for (const float l : logits) total += weights.emplace_back(std::exp(l / temperature - greatest));
  const float u = static_cast<float>(uniform_53(high_half(block)));
  float cumulative = 0.0f;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    cumulative += weights[i] / total;
    if (u < cumulative) return static_cast<Token>(i);
  }
  return static_cast<Token>(weights.size() - 1);
}

ExactDistribution distribution_by_division(std::span<const float> logits, const RowParameters& parameters) {
  if (parameters.temperature != 0.0f) return distribution_by_production(logits, parameters);
  ExactDistribution distribution(logits.size(), Rational(0));
  distribution[static_cast<std::size_t>(sampled_by_division(logits, 0.0f, InjectedSource::kZeros))] = 1;
  return distribution;
}

Finding find_wrong_greedy_distribution(bool faulty) {
  return find_wrong_row_distribution(std::vector<RowParameters>{with_temperature(0.0f), RowParameters{}},
                                     faulty ? distribution_by_division : distribution_by_production);
}

// Greedy rows with end words for u: the greedy token is the only possible one.
Finding find_wrong_greedy_token(bool faulty) {
  std::vector<SupportCase> cases;
  for (const Logits& logits : small_rows(3, 2)) {
    const ExactDistribution distribution = distribution_by_definition(logits, with_temperature(0.0f));
    std::vector<bool> support;
    for (const Rational& p : distribution) support.push_back(p > 0);
    for (const RandomBlock& block : {InjectedSource::kZeros, InjectedSource::kSmallest, InjectedSource::kOnes}) {
      const auto draw = [=] {
        if (faulty) return sampled_by_division(logits, 0.0f, block);
        const ProcessedRow row(logits, with_temperature(0.0f));
        return DistributionMasses(row.distribution).draw(block);
      };
      cases.push_back({"greedy row " + text_of_probabilities(distribution_by_definition(logits, {})), support, draw});
    }
  }
  return find_impossible_token(cases);
}

// Ids outside the vocabulary.

constexpr std::size_t kVocabSize = 5;

struct BiasedRow {
  std::vector<LogitBias> bias;

  RowConstraints constraints() const {
    RowConstraints constraints;
    constraints.logit_bias = bias;
    return constraints;
  }
};

// Rows behind each other, with a row of guard cells at either end.
class GuardedRows {
 public:
  explicit GuardedRows(std::size_t rows) : cells_((rows + 2) * kVocabSize, 0.0f) {}

  std::span<float> row(std::size_t i) { return std::span(cells_).subspan((i + 1) * kVocabSize, kVocabSize); }
  // Addresses the whole tensor, as a kernel that scatters into it.
  float& cell(std::size_t row, Token token) {
    return cells_[static_cast<std::size_t>(static_cast<std::ptrdiff_t>((row + 1) * kVocabSize) + token)];
  }
  bool guards_hold() const {
    const auto is_zero = [](float cell) { return cell == 0.0f; };
    return std::all_of(cells_.begin(), cells_.begin() + kVocabSize, is_zero) &&
           std::all_of(cells_.end() - kVocabSize, cells_.end(), is_zero);
  }

 private:
  std::vector<float> cells_;
};

// A request that is refused leaves its row as it is.
void bias_rows(const std::vector<BiasedRow>& batch, bool unchecked, GuardedRows& rows) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (unchecked) {
      for (const LogitBias& bias : batch[i].bias) rows.cell(i, bias.token) += bias.value;
      continue;
    }
    try {
      validate(batch[i].constraints(), kVocabSize, "request " + std::to_string(i));
      add_bias(batch[i].constraints(), rows.row(i));
    } catch (const Error&) {
      continue;
    }
  }
}

std::vector<BiasedRow> biased_rows() {
  return {{{{1, 1.0f}}}, {{{0, 2.0f}, {4, -1.0f}}}, {{{7, 1.0f}}}, {{}}, {{{-2, 1.0f}}}, {{{5, 1.0f}}}};
}

Finding find_neighbour_biased(bool faulty) {
  return find_batch_dependence(biased_rows(), [&](const std::vector<BiasedRow>& batch) {
    GuardedRows rows(batch.size());
    bias_rows(batch, faulty, rows);
    std::vector<Logits> result;
    for (std::size_t i = 0; i < batch.size(); ++i) result.emplace_back(rows.row(i).begin(), rows.row(i).end());
    return result;
  });
}

Finding find_write_outside(bool faulty) {
  return first_evidence("rows", biased_rows(), [faulty](const BiasedRow& row) {
    GuardedRows rows(1);
    bias_rows({row}, faulty, rows);
    if (rows.guards_hold()) return std::string();
    return "a bias of token " + std::to_string(row.bias.front().token) + " in a vocabulary of " +
           std::to_string(kVocabSize) + " is written outside the row";
  });
}

}  // namespace

std::vector<Bug> mixed_row_bugs() {
  return {
      {.id = "B66",
       .source = "vllm #27077",
       .fault = "greedy rows are marked by temperature 0 and looked for by -1, so that in a mixed batch they are "
                "divided by 0",
       .hunts = {{Detector::injection, find_wrong_greedy_token},
                 {Detector::enumeration, find_wrong_greedy_distribution}}},
      {.id = "B75",
       .source = "vllm #54195",
       .fault = "the id of a bias or a stop token is not checked, and one outside the vocabulary writes a neighbour's "
                "logits",
       .hunts = {{Detector::support, find_write_outside}, {Detector::batch, find_neighbour_biased}}},
  };
}

}  // namespace draftproof
