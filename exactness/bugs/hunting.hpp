// Searches that hunts share: for a wrong distribution or rate, by enumeration and by draws.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "exactness/bugs/bug.hpp"
#include "exactness/proof/prove.hpp"

namespace draftproof {

struct EnumerationHunt {
  std::int32_t vocab_size = 3;
  std::int32_t draft_len = 1;
  std::int32_t steps = 1;      // enumerated jointly, so that an address shared by two steps couples them
  std::int32_t instances = 7;  // pairs of random models, of every kind in turn
  DraftTokens draft_tokens = DraftTokens::all;
};

// One step of drafting and verification, as proofs run it (prove.hpp).
using EnumeratedStep =
    std::function<ProofStep(const Models&, const TokenString& prefix, std::int32_t draft_len, ExactChance&)>;

// Explores every outcome of `steps` consecutive steps; caught where the distribution of the emitted string, completed
// by draws from the target, is not the target's. Cases are outcomes. Addresses of different steps differ
// (ExactChance::set_step) unless the step function makes them equal. Addresses used twice are no finding here: what
// they do to the distribution is.
// `expected` makes the distribution that must come out after a prefix from the target's there; null: the target's.
Finding find_wrong_distribution(const EnumerationHunt& hunt, const EnumeratedStep& step,
                                const decltype(ProofCase::output_distribution)& expected = nullptr);

// The expected number of accepted drafts of one step, by another way than enumeration (acceptance_oracles.hpp).
using AcceptanceOracle = Rational (*)(const Models&, const TokenString& prefix, std::int32_t depth);
// Compares it with the mean over every outcome of a step.
Finding find_wrong_mean_accepted(const EnumerationHunt& hunt, const EnumeratedStep& step, AcceptanceOracle oracle);

// The distribution of one token [V] by enumeration: `draw` is run over all outcomes and its distribution compared with
// `expected`.
Finding find_wrong_token_distribution(std::span<const Rational> expected,
                                      const std::function<Token(ExactChance&)>& draw);

// Compares the rate of an event with its probability, known exactly, after 32, 64, ... draws and stops at the first
// look whose exact binomial interval leaves the probability out, at a level that keeps all looks together below 1e-9.
// Cases are draws. `event` is how evidence names it: "tokens of the tail".
Finding find_wrong_rate(double probability, const std::function<bool(std::uint64_t draw)>& happens,
                        std::int64_t draws_max, const std::string& event);

}  // namespace draftproof
