#include "studies/lab/draft_pair.hpp"

#include <algorithm>
#include <cmath>

#include "reference/numerics/natural_exp.hpp"
#include "reference/random/philox.hpp"
#include "sim/serving/variates.hpp"

namespace draftproof {
namespace {

using Path = std::vector<Token>;

PairRow softmax(const std::vector<double>& logits) {
  const double largest = *std::ranges::max_element(logits);
  PairRow row;
  double total = 0.0;
  for (const double logit : logits) {
    row.push_back(natural_exp(logit - largest));
    total += row.back();
  }
  for (double& p : row) p = static_cast<double>(static_cast<float>(p / total));
  return row;
}

class Synthetic final : public DraftPair {
 public:
  explicit Synthetic(const SyntheticPair& settings) : settings_(settings) {}

  std::int64_t vocab_size() const override { return settings_.vocab_size; }

  // a, b, ..., z, a1, b1, ...
  std::string text(Token token) const override {
    const std::string letter(1, static_cast<char>('a' + token % 26));
    return token < 26 ? letter : letter + std::to_string(token / 26);
  }

  const PairRow& draft(std::span<const Token> path) override { return rows(path).second; }

  std::vector<PairRow> targets(const DraftTree& tree) override {
    std::vector<PairRow> targets{rows({}).first};
    for (std::int32_t node = 0; node < tree.size(); ++node) targets.push_back(rows(tree.path(node)).first);
    return targets;
  }

  std::vector<double> target_probabilities(const DraftTree& tree) override {
    std::vector<double> probabilities;
    for (std::int32_t node = 0; node < tree.size(); ++node) {
      const auto i = static_cast<std::size_t>(node);
      const PairRow& p = rows(tree.path(tree.parents[i])).first;
      probabilities.push_back(p[static_cast<std::size_t>(tree.tokens[i])]);
    }
    return probabilities;
  }

  std::vector<std::pair<PairRow, PairRow>> examples() override {
    constexpr std::uint64_t kExamples = 256;
    std::vector<std::pair<PairRow, PairRow>> examples;
    for (std::uint64_t i = 0; i < kExamples; ++i) examples.push_back(make(derive_seed(~settings_.seed, i)));
    return examples;
  }

 private:
  std::pair<PairRow, PairRow> make(std::uint64_t key) const {
    const auto normal = [&](std::uint32_t token, std::uint32_t row) {
      return normal_of(philox_block(key, token, row, 0, static_cast<std::uint32_t>(Purpose::simulator)));
    };
    const double apart = std::sqrt(1.0 - settings_.quality * settings_.quality);
    std::vector<double> target, draft;
    for (std::uint32_t token = 0; token < static_cast<std::uint32_t>(settings_.vocab_size); ++token) {
      const double shared = normal(token, 0);
      target.push_back(settings_.sharpness * shared);
      draft.push_back(settings_.sharpness * (settings_.quality * shared + apart * normal(token, 1)));
    }
    return {softmax(target), softmax(draft)};
  }

  const std::pair<PairRow, PairRow>& rows(std::span<const Token> path) {
    const auto [found, is_new] = rows_.try_emplace(Path(path.begin(), path.end()));
    if (is_new) {
      std::uint64_t key = settings_.seed;
      for (const Token token : path) key = derive_seed(key, static_cast<std::uint64_t>(token));
      found->second = make(key);
    }
    return found->second;
  }

  SyntheticPair settings_;
  std::map<Path, std::pair<PairRow, PairRow>> rows_;
};

}  // namespace

std::unique_ptr<DraftPair> make_synthetic_pair(const SyntheticPair& settings) {
  return std::make_unique<Synthetic>(settings);
}

}  // namespace draftproof
