#include "exactness/soak/chain_model.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace draftproof {

ChainModel::ChainModel(std::int32_t vocab_size, std::int32_t draft_len, ModelKind kind, std::uint64_t seed)
    : vocab_size_(vocab_size), draft_len_(draft_len) {
  if (vocab_size < 1 || vocab_size > kSoakVocabMax)
    throw usage_error("--vocab", std::to_string(vocab_size) + " is not from 1 to " + std::to_string(kSoakVocabMax));
  if (draft_len < 0 || draft_len > kSoakDraftMax)
    throw usage_error("--num-speculative-tokens",
                      std::to_string(draft_len) + " is not from 0 to " + std::to_string(kSoakDraftMax));
  const ModelPair<double> models(vocab_size, seed, kind);
  for (std::int32_t position = 0; position <= draft_len; ++position) {
    for (Token previous = 0; previous < vocab_size; ++previous) {
      const std::vector<Token> context{static_cast<Token>(position % vocab_size), previous,
                                       static_cast<Token>(position / vocab_size)};
      for (const bool is_draft : {false, true}) {
        const DenseMasses<double>& distribution = is_draft ? models.draft(context) : models.target(context);
        std::vector<float>& row = rows_.emplace_back();
        for (const double p : distribution) row.push_back(static_cast<float>(p));
        (is_draft ? draft_ : target_)
            .emplace_back()
            .make_probabilities({DType::f32, row.data(), vocab_size},
                                static_cast<std::int64_t>(index_of(position, previous)));
      }
    }
  }
}

std::size_t ChainModel::first_cell(std::int32_t num_accepted) const {
  std::size_t cells = 0;
  std::size_t strings = 1;
  for (std::int32_t length = 1; length <= num_accepted; ++length) {
    strings *= static_cast<std::size_t>(vocab_size_);
    cells += strings;
  }
  return cells;
}

std::size_t ChainModel::cell_of(std::span<const Token> emitted) const {
  std::size_t path = 0;
  for (const Token token : emitted)
    path = path * static_cast<std::size_t>(vocab_size_) + static_cast<std::size_t>(token);
  return first_cell(static_cast<std::int32_t>(emitted.size()) - 1) + path;
}

std::vector<Token> ChainModel::tokens_of(std::size_t cell) const {
  std::int32_t num_accepted = 0;
  while (first_cell(num_accepted + 1) <= cell) ++num_accepted;
  std::size_t path = cell - first_cell(num_accepted);
  std::vector<Token> tokens(static_cast<std::size_t>(num_accepted) + 1);
  for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
    *token = static_cast<Token>(path % static_cast<std::size_t>(vocab_size_));
    path /= static_cast<std::size_t>(vocab_size_);
  }
  return tokens;
}

std::vector<double> ChainModel::emitted_distribution() const {
  std::vector<double> distribution(cell_count(), 0.0);
  add_cells(0, 0, 0, 1.0, distribution);
  return distribution;
}

void ChainModel::add_cells(std::int32_t position, Token previous, std::size_t path, double probability,
                           std::vector<double>& distribution) const {
  const auto vocab = static_cast<std::size_t>(vocab_size_);
  // Numbers of 24 bits do not quite sum to 1.
  const auto sum_of = [&](const Distribution& row) {
    double sum = 0.0;
    for (Token token = 0; token < vocab_size_; ++token) sum += static_cast<double>(row.probability(token));
    return sum;
  };
  const Distribution& p = target(position, previous);
  const double sum_p = sum_of(p);
  const bool is_bonus = position == draft_len_;
  const double sum_q = is_bonus ? 1.0 : sum_of(draft(position, previous));
  for (Token token = 0; token < vocab_size_; ++token) {
    const double p_token = static_cast<double>(p.probability(token)) / sum_p;
    const double q_token = is_bonus ? 0.0 : static_cast<double>(draft(position, previous).probability(token)) / sum_q;
    const std::size_t string = path * vocab + static_cast<std::size_t>(token);
    distribution[first_cell(position) + string] += probability * std::max(p_token - q_token, 0.0);
    const double accepted = probability * std::min(p_token, q_token);
    if (accepted > 0.0) add_cells(position + 1, token, string, accepted, distribution);
  }
}

}  // namespace draftproof
