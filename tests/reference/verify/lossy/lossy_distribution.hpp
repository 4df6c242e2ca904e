// Distributions of lossy rules, enumerated and counted, for comparison with what they say of themselves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exactness/model_pair.hpp"
#include "exactness/proof/output_distribution.hpp"
#include "exactness/rational.hpp"
#include "reference/random/audit.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "reference/verify/sampled_tree.hpp"

namespace draftproof {

using LossyChance = EnumeratingChance<Rational>;
using LossyRow = DenseMasses<Rational>;

struct DraftedChain {
  DraftTree tree;
  DenseRows<Rational> target, proposal;
};

// A chain drawn from the draft model, with the rows along it.
inline DraftedChain draw_chain_and_rows(const ModelPair<Rational>& models, std::int32_t draft_len,
                                        LossyChance& chance) {
  DraftedChain chain;
  const auto distribution = [&](std::span<const Token> path) -> const LossyRow& { return models.draft(path); };
  chain.tree = draw_chain(distribution, draft_len, chance);
  for (std::int32_t node = kRootNode; node < chain.tree.size(); ++node) {
    chain.target.rows.push_back(models.target(chain.tree.path(node)));
    chain.proposal.rows.push_back(models.draft(chain.tree.path(node)));
  }
  return chain;
}

// The distribution of what `emit(chance)` returns.
template <class Emit>
OutputDistribution enumerated_distribution(Emit emit) {
  OutputDistribution distribution;
  LossyChance chance;
  do {
    const TokenString text = emit(chance);
    distribution[text] += chance.probability();
    if (chance.reused() > 0) throw std::logic_error("an address was used twice");
  } while (chance.next());
  return distribution;
}

// Of the first token alone.
inline LossyRow first_token_distribution(const OutputDistribution& distribution, std::size_t vocab_size) {
  LossyRow row(vocab_size, Rational(0));
  for (const auto& [text, probability] : distribution) row[static_cast<std::size_t>(text[0])] += probability;
  return row;
}

// How often each of `cells` came of the production path, doubles and Philox under the key audit: 20,000 requests of
// three steps. step(chance) -> cell; a word that is drawn twice throws.
template <class Step>
std::vector<std::int64_t> count_in_floats(std::uint64_t seed, std::size_t cells, Step step) {
  std::vector<std::int64_t> counts(cells, 0);
  for (std::uint64_t request = 0; request < 20'000; ++request) {
    AuditedSource<> source;
    for (std::uint32_t number = 0; number < 3; ++number) {
      AddressedChance<AuditedSource<>> chance(source, derive_seed(seed, request), number);
      ++counts.at(static_cast<std::size_t>(step(chance)));
    }
  }
  return counts;
}

inline TokenString emitted(std::span<const Token> draft, std::uint32_t num_accepted, Token last) {
  TokenString text(draft.begin(), draft.begin() + num_accepted);
  text.push_back(last);
  return text;
}

}  // namespace draftproof
