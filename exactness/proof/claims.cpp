#include "exactness/proof/claims.hpp"

#include <array>

#include "exactness/proof/distribution_text.hpp"
#include "exactness/proof/published_rules.hpp"
#include "exactness/proof/steps.hpp"
#include "reference/verify/optimal_transport.hpp"

namespace draftproof {
namespace {

using namespace proof_steps;

const std::vector<ModelKind> kEveryKind(kModelKinds.begin(), kModelKinds.end());

Rational accepted(const ProofSteps& step, const Models& models, std::int32_t draft_len) {
  return step_distribution(step, models, {}, draft_len).mean_accepted;
}

// One sibling is a chain; merged paths are a chain when there is one of them.
const ProofSteps kChain = chain_step(chain);
const ProofSteps kBlock = chain_step(block);

Claim same_distribution(std::string text, ProofSteps a, ProofSteps b, std::int32_t draft_len,
                        std::vector<ModelKind> kinds = kEveryKind) {
  return {ClaimKind::equivalence, std::move(text),
          [a = std::move(a), b = std::move(b), draft_len](const Models& models) -> std::optional<std::string> {
            const OutputDistribution first = step_distribution(a, models, {}, draft_len).distribution;
            const OutputDistribution second = step_distribution(b, models, {}, draft_len).distribution;
            const Rational distance = distance_between(first, second);
            if (distance == 0) return std::nullopt;
            return "their distributions are " + text_of(distance) + " apart";
          },
          std::move(kinds)};
}

using Acceptances = std::function<std::vector<Rational>(const Models&)>;
Claim rising(std::string text, Acceptances acceptances, std::vector<ModelKind> kinds = kEveryKind) {
  return {ClaimKind::ordering, std::move(text),
          [acceptances = std::move(acceptances)](const Models& models) -> std::optional<std::string> {
            const std::vector<Rational> values = acceptances(models);
            if (std::is_sorted(values.begin(), values.end())) return std::nullopt;
            return "the values are " + text_of(values);
          },
          std::move(kinds)};
}

// sum over l of sum_x min(p(x^l), q(x^l)): the joint minimum, which no verifier of one path exceeds.
Rational joint_minimum(const Models& models, const TokenString& path, std::int32_t depth, const Rational& p_path,
                       const Rational& q_path) {
  if (depth == 0) return 0;
  const Masses<Rational>& p = models.target(path);
  const Masses<Rational>& q = models.draft(path);
  Rational sum(0);
  for (std::size_t x = 0; x < p.size(); ++x) {
    const Rational p_next = p_path * p[x];
    const Rational q_next = q_path * q[x];
    if (p_next == 0 || q_next == 0) continue;
    TokenString next = path;
    next.push_back(static_cast<Token>(x));
    sum += std::min(p_next, q_next) + joint_minimum(models, next, depth - 1, p_next, q_next);
  }
  return sum;
}

Rational bound_with_replacement(const Models& models, std::size_t k) {
  return optimal_acceptance_with_replacement(models.target({}), models.draft({}), k);
}
Rational bound_without_replacement(const Models& models, std::size_t k) {
  return optimal_acceptance_without_replacement(models.target({}), models.draft({}), k);
}

const auto kept_paths = [](const auto& distribution, std::int32_t depth, auto& chance) {
  return draw_merged_paths(distribution, 2, depth, chance, Duplicates::kept);
};

Models golden_models() {
  const Rational tenth = Rational(1) / 10;
  return {{5 * tenth, 3 * tenth, 2 * tenth}, {2 * tenth, 3 * tenth, 5 * tenth}};
}
Models toy_models() {
  const Rational third = Rational(1) / 3;
  return {{third, 2 * third}, {2 * third, third}};
}

Claim golden(std::string text, const Rational& expected, std::function<Rational()> value) {
  return {ClaimKind::golden_number,
          std::move(text) + " is " + text_of(expected),
          [expected, value = std::move(value)](const Models&) -> std::optional<std::string> {
            const Rational found = value();
            if (found == expected) return std::nullopt;
            return "it is " + text_of(found);
          },
          {}};
}
Claim golden_acceptance(const std::string& name, ProofSteps step, std::int32_t draft_len, const Rational& expected) {
  return golden("acceptance of " + name, expected,
                [step = std::move(step), draft_len] { return accepted(step, golden_models(), draft_len); });
}

Rational over(std::int64_t numerator, std::int64_t denominator) {
  return Rational(numerator) / Rational(denominator);
}

void add_equivalences(std::vector<Claim>& out) {
  out.push_back(same_distribution("block verification of one draft is the chain rule", kBlock, kChain, 1));
  out.push_back(same_distribution("block verification of one-hot drafts is the chain rule", kBlock, kChain, 3,
                                  {ModelKind::one_hot_draft}));
  out.push_back(same_distribution("block verification of a greedy target is the chain rule", kBlock, kChain, 3,
                                  {ModelKind::one_hot_target}));
  out.push_back(same_distribution("traversal of a chain is block verification",
                                  tree_step(without_replacement(1), traversal), kBlock, 2));
  out.push_back(same_distribution("greedy multi-path of one path is block verification",
                                  tree_step(merged_paths(1), greedy_multipath(1)), kBlock, 2));
  out.push_back(same_distribution("SpecTr-GBV's code of one draft is the chain rule",
                                  tree_step(merged_paths(1), spectr_gbv(1)), kChain, 1));
  out.push_back(
      same_distribution("RRS of one sibling is the chain rule", growing_step(iid_children(1), rrs), kChain, 2));
  out.push_back(
      same_distribution("RRSw of one sibling is the chain rule", growing_step(distinct_children(1), rrsw), kChain, 2));
  out.push_back(
      same_distribution("k-SEQ of one sibling is the chain rule", growing_step(iid_children(1), k_seq), kChain, 2));
  out.push_back(same_distribution("verification of one greedy draft is the chain rule",
                                  growing_step(greedy_children(1), greedy_draft), kChain, 2));
  out.push_back(same_distribution("naive sampling of one fixed sibling is the chain rule with a one-hot proposal",
                                  growing_step(top_children(1), naive), one_hot_step, 2));
  out.push_back(same_distribution("target-only at thresholds 1 emits as naive sampling does",
                                  growing_step(distinct_children(2), target_only),
                                  growing_step(distinct_children(2), naive), 2));
  out.push_back(same_distribution("hierarchical verification as published is block verification",
                                  chain_step([](auto&&... a) { return verify_hierarchical(a...); }), kBlock, 3));
  out.push_back(same_distribution(
      "SpecHub as published is verification of two greedy drafts",
      growing_step([](auto&&... a) { add_hub_children(a...); }, [](auto&&... a) { return accept_sibling_hub(a...); }),
      growing_step(greedy_children(2), greedy_draft), 2));
  out.push_back(same_distribution("sampler match of one-hot drafts is the chain rule", sampler_match_step, kChain, 2,
                                  {ModelKind::one_hot_draft}));
}

void add_orderings(std::vector<Claim>& out) {
  out.push_back(rising("chain <= block <= joint minimum, K = 3", [](const Models& models) {
    return std::vector<Rational>{accepted(kChain, models, 3), accepted(kBlock, models, 3),
                                 joint_minimum(models, {}, 3, 1, 1)};
  }));
  out.push_back(rising(
      "naive sampling <= RRS <= optimal transport i.i.d. <= without replacement, k = 2", [](const Models& models) {
        return std::vector<Rational>{accepted(growing_step(iid_children(2), naive), models, 1),
                                     accepted(growing_step(iid_children(2), rrs), models, 1),
                                     bound_with_replacement(models, 2), bound_without_replacement(models, 2)};
      }));
  out.push_back(rising("RRSw <= optimal transport without replacement, k = 2", [](const Models& models) {
    return std::vector<Rational>{accepted(growing_step(distinct_children(2), rrsw), models, 1),
                                 bound_without_replacement(models, 2)};
  }));
  out.push_back(
      rising("3/4 of optimal transport <= k-SEQ with rho* <= optimal transport, k = 2", [](const Models& models) {
        const Rational bound = bound_with_replacement(models, 2);
        return std::vector<Rational>{Rational(bound * 3 / 4), accepted(growing_step(iid_children(2), k_seq), models, 1),
                                     bound};
      }));
  out.push_back(
      rising("importance-weighted selection accepts more the more tokens are weighed, k = 2", [](const Models& models) {
        const auto weighed = [&](std::size_t tokens) {
          const auto rule = [tokens](auto&&... a) { return accept_sibling_importance(a..., tokens); };
          return accepted(growing_step(iid_children(2), rule), models, 1);
        };
        return std::vector<Rational>{weighed(0), weighed(2), weighed(3)};
      }));
  out.push_back(rising("RRSw <= traversal on trees without replacement, k = 2", [](const Models& models) {
    return std::vector<Rational>{accepted(growing_step(distinct_children(2), rrsw), models, 2),
                                 accepted(tree_step(without_replacement(2), traversal), models, 2)};
  }));
  out.push_back(rising("RRSw over the whole vocabulary accepts for certain",
                       [](const Models& models) {
                         return std::vector<Rational>{
                             Rational(2),
                             accepted(growing_step(distinct_children(models.vocab_size()), rrsw), models, 2)};
                       },
                       {ModelKind::dense, ModelKind::equal, ModelKind::ties}));
}

void add_golden_siblings(std::vector<Claim>& out) {
  const std::vector<Rational> rrs_values{over(7, 10), over(19, 25), over(101, 125)};
  const std::vector<Rational> rrsw_values{over(7, 10), over(41, 50), 1};
  const std::vector<Rational> k_seq_values{over(7, 10), over(18657, 24200), over(226787, 270000)};
  const std::vector<Rational> naive_values{over(29, 100), over(483, 1000), over(6161, 10000)};
  const std::vector<Rational> top_values{over(1, 5), over(1, 2), 1};
  const std::vector<Rational> iid_bounds{over(7, 10), over(43, 50), over(247, 250)};
  const std::vector<Rational> distinct_bounds{over(7, 10), over(69, 70), 1};
  for (std::int32_t k = 1; k <= 3; ++k) {
    const auto i = static_cast<std::size_t>(k - 1);
    const std::string of_k = ", k = " + std::to_string(k);
    out.push_back(golden_acceptance("RRS" + of_k, growing_step(iid_children(k), rrs), 1, rrs_values[i]));
    out.push_back(golden_acceptance("RRSw" + of_k, growing_step(distinct_children(k), rrsw), 1, rrsw_values[i]));
    out.push_back(golden_acceptance("importance-weighted selection" + of_k, growing_step(iid_children(k), importance),
                                    1, iid_bounds[i]));
    out.push_back(golden_acceptance("k-SEQ, rho = k" + of_k, growing_step(iid_children(k), k_seq_with_rho_k), 1,
                                    k_seq_values[i]));
    out.push_back(golden_acceptance("naive sampling" + of_k, growing_step(iid_children(k), naive), 1, naive_values[i]));
    out.push_back(golden_acceptance("target-only on the top k of q" + of_k, growing_step(top_children(k), target_only),
                                    1, top_values[i]));
    out.push_back(golden("the transport bound i.i.d." + of_k, iid_bounds[i],
                         [k] { return bound_with_replacement(golden_models(), static_cast<std::size_t>(k)); }));
    out.push_back(golden("the transport bound without replacement" + of_k, distinct_bounds[i],
                         [k] { return bound_without_replacement(golden_models(), static_cast<std::size_t>(k)); }));
  }
  out.push_back(
      golden_acceptance("greedy draft, k = 2", growing_step(greedy_children(2), greedy_draft), 1, over(9, 10)));
  out.push_back(golden_acceptance("shared noise, K = 1", exact_only(coupled_step), 1, over(41, 65)));
}

void add_golden_paths(std::vector<Claim>& out) {
  out.push_back(golden("acceptance of chain on the toy models, K = 2", over(10, 9),
                       [] { return accepted(kChain, toy_models(), 2); }));
  out.push_back(golden("acceptance of block on the toy models, K = 2", over(11, 9),
                       [] { return accepted(kBlock, toy_models(), 2); }));
  out.push_back(golden("the joint minimum of the toy models, K = 2", over(12, 9),
                       [] { return joint_minimum(toy_models(), {}, 2, 1, 1); }));
  out.push_back(golden("acceptance of SpecTr-GBV's code of one path on the toy models, K = 2", over(12, 9),
                       [] { return accepted(tree_step(merged_paths(1), spectr_gbv(1)), toy_models(), 2); }));
  out.push_back(golden_acceptance("chain, K = 2", kChain, 2, over(119, 100)));
  out.push_back(golden_acceptance("block, K = 2", kBlock, 2, over(5, 4)));
  out.push_back(golden_acceptance("chain, K = 3", kChain, 3, over(1533, 1000)));
  out.push_back(golden_acceptance("block, K = 3", kBlock, 3, over(339, 200)));
  out.push_back(
      golden_acceptance("RRS on two i.i.d. paths, L = 2", tree_step(kept_paths, top_down(rrs)), 2, over(6529, 5000)));
  out.push_back(
      golden_acceptance("RRSw on a binary tree, L = 2", growing_step(distinct_children(2), rrsw), 2, over(3731, 2500)));
  out.push_back(golden_acceptance("traversal on two i.i.d. paths, L = 2", tree_step(merged_paths(2), traversal), 2,
                                  over(6799, 5000)));
  out.push_back(golden_acceptance("traversal on a binary tree, L = 2", tree_step(without_replacement(2), traversal), 2,
                                  over(3821, 2500)));
  out.push_back(golden_acceptance("greedy multi-path on two paths, L = 2",
                                  tree_step(merged_paths(2), greedy_multipath(2)), 2, over(3877, 2500)));
}

}  // namespace

std::string name_of(ClaimKind kind) {
  constexpr std::array kNames{"equivalence", "ordering", "golden number"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string ClaimTally::sentence() const {
  return name_of(kind) + "s: " + std::to_string(hold) + " of " + std::to_string(total) + " hold";
}

std::vector<ClaimTally> tally_of(const std::vector<ClaimResult>& results) {
  std::vector<ClaimTally> tallies;
  for (const ClaimKind kind : {ClaimKind::equivalence, ClaimKind::ordering, ClaimKind::golden_number}) {
    ClaimTally& tally = tallies.emplace_back(ClaimTally{kind});
    for (const ClaimResult& result : results) {
      if (result.kind != kind) continue;
      ++tally.total;
      tally.hold += result.refutation ? 0 : 1;
    }
  }
  return tallies;
}

const std::vector<Claim>& claims() {
  static const std::vector<Claim> all = [] {
    std::vector<Claim> out;
    add_equivalences(out);
    add_orderings(out);
    add_golden_siblings(out);
    add_golden_paths(out);
    return out;
  }();
  return all;
}

namespace {

// Refutation of the claim on these models; a rule that throws is one.
std::optional<std::string> refutation_of(const Claim& claim, const Models& models) {
  try {
    return claim.refute(models);
  } catch (const RuleError& error) {
    return "a rule throws '" + error.failure().message + "'";
  }
}

}  // namespace

ClaimResult check(const Claim& claim, std::int32_t vocab_size, std::int32_t instances, std::uint64_t seed) {
  ClaimResult result{claim.kind, claim.text, 0, std::nullopt};
  if (claim.model_kinds.empty()) {
    result.instances = 1;
    result.refutation = refutation_of(claim, golden_models());
    return result;
  }
  for (const ModelKind kind : claim.model_kinds) {
    for (std::int32_t i = 0; i < instances; ++i) {
      const Models models(vocab_size, derive_seed(seed, static_cast<std::uint64_t>(i)), kind);
      ++result.instances;
      result.refutation = refutation_of(claim, models);
      if (result.refutation) {
        *result.refutation += " on models " + std::string(name_of(kind)) + ", seed " + std::to_string(models.seed());
        return result;
      }
    }
  }
  return result;
}

}  // namespace draftproof
