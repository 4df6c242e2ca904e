// Proof by enumeration: the code of a verifier is run over every outcome on small random models, and the distribution
// of what it emits over several consecutive steps is compared with the target's as fractions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "exactness/model_pair.hpp"
#include "exactness/proof/acceptance_oracles.hpp"
#include "exactness/proof/grid_chance.hpp"
#include "exactness/proof/output_distribution.hpp"
#include "reference/step/verifiers.hpp"
#include "reference/verify/draft_tree.hpp"
#include "reference/verify/enumerating_chance.hpp"

namespace draftproof {

using ExactChance = EnumeratingChance<Rational>;

// Outcome of one step: the tokens it emitted, and how many of them were accepted drafts.
struct ProofStep {
  TokenString emitted;
  std::int32_t accepted = 0;
};

// One step over exact fractions, and the same code over the doubles of production.
using FloatModels = ModelPair<double>;
struct ProofSteps {
  // Drafts up to `draft_len` tokens deep after `prefix` and verifies them.
  template <class Pair, class Chance>
  using Step = std::function<ProofStep(const Pair&, const TokenString& prefix, std::int32_t draft_len, Chance&)>;

  Step<Models, ExactChance> exact;
  Step<FloatModels, GridChance> floats;  // null where the grid of u cannot be integrated

  ProofSteps() = default;
  template <class Generic>
  ProofSteps(Generic step) : exact(step), floats(step) {}  // NOLINT(google-explicit-constructor): a case is a list
};

// A step over fractions alone: one that races, since no uniform number decides a race.
template <class Generic>
ProofSteps exact_only(Generic step) {
  ProofSteps steps;
  steps.exact = step;
  return steps;
}

// A step that threw: the rule under proof has no distribution there.
struct RuleFailure {
  std::string message;
  TokenString prefix;      // before the step
  DraftTree draft;         // that was judged; empty where drafting itself threw
  bool in_floats = false;  // in the code over doubles; that over fractions did not throw
};
class RuleError final : public Error {
 public:
  explicit RuleError(RuleFailure failure)
      : Error(ErrorKind::internal, "prove", "the rule under proof threw: " + failure.message),
        failure_(std::move(failure)) {}
  const RuleFailure& failure() const { return failure_; }

 private:
  RuleFailure failure_;
};

// Distribution of what one step emits after a prefix, by enumeration. Errors: an address was used twice (internal);
// RuleError where the step throws.
struct StepDistribution {
  OutputDistribution distribution;
  Rational mean_accepted;
  std::int64_t paths = 0;  // outcomes enumerated
};
StepDistribution step_distribution(const ProofSteps& step, const Models& models, const TokenString& prefix,
                                   std::int32_t draft_len);

// How deep drafts are taken, usually and in a long run: the outcomes of bushy trees multiply.
struct ProofDepths {
  std::int32_t usual = 8;
  std::int32_t long_run = 8;
};

// A verifier together with the way its drafts are made.
struct ProofCase {
  std::string name;
  Verifier verifier;  // of the registry: whose template the step runs
  bool lossless;
  std::string source;  // paper and section
  ProofSteps step;
  // Expected number of accepted drafts of one step, computed without the verifier; where known, two ways.
  using Oracle = std::function<Rational(const Models&, const TokenString& prefix, std::int32_t draft_len)>;
  std::vector<Oracle> acceptance_oracles = {};
  ProofDepths draft_len_max = {};
  // The distribution that must come out after a prefix, made from the target's there; null: the target's.
  std::function<DenseMasses<Rational>(const DenseMasses<Rational>& target, const TokenString& prefix)>
      output_distribution = nullptr;
  // Half: the target has twice as many tokens as the options say, and that many can be drafted.
  DraftTokens draft_tokens = DraftTokens::all;
  // The verifier receives the distribution that drafts are drawn from. False: another one, so that the output is biased
  // whatever the verifier guarantees; such a case is not lossless.
  bool receives_drawn_q = true;
};

struct ProofOptions {
  std::int32_t vocab_size = 3;
  std::int32_t draft_len = 3;
  std::int32_t steps = 2;
  std::int32_t instances = 20;
  std::uint64_t seed = 0;
  bool long_run = false;  // to ProofDepths::long_run
};

struct Counterexample {
  std::uint64_t seed = 0;
  ModelKind kind = ModelKind::dense;
  DenseMasses<Rational> p, q;  // after the prefix
  DistributionDifference difference;
  std::optional<RuleFailure> failure;  // instead of the difference

  const TokenString& prefix() const { return failure ? failure->prefix : difference.prefix; }
  std::string sentence() const;
};

// Doubles differ from fractions by some roundings of 2^-53 a decision; anything above this is another distribution.
inline const Rational kFloatDistanceMax = Rational(1) / (std::int64_t{1} << 46);

struct ProofResult {
  std::string name;
  std::string source;  // paper and section
  bool lossless = true;
  bool receives_drawn_q = true;
  bool exact = true;             // the distribution held in every instance
  bool acceptance_holds = true;  // every oracle agreed in every instance
  std::int32_t oracles = 0;
  std::int32_t instances = 0;
  std::int64_t paths = 0;       // outcomes enumerated
  std::int32_t vocab_size = 0;  // V of the target
  std::int32_t draft_len = 0;
  Rational mean_accepted;        // over the instances, first step
  Rational total_variation_max;  // of the joint distribution over all steps; 0 when exact, or where the rule threw
  std::optional<Counterexample> counterexample;
  // Greatest total-variation distance of what one step of the float code emits, integrated over the grid of u, from
  // what the same step emits over fractions. None where floats were not integrated.
  std::optional<Rational> float_distance_max;
  double milliseconds = 0.0;

  // "lossless", "lossy", or "biased" where drafts are drawn from another distribution than the verifier receives.
  std::string_view claim() const { return lossless ? "lossless" : receives_drawn_q ? "lossy" : "biased"; }
  bool floats_hold() const { return !float_distance_max || *float_distance_max < kFloatDistanceMax; }
  // A lossless verifier must be exact in every instance, with the acceptance its oracles give; a lossy one, or one that
  // receives another distribution than drafts are drawn from, must be refuted; the float code has the distribution of
  // the fractions; and no rule throws.
  bool as_claimed() const {
    if (!floats_hold() || (counterexample && counterexample->failure)) return false;
    return lossless ? exact && acceptance_holds : !exact;
  }
};

// `before_instance` is called before each pair of models, from any thread; what it throws ends the proof. A
// step that throws refutes the rule. Errors (internal): an address was used twice; steps that share one could depend on
// each other.
ProofResult prove(const ProofCase& proof_case, const ProofOptions& options, int threads,
                  const std::function<void()>& before_instance = {});

// Cases of all verifiers of the registry, lossless first: a test holds that each has one, and claims what it claims.
const std::vector<ProofCase>& proof_cases();

}  // namespace draftproof
