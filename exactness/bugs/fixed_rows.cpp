#include "exactness/bugs/fixed_rows.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "reference/numerics/natural_log.hpp"

namespace draftproof {
CumulativeTable::CumulativeTable(std::vector<double> masses) : masses_(std::move(masses)) {
  double sum = 0.0;
  for (std::size_t i = 0; i < masses_.size(); ++i) {
    sum += masses_[i];
    cumulative_.push_back(sum);
    if (masses_[i] > 0.0) last_ = static_cast<Token>(i);
  }
}

Token CumulativeTable::at(double sum) const {
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), sum);
  return std::min(static_cast<Token>(found - cumulative_.begin()), last_);
}

Token CumulativeTable::draw(const RandomBlock& block) const {
  return at(uniform_53(high_half(block)) * cumulative_.back());
}

Token CumulativeTable::draw_without(Token excluded, const RandomBlock& block) const {
  const auto index = static_cast<std::size_t>(excluded);
  const double before = index == 0 ? 0.0 : cumulative_[index - 1];
  const double removed = cumulative_[index] - before;
  const double sum = uniform_53(high_half(block)) * (cumulative_.back() - removed);
  return at(sum < before ? sum : std::max(sum + removed, cumulative_[index]));
}

void CumulativeTable::for_each_log_weight(const LogWeightSink& sink) const {
  std::vector<double> log_weights;
  for (const double mass : masses_)
    log_weights.push_back(mass > 0.0 ? natural_log(mass) : -std::numeric_limits<double>::infinity());
  sink(0, log_weights);
}

FixedRows::FixedRows(std::vector<double> p, std::vector<double> q)
    : target(p), proposal(q), residual(residual_masses(DenseRows<double>{{p}}, DenseRows<double>{{q}}, 0)) {}

ChainOutcome verify_fixed_chain(std::span<const Token> draft, const FixedRows& rows, FixedChance& chance) {
  FixedTarget target{rows};
  FixedProposal proposal{rows};
  return verify_chain(draft, target, proposal, chance);
}

LargeSampler speculative_sampler(const FixedRowsPointer& rows, KeyFault keys, const SpeculativeOptions& options) {
  auto draw = [rows, keys, options](std::uint64_t request) {
    PhiloxSource philox;
    TokenString string;
    for (std::uint32_t step = 0; string.size() <= options.position; ++step) {
      MappedSource<PhiloxSource> source(philox, keys, static_cast<std::uint32_t>(string.size()));
      FixedChance chance(source, derive_seed(0, request), step, options.sampler, options.convention);
      std::vector<Token> draft;
      for (std::uint32_t row = 0; row < options.draft_len; ++row)
        draft.push_back(chance.draw(rows->proposal, row, Purpose::draft_sample));
      const ChainOutcome outcome = options.verify(draft, *rows, chance);
      string.insert(string.end(), draft.begin(), draft.begin() + static_cast<std::ptrdiff_t>(outcome.num_accepted));
      string.push_back(outcome.last_token);
    }
    return string[options.position];
  };
  return {rows->target.masses(), std::move(draw)};
}

LargeSampler plain_sampler(const FixedRowsPointer& rows, std::function<RandomKey(std::uint64_t)> key_of) {
  return {rows->target.masses(), [key_of = std::move(key_of), rows](std::uint64_t draw) {
            const RandomKey key = key_of(draw);
            return rows->target.draw(PhiloxSource().block(key.seed, key.address));
          }};
}

}  // namespace draftproof
