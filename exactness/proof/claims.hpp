// Relations between verifiers and to theory, beside being exact: rules that must agree where one is a special case of
// the other, acceptances that must be ordered, and golden numbers that were worked out elsewhere. All are decided over
// fractions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exactness/proof/acceptance_oracles.hpp"

namespace draftproof {

enum class ClaimKind : std::uint8_t { equivalence, ordering, golden_number };
std::string name_of(ClaimKind kind);

struct Claim {
  ClaimKind kind;
  std::string text;
  // Refutation on these models, in words; nothing where the claim holds.
  std::function<std::optional<std::string>(const Models&)> refute;
  // Models of the kind that the claim speaks of; golden numbers have models of their own and are asked once.
  std::vector<ModelKind> model_kinds;
};

struct ClaimResult {
  ClaimKind kind;
  std::string text;
  std::int32_t instances = 0;
  std::optional<std::string> refutation;  // of the first instance that refutes it
};

// Counts of one kind of claims.
struct ClaimTally {
  ClaimKind kind;
  std::int64_t total = 0;
  std::int64_t hold = 0;

  std::string sentence() const;  // "equivalences: 12 of 12 hold"
};
std::vector<ClaimTally> tally_of(const std::vector<ClaimResult>& results);

const std::vector<Claim>& claims();

inline constexpr std::int32_t kClaimInstancesMax = 5;  // that `prove` takes of each kind of models

// On `instances` random pairs of models of each kind that a claim speaks of.
ClaimResult check(const Claim& claim, std::int32_t vocab_size, std::int32_t instances, std::uint64_t seed);

}  // namespace draftproof
