// One verification step on a small model, drafting included: what proofs enumerate and statistics repeat.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "exactness/model_pair.hpp"
#include "exactness/proof/output_distribution.hpp"
#include "reference/random/address.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof::small_step {

inline TokenString joined(TokenString prefix, std::span<const Token> tokens) {
  prefix.insert(prefix.end(), tokens.begin(), tokens.end());
  return prefix;
}

// --- Chains ---------------------------------------------------------------------------------------------------------

// A chain of drafts and the rows along it.
template <class Number>
struct DraftedChain {
  std::vector<Token> draft;    // [K]
  DenseRows<Number> target;    // rows 0..K
  DenseRows<Number> proposal;  // rows 0..K-1
};

template <class Number, class Chance>
DraftedChain<Number> draft_chain(const ModelPair<Number>& models, TokenString prefix, std::uint32_t draft_len,
                                 Chance& chance) {
  DraftedChain<Number> chain;
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    chain.target.rows.push_back(models.target(prefix));
    chain.proposal.rows.push_back(models.draft(prefix));
    chain.draft.push_back(chance.draw(models.draft(prefix), row, Purpose::draft_sample));
    prefix.push_back(chain.draft.back());
  }
  chain.target.rows.push_back(models.target(prefix));
  return chain;
}

inline TokenString emitted_by(std::span<const Token> draft, const ChainOutcome& outcome) {
  TokenString tokens(draft.begin(), draft.begin() + outcome.num_accepted);
  tokens.push_back(outcome.last_token);
  return tokens;
}

// Verifiers of chains here are callables (draft, target, proposal, chance) -> ChainOutcome.
template <class Number, class Chance, class Verify>
TokenString chain_step(const ModelPair<Number>& models, const TokenString& prefix, std::uint32_t draft_len,
                       Chance& chance, const Verify& verify) {
  DraftedChain<Number> chain = draft_chain(models, prefix, draft_len, chance);
  const std::span<const Token> draft(chain.draft);
  return emitted_by(draft, verify(draft, chain.target, chain.proposal, chance));
}

// --- Nodes of a tree ------------------------------------------------------------------------------------------------

// How the siblings of a node are made: k draws from q, the same without replacement, or the k-1 most probable tokens
// and one draw from the rest. A support that is too small gives fewer siblings. Sibling j has node index first + j.
enum class Drafting : std::uint8_t { with_replacement, without_replacement, greedy };

template <class Number, class Chance>
std::vector<Token> draft_siblings(const DenseMasses<Number>& q, std::int32_t k, Drafting drafting, Chance& chance,
                                  std::uint32_t first = 0) {
  std::vector<Token> siblings;
  DenseMasses<Number> undrafted = q;
  for (std::int32_t j = 0; j < k && total_of(undrafted) > 0; ++j) {
    const bool deterministic = drafting == Drafting::greedy && j + 1 < k;
    const auto most_probable = std::max_element(undrafted.begin(), undrafted.end()) - undrafted.begin();
    siblings.push_back(deterministic
                           ? static_cast<Token>(most_probable)
                           : chance.draw(undrafted, first + static_cast<std::uint32_t>(j), Purpose::draft_sample));
    if (drafting != Drafting::with_replacement) undrafted[static_cast<std::size_t>(siblings.back())] = Number(0);
  }
  return siblings;
}

inline std::vector<std::int32_t> nodes_of(std::span<const Token> siblings) {
  std::vector<std::int32_t> nodes(siblings.size());
  for (std::size_t j = 0; j < nodes.size(); ++j) nodes[j] = static_cast<std::int32_t>(j);
  return nodes;
}

// Rules are callables of the form in sibling_outcome.hpp.
template <class Number, class Chance, class Rule>
SiblingOutcome decide(const DenseMasses<Number>& p, const DenseMasses<Number>& q, std::span<const Token> siblings,
                      std::uint32_t row, Chance& chance, const Rule& rule) {
  const std::vector<std::int32_t> nodes = nodes_of(siblings);
  return rule(p, q, siblings, std::span<const std::int32_t>(nodes), row, chance);
}

// A step with a tree of one level: siblings at the root and, where one is accepted, the bonus token after it.
template <class Number, class Chance, class Rule>
TokenString sibling_step(const ModelPair<Number>& models, TokenString prefix, std::int32_t k, Drafting drafting,
                         Chance& chance, const Rule& rule) {
  const DenseMasses<Number>& q = models.draft(prefix);
  const std::vector<Token> siblings = draft_siblings(q, k, drafting, chance);
  const SiblingOutcome outcome = decide(models.target(prefix), q, std::span<const Token>(siblings), 0, chance, rule);
  TokenString tokens{outcome.token};
  if (outcome.accepted == kNoSibling) return tokens;
  prefix.push_back(outcome.token);
  const auto row_after = static_cast<std::uint32_t>(outcome.accepted + 1);
  tokens.push_back(
      decide(models.target(prefix), models.draft(prefix), std::span<const Token>(), row_after, chance, rule).token);
  return tokens;
}

// --- Distributions
// -----------------------------------------------------------------------------------------------------------

// The distribution of step(chance), over every outcome. `reused`: addresses used twice, over all of them.
struct EnumeratedDistribution {
  OutputDistribution distribution;
  std::size_t reused = 0;
};

template <class Step>
EnumeratedDistribution enumerate(const Step& step) {
  EnumeratedDistribution out;
  EnumeratingChance<Rational> chance;
  do {
    chance.set_step(0);
    const TokenString tokens = step(chance);
    out.distribution[tokens] += chance.probability();
    out.reused += chance.reused();
  } while (chance.next());
  return out;
}

// Two consecutive steps of one request, enumerated together.
template <class Step>
EnumeratedDistribution enumerate_two_steps(const Step& step) {
  return enumerate([&](auto& chance) {
    const TokenString first = step(TokenString{}, chance);
    chance.set_step(1);
    return joined(first, step(first, chance));
  });
}

inline TargetDistribution target_of(const ModelPair<Rational>& models) {
  return [&models](const TokenString& prefix) -> const DenseMasses<Rational>& { return models.target(prefix); };
}

// Token distribution and acceptance of one node.
struct NodeDistribution {
  DenseMasses<Rational> tokens;
  Rational acceptance;
};

template <class Rule>
NodeDistribution node_distribution(const DenseMasses<Rational>& p, const DenseMasses<Rational>& q, std::int32_t k,
                                   Drafting drafting, const Rule& rule) {
  NodeDistribution distribution{DenseMasses<Rational>(p.size()), 0};
  EnumeratingChance<Rational> chance;
  do {
    const std::vector<Token> siblings = draft_siblings(q, k, drafting, chance);
    const SiblingOutcome outcome = decide(p, q, std::span<const Token>(siblings), 0, chance, rule);
    distribution.tokens[static_cast<std::size_t>(outcome.token)] += chance.probability();
    if (outcome.accepted != kNoSibling) distribution.acceptance += chance.probability();
  } while (chance.next());
  return distribution;
}

inline Rational distance(const DenseMasses<Rational>& a, const DenseMasses<Rational>& b) {
  Rational sum(0);
  for (std::size_t i = 0; i < a.size(); ++i) sum += abs(a[i] - b[i]);
  return sum / 2;
}

// sum over x of min(p, q).
inline Rational overlap(const DenseMasses<Rational>& p, const DenseMasses<Rational>& q) {
  Rational sum(0);
  for (std::size_t i = 0; i < p.size(); ++i) sum += std::min(p[i], q[i]);
  return sum;
}

// The context-free pair of the golden table.
inline const DenseMasses<Rational>& golden_p() {
  static const DenseMasses<Rational> kRow{Rational(1, 2), Rational(3, 10), Rational(1, 5)};
  return kRow;
}
inline const DenseMasses<Rational>& golden_q() {
  static const DenseMasses<Rational> kRow{Rational(1, 5), Rational(3, 10), Rational(1, 2)};
  return kRow;
}

}  // namespace draftproof::small_step
