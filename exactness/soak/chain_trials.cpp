#include "exactness/soak/chain_trials.hpp"

#include "exactness/proof/grid_chance.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

// The rows of one trial, as verify_chain asks for them.
struct TrialTarget {
  const ChainModel& model;
  std::span<const Token> draft;

  const Distribution& distribution(std::uint32_t row) const {
    return model.target(static_cast<std::int32_t>(row), row == 0 ? 0 : draft[row - 1]);
  }
  float probability(std::uint32_t row, Token token) const { return distribution(row).probability(token); }
  DistributionMasses masses(std::uint32_t row) const { return DistributionMasses(distribution(row)); }
};
struct TrialProposal {
  const ChainModel& model;
  std::span<const Token> draft;

  const Distribution& distribution(std::uint32_t row) const {
    return model.draft(static_cast<std::int32_t>(row), row == 0 ? 0 : draft[row - 1]);
  }
  float probability(std::uint32_t row, Token token) const { return distribution(row).probability(token); }
};
ResidualMasses residual_masses(const TrialTarget& target, const TrialProposal& proposal, std::uint32_t row) {
  return {target.distribution(row), proposal.distribution(row)};
}

template <class Masses>
DrawnWords words_of(const Masses& masses) {
  return drawn_words([&](const RandomBlock& block) { return masses.draw(block); });
}

// Borders that a first token past 0 leaves over are never below any word.
std::uint64_t border_or_none(const DrawnWords& words, std::size_t b) {
  return b < words.last.size() ? words.last[b] : ~std::uint64_t{0};
}

}  // namespace

ChainTables::ChainTables(const ChainModel& model) : model_(model) {
  const auto vocab = static_cast<std::size_t>(model.vocab_size());
  draft_borders_.resize(draft_len() * kWidth * kWidth);
  draft_first_.resize(draft_len() * kWidth);
  last_borders_.resize(kWidth * (draft_len() + 1) * kWidth);
  last_first_.resize((draft_len() + 1) * kWidth);
  coins_.resize(draft_len() * kWidth * kWidth);
  for (std::size_t i = 0; i <= draft_len(); ++i) {
    for (std::size_t c = 0; c < vocab; ++c) {
      const auto position = static_cast<std::int32_t>(i);
      const auto previous = static_cast<Token>(c);
      const Distribution& p = model.target(position, previous);
      const bool is_bonus = i == draft_len();
      const DrawnWords last =
          is_bonus ? words_of(DistributionMasses(p)) : words_of(ResidualMasses(p, model.draft(position, previous)));
      last_first_[i * kWidth + c] = static_cast<std::uint64_t>(last.first);
      for (std::size_t b = 0; b < border_count(); ++b)
        last_borders_[(b * (draft_len() + 1) + i) * kWidth + c] = border_or_none(last, b);
      if (is_bonus) continue;
      const Distribution& q = model.draft(position, previous);
      const DrawnWords drafted = words_of(DistributionMasses(q));
      draft_first_[i * kWidth + c] = static_cast<std::uint64_t>(drafted.first);
      for (std::size_t b = 0; b < border_count(); ++b)
        draft_borders_[(i * kWidth + b) * kWidth + c] = border_or_none(drafted, b);
      for (std::size_t x = 0; x < vocab; ++x) {
        const auto token = static_cast<Token>(x);
        coins_[(i * kWidth + c) * kWidth + x] =
            accepting_coins(static_cast<double>(p.probability(token)), static_cast<double>(q.probability(token)));
      }
    }
  }
}

void run_chain_trials_one_by_one(const ChainTables& tables, std::uint64_t seed, std::uint32_t first_trial,
                                 std::uint64_t count, std::span<std::uint64_t> counts) {
  const ChainModel& model = tables.model();
  PhiloxSource source;
  std::vector<Token> draft(tables.draft_len());
  for (std::uint64_t t = 0; t < count; ++t) {
    AddressedChance<PhiloxSource> chance(source, seed, first_trial + static_cast<std::uint32_t>(t));
    const TrialTarget target{model, draft};
    const TrialProposal proposal{model, draft};
    for (std::uint32_t i = 0; i < draft.size(); ++i)
      draft[i] = chance.draw(DistributionMasses(proposal.distribution(i)), i, Purpose::draft_sample);
    const ChainOutcome outcome = verify_chain(std::span<const Token>(draft), target, proposal, chance);
    std::vector<Token> emitted(draft.begin(), draft.begin() + static_cast<std::ptrdiff_t>(outcome.num_accepted));
    emitted.push_back(outcome.last_token);
    ++counts[model.cell_of(emitted)];
  }
}

}  // namespace draftproof
