// Faults of coupling are maps of keys: two uses of randomness that should have keys of their own are sent to one. A
// map is written once and used twice: below AddressedChance, where the key audit sees the very blocks that are asked
// for, and in front of EnumeratingChance, where the exact distribution shows what the sharing does.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "exactness/bugs/hunting.hpp"
#include "reference/random/audit.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "reference/verify/sampler_match.hpp"

namespace draftproof {

struct RandomKey {
  std::uint64_t seed = 0;
  Address address;
  std::uint32_t position = 0;  // tokens that the request had emitted before the step
};

// The key that is used in place of the one that should be.
using KeyFault = RandomKey (*)(RandomKey);

inline RandomKey sound_keys(RandomKey key) {
  return key;
}
inline KeyFault keys_of(bool faulty, KeyFault fault) {
  return faulty ? fault : sound_keys;
}

// The uniform that judged the draft draws the recovered token too.
inline RandomKey residual_at_the_coin(RandomKey key) {
  if (key.address.purpose == Purpose::residual) key.address.purpose = Purpose::accept;
  return key;
}

// Coins are keyed by the absolute position of the draft, whatever the step.
inline RandomKey coin_by_position(RandomKey key) {
  if (key.address.purpose != Purpose::accept) return key;
  key.address.row += key.position;
  key.address.step = 0;
  return key;
}

// A source whose blocks are those of the faulty key.
template <class Source>
class MappedSource {
 public:
  MappedSource(Source& source, KeyFault fault, std::uint32_t position = 0)
      : source_(source), fault_(fault), position_(position) {}

  RandomBlock block(std::uint64_t seed, const Address& address) {
    const RandomKey key = fault_({seed, address, position_});
    return source_.block(key.seed, key.address);
  }

 private:
  Source& source_;
  KeyFault fault_;
  std::uint32_t position_;
};

// One step of exact outcomes at the addresses of the faulty key. Seeds do not exist here: one request is enumerated.
class MappedExactChance {
 public:
  MappedExactChance(ExactChance& chance, KeyFault fault, Sampler sampler, std::uint32_t step, std::uint32_t position)
      : chance_(chance), fault_(fault), sampler_(sampler), step_(step), position_(position) {}

  bool accept(const Rational& p, const Rational& q, std::uint32_t row) {
    return chance_.accept_at(mapped(row, Purpose::accept), p, q);
  }
  Token draw(const DenseMasses<Rational>& masses, std::uint32_t row, Purpose purpose) {
    const Address address = mapped(row, purpose);
    return sampler_ == Sampler::inverse ? chance_.draw_at(address, masses) : chance_.race_at(address, masses);
  }

 private:
  Address mapped(std::uint32_t row, Purpose purpose) const {
    return fault_({0, {0, row, step_, purpose}, position_}).address;
  }

  ExactChance& chance_;
  KeyFault fault_;
  Sampler sampler_;
  std::uint32_t step_;
  std::uint32_t position_;
};

inline TokenString continued(TokenString prefix, std::span<const Token> path) {
  prefix.insert(prefix.end(), path.begin(), path.end());
  return prefix;
}

// Judges drafts after `prefix` over a pair of models of any number type, by `verify(draft, target rows, proposal rows,
// chance)`.
template <class Number, class Chance, class Verify>
ProofStep judge_chain(const ModelPair<Number>& models, const TokenString& prefix, std::span<const Token> draft,
                      Chance& chance, const Verify& verify) {
  DenseRows<Number> target;
  DenseRows<Number> proposal;
  for (std::size_t row = 0; row <= draft.size(); ++row) {
    const TokenString context = continued(prefix, draft.first(row));
    target.rows.push_back(models.target(context));
    proposal.rows.push_back(models.draft(context));
  }
  const ChainOutcome outcome = verify(draft, target, proposal, chance);
  const auto num_accepted = static_cast<std::ptrdiff_t>(outcome.num_accepted);
  ProofStep step{{draft.begin(), draft.begin() + num_accepted}, static_cast<std::int32_t>(num_accepted)};
  step.emitted.push_back(outcome.last_token);
  return step;
}

// The same with a chain of drafts drawn from the draft model.
template <class Number, class Chance, class Verify>
ProofStep speculate_chain(const ModelPair<Number>& models, const TokenString& prefix, std::int32_t draft_len,
                          Chance& chance, Verify verify) {
  const auto draft_distribution = [&](std::span<const Token> path) { return models.draft(continued(prefix, path)); };
  return judge_chain(models, prefix, draw_chain(draft_distribution, draft_len, chance).tokens, chance, verify);
}

// The exact distribution of strings under faulty keys. At most two steps: each emits a token or more, so that the first
// is the one with an empty prefix.
template <class Verify>
Finding find_wrong_distribution_of_keys(const EnumerationHunt& hunt, KeyFault keys, Sampler sampler, Verify verify) {
  return find_wrong_distribution(hunt, [&](const Models& models, const TokenString& prefix, std::int32_t draft_len,
                                           ExactChance& chance) {
    MappedExactChance mapped(chance, keys, sampler, prefix.empty() ? 0 : 1, static_cast<std::uint32_t>(prefix.size()));
    return speculate_chain(models, prefix, draft_len, mapped, verify);
  });
}

// Runs `code(source)`; caught where it asks for a key twice. Cases are the blocks that were asked for.
template <class Code>
Finding find_reused_key(Code code) {
  AuditedSource<> source;
  Finding finding{false, 0, "blocks", {}};
  try {
    code(source);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::internal || error.where() != "key audit") throw;
    finding.caught = true;
    finding.evidence = error.what();
  }
  finding.cases = static_cast<std::int64_t>(source.used()) + (finding.caught ? 1 : 0);
  return finding;
}

// Several requests of several steps each, audited.
template <class Verify>
Finding find_reused_key_of_steps(KeyFault keys, Sampler sampler, Verify verify) {
  constexpr std::int32_t kVocabSize = 5;
  constexpr std::int32_t kDraftLen = 3;
  constexpr std::uint32_t kSteps = 4;
  constexpr std::uint64_t kRequests = 8;
  return find_reused_key([&](AuditedSource<>& source) {
    for (std::uint64_t request = 0; request < kRequests; ++request) {
      const ModelPair<double> models(kVocabSize, derive_seed(0, request), ModelKind::dense);
      TokenString string;
      for (std::uint32_t step = 0; step < kSteps; ++step) {
        MappedSource<AuditedSource<>> mapped(source, keys, static_cast<std::uint32_t>(string.size()));
        AddressedChance<MappedSource<AuditedSource<>>> chance(mapped, derive_seed(1, request), step, sampler);
        const ProofStep outcome = speculate_chain(models, string, kDraftLen, chance, verify);
        string.insert(string.end(), outcome.emitted.begin(), outcome.emitted.end());
      }
    }
  });
}

// The hunts of a fault of keys under one verifier.
template <class Verify>
Hunt key_audit_hunt(KeyFault fault, Sampler sampler, Verify verify) {
  return {Detector::key_audit,
          [=](bool faulty) { return find_reused_key_of_steps(keys_of(faulty, fault), sampler, verify); }};
}
template <class Verify>
Hunt distribution_hunt(const EnumerationHunt& hunt, KeyFault fault, Sampler sampler, Verify verify) {
  return {Detector::enumeration,
          [=](bool faulty) { return find_wrong_distribution_of_keys(hunt, keys_of(faulty, fault), sampler, verify); }};
}

// Verifiers as values.
inline constexpr auto kVerifyChain = [](auto&&... arguments) { return verify_chain(arguments...); };
inline constexpr auto kVerifyMatch = [](std::span<const Token> draft, auto& target, auto&, auto& chance) {
  return verify_sampler_match(draft, target, chance);
};

}  // namespace draftproof
