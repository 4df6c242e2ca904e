#include "exactness/proof/prove.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <type_traits>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "exactness/proof/distribution_text.hpp"

namespace draftproof {
namespace {

// Runs a step; what it throws becomes a RuleError with the prefix.
template <class Step, class Pair, class Chance>
ProofStep run_step(const Step& step, const Pair& models, const TokenString& prefix, std::int32_t draft_len,
                   Chance& chance) {
  RuleFailure failure;
  try {
    return step(models, prefix, draft_len, chance);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const RuleError& error) {
    failure = error.failure();
  } catch (const std::exception& error) {
    failure.message = error.what();
  }
  failure.prefix = prefix;
  failure.in_floats = std::is_same_v<Pair, FloatModels>;
  throw RuleError(std::move(failure));
}

std::int32_t vocab_size_of(const ProofCase& proof_case, const ProofOptions& options) {
  return proof_case.draft_tokens == DraftTokens::half ? 2 * options.vocab_size : options.vocab_size;
}

// One instance: a pair of models, and the distributions of single steps after the prefixes that occur.
class Instance {
 public:
  Instance(const ProofCase& proof_case, const ProofOptions& options, std::int32_t draft_len, std::int32_t index)
      : case_(proof_case),
        options_(options),
        draft_len_(draft_len),
        models_(vocab_size_of(proof_case, options), derive_seed(options.seed, static_cast<std::uint64_t>(index)),
                kModelKinds[static_cast<std::size_t>(index) % kModelKinds.size()], proof_case.draft_tokens) {}

  const Models& models() const { return models_; }
  std::int64_t paths() const { return paths_; }

  // Steps are composed, not enumerated jointly: the addresses of different steps differ (the audit in step_distribution
  // and the step word see to that), so that a step's distribution depends on what was emitted before it and on nothing
  // else.
  StepDistribution distribution_of_step(const TokenString& prefix) {
    StepDistribution out = step_distribution(case_.step, models_, prefix, draft_len_);
    paths_ += out.paths;
    return out;
  }

  // The distribution of one step of the float code from the empty prefix.
  OutputDistribution float_distribution() {
    const FloatModels models(models_.vocab_size(), models_.seed(), models_.kind(), case_.draft_tokens);
    OutputDistribution distribution;
    GridChance chance(static_cast<std::size_t>(models_.vocab_size()));
    do {
      distribution[run_step(case_.step.floats, models, {}, draft_len_, chance).emitted] += chance.probability();
    } while (chance.next());
    return distribution;
  }

  OutputDistribution distribution_of_steps(const StepDistribution& first) {
    OutputDistribution distribution = first.distribution;
    for (std::int32_t step = 1; step < options_.steps; ++step)
      distribution =
          compose(distribution, [&](const TokenString& prefix) { return distribution_of_step(prefix).distribution; });
    return distribution;
  }

  TargetDistribution target() const {
    return [this](const TokenString& prefix) -> const DenseMasses<Rational>& {
      const DenseMasses<Rational>& p = models_.target(prefix);
      if (!case_.output_distribution) return p;
      return transformed_.try_emplace(prefix, case_.output_distribution(p, prefix)).first->second;
    };
  }

 private:
  const ProofCase& case_;
  const ProofOptions& options_;
  std::int32_t draft_len_;
  Models models_;
  mutable std::map<TokenString, DenseMasses<Rational>> transformed_;
  std::int64_t paths_ = 0;
};

struct InstanceResult {
  Rational mean_accepted;
  Rational total_variation;
  bool acceptance_holds = true;
  std::int64_t paths = 0;
  std::optional<Counterexample> counterexample;
  std::optional<Rational> float_distance;
};

void compare(const ProofCase& proof_case, std::int32_t draft_len, Instance& instance, InstanceResult& result) {
  const Models& models = instance.models();
  const StepDistribution first = instance.distribution_of_step({});
  result.mean_accepted = first.mean_accepted;
  for (const ProofCase::Oracle& oracle : proof_case.acceptance_oracles)
    result.acceptance_holds = result.acceptance_holds && oracle(models, {}, draft_len) == first.mean_accepted;
  if (proof_case.step.floats)
    result.float_distance = distance_between(instance.float_distribution(), first.distribution);
  const OutputDistribution distribution = instance.distribution_of_steps(first);
  if (const auto difference = first_difference(distribution, instance.target(), models.vocab_size())) {
    result.total_variation = total_variation(distribution, instance.target(), models.vocab_size());
    result.counterexample = Counterexample{
        models.seed(), models.kind(), instance.target()(difference->prefix), models.draft(difference->prefix),
        *difference,   std::nullopt};
  }
}

InstanceResult run_instance(const ProofCase& proof_case, const ProofOptions& options, std::int32_t draft_len,
                            std::int32_t index) {
  Instance instance(proof_case, options, draft_len, index);
  InstanceResult result;
  try {
    compare(proof_case, draft_len, instance, result);
  } catch (const RuleError& error) {
    const Models& models = instance.models();
    const RuleFailure& failure = error.failure();
    result.counterexample = Counterexample{
        models.seed(), models.kind(), models.target(failure.prefix), models.draft(failure.prefix), {}, failure};
  }
  result.paths = instance.paths();
  return result;
}

// Order of counterexamples to report: a rule that throws first, then the shorter prefix.
bool is_worse(const Counterexample& a, const Counterexample& b) {
  if (a.failure.has_value() != b.failure.has_value()) return a.failure.has_value();
  return a.prefix().size() < b.prefix().size();
}

}  // namespace

std::string Counterexample::sentence() const {
  const std::string where = "after " + text_of(prefix()) + " p = " + text_of(p) + ", q = " + text_of(q) + " (" +
                            std::string(name_of(kind)) + "): ";
  if (failure) {
    const DraftTree& draft = failure->draft;
    std::string judged = draft.empty() ? "" : " on the draft " + text_of(draft.tokens);
    if (!draft.is_chain()) judged += " with the parents " + text_of(draft.parents);
    return where + "the rule" + (failure->in_floats ? " in doubles" : "") + " throws '" + failure->message + "'" +
           judged;
  }
  TokenString string = difference.prefix;
  string.push_back(difference.token);
  return where + "string " + text_of(string) + " comes out with probability " + text_of(difference.emitted) +
         ", the target has " + text_of(difference.expected);
}

StepDistribution step_distribution(const ProofSteps& step, const Models& models, const TokenString& prefix,
                                   std::int32_t draft_len) {
  StepDistribution out;
  ExactChance chance;
  do {
    const ProofStep outcome = run_step(step.exact, models, prefix, draft_len, chance);
    if (chance.reused() > 0)
      throw Error(ErrorKind::internal, "prove", "a step used one address twice; every address may be used once");
    out.distribution[outcome.emitted] += chance.probability();
    out.mean_accepted += chance.probability() * outcome.accepted;
    ++out.paths;
  } while (chance.next());
  return out;
}

ProofResult prove(const ProofCase& proof_case, const ProofOptions& options, int threads,
                  const std::function<void()>& before_instance) {
  const auto start = std::chrono::steady_clock::now();
  ProofResult result;
  result.name = proof_case.name;
  result.source = proof_case.source;
  result.lossless = proof_case.lossless;
  result.receives_drawn_q = proof_case.receives_drawn_q;
  result.vocab_size = vocab_size_of(proof_case, options);
  result.instances = options.instances;
  const ProofDepths& limit = proof_case.draft_len_max;
  result.draft_len = std::min(options.draft_len, options.long_run ? limit.long_run : limit.usual);
  result.oracles = static_cast<std::int32_t>(proof_case.acceptance_oracles.size());
  std::vector<InstanceResult> instances(static_cast<std::size_t>(options.instances));
  parallel_for(options.instances, threads, [&](std::int64_t i, int) {
    if (before_instance) before_instance();
    instances[static_cast<std::size_t>(i)] =
        run_instance(proof_case, options, result.draft_len, static_cast<std::int32_t>(i));
  });
  for (const InstanceResult& instance : instances) {
    result.mean_accepted += instance.mean_accepted / options.instances;
    result.paths += instance.paths;
    result.acceptance_holds = result.acceptance_holds && instance.acceptance_holds;
    result.total_variation_max = std::max(result.total_variation_max, instance.total_variation);
    if (instance.float_distance)
      result.float_distance_max = std::max(result.float_distance_max.value_or(Rational(0)), *instance.float_distance);
    if (!instance.counterexample) continue;
    result.exact = false;
    if (!result.counterexample || is_worse(*instance.counterexample, *result.counterexample))
      result.counterexample = instance.counterexample;
  }
  result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace draftproof
