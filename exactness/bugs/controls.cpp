// Sound code that looks like a bug. A lab that accuses it is wrong.
#include <type_traits>
#include <utility>

#include "exactness/bugs/algorithm/draft_length.hpp"
#include "exactness/bugs/coupling/key_faults.hpp"
#include "exactness/bugs/grammar/forbidden_drafts.hpp"
#include "exactness/proof/acceptance_oracles.hpp"
#include "exactness/proof/head_steps.hpp"
#include "reference/verify/block.hpp"

namespace draftproof {
namespace {

constexpr EnumerationHunt kTwoSteps{.vocab_size = 2, .draft_len = 2, .steps = 2};
constexpr EnumerationHunt kOneStep{.vocab_size = 3, .draft_len = 2};

// The draft distribution is not known to the verifier: every draft counts as certain.
constexpr auto kVerifyOneHot = [](std::span<const Token> draft, auto& target, auto& proposal, auto& chance) {
  using Masses = std::remove_cvref_t<decltype(proposal.rows[0])>;
  using Number = typename Masses::value_type;
  std::remove_cvref_t<decltype(proposal)> certain;
  for (std::size_t row = 0; row < draft.size(); ++row) {
    Masses masses(proposal.rows[row].size(), Number(0));
    masses[static_cast<std::size_t>(draft[row])] = Number(1);
    certain.rows.push_back(std::move(masses));
  }
  return verify_chain(draft, target, certain, chance);
};

// Only the first rejection of a step draws a residual, so one noise vector serves all positions.
RandomKey one_residual_row(RandomKey key) {
  if (key.address.purpose == Purpose::residual) key.address.row = 0;
  return key;
}

// Drafts from a table, as prompt lookup makes them: no distribution, and no look at the coins.
ProofStep looked_up_step(const Models& models, const TokenString& prefix, std::int32_t draft_len, ExactChance& chance) {
  TokenString draft;
  for (std::int32_t row = 0; row < draft_len; ++row)
    draft.push_back((static_cast<Token>(prefix.size()) + row) % models.vocab_size());
  return judge_chain(models, prefix, draft, chance, kVerifyOneHot);
}

// A drawn chain that ends for what it has drawn.
Hunt ended_hunt(ChainEnd end, const EnumeratedVerify& verify) {
  return {Detector::enumeration,
          [=](bool) { return find_wrong_distribution(kOneStep, ended_chain_step(end, verify)); }};
}

// EAGLE-2's rerank over a drawn tree.
Finding find_reranked_without_q(bool) {
  using namespace proof_steps;
  const auto draw = [](const auto& distribution, std::int32_t depth, auto& chance) {
    return reranked(without_replacement(2)(distribution, depth, chance), distribution, 3);
  };
  return find_wrong_distribution(kOneStep, tree_step(draw, top_down(target_only)));
}

template <class Verify>
Hunt acceptance_hunt(AcceptanceOracle oracle, Verify verify) {
  const auto step = [verify](const Models& models, const TokenString& prefix, std::int32_t draft_len,
                             ExactChance& chance) {
    return speculate_chain(models, prefix, draft_len, chance, verify);
  };
  return {Detector::acceptance, [=](bool) { return find_wrong_mean_accepted(kOneStep, step, oracle); }};
}

}  // namespace

std::vector<Control> bug_controls() {
  return {{.id = "B33",
           .source = "vllm #40149, fixed in #40269",
           .fault = "draft probabilities are never passed: every draft counts as certain, fewer are accepted",
           .hunts = {distribution_hunt(kTwoSteps, sound_keys, Sampler::inverse, kVerifyOneHot),
                     {Detector::enumeration,
                      [](bool) {
                        return find_wrong_distribution(
                            {.vocab_size = 6, .draft_len = 2, .draft_tokens = DraftTokens::half},
                            proof_steps::half_vocabulary_chain_step(kVerifyOneHot));
                      }},
                     key_audit_hunt(sound_keys, Sampler::inverse, kVerifyOneHot),
                     acceptance_hunt(match_path_sum, kVerifyOneHot)}},
          {.id = "C01",
           .source = "Miao et al. 2305.09781, naive sampling",
           .fault = "the draft is accepted while the target's own sample equals it, without any ratio",
           .hunts = {distribution_hunt(kTwoSteps, sound_keys, Sampler::inverse, kVerifyMatch),
                     key_audit_hunt(sound_keys, Sampler::inverse, kVerifyMatch),
                     acceptance_hunt(match_path_sum, kVerifyMatch)}},
          {.id = "C02",
           .source = "prompt lookup, argmax drafts",
           .fault = "drafts come from no distribution at all and are judged by a one-hot proposal",
           .hunts = {{Detector::enumeration, [](bool) { return find_wrong_distribution(kTwoSteps, looked_up_step); }}}},
          {.id = "C03",
           .source = "vLLM V1",
           .fault = "one noise vector serves the residuals of all positions of a request's step",
           .hunts = {distribution_hunt(kOneStep, one_residual_row, Sampler::race, kVerifyChain),
                     distribution_hunt(kTwoSteps, one_residual_row, Sampler::race, kVerifyChain),
                     key_audit_hunt(one_residual_row, Sampler::race, kVerifyChain)}},
          {.id = "C04",
           .source = "vLLM, token-wise verification",
           .fault =
               "coins are keyed by position alone, which couples steps of block verification (B04) but not of this one",
           .hunts = {distribution_hunt(kTwoSteps, coin_by_position, Sampler::inverse, kVerifyChain),
                     key_audit_hunt(coin_by_position, Sampler::inverse, kVerifyChain)}},
          {.id = "C05",
           .source = "draft lengths by the confidence in what was drafted",
           .fault = "a drawn chain ends behind a token whose own q is below p_min; unlike in B91 the token stays",
           .hunts = {ended_hunt(ChainEnd::behind_the_token, kVerifyChain),
                     ended_hunt(ChainEnd::behind_the_token, verify_block<ExactRows, ExactRows, ExactChance>)}},
          {.id = "C06",
           .source = "llama.cpp, p_min",
           .fault = "drafts are cut where their own q is below p_min, as in B91, and those that stay count as certain",
           .hunts = {ended_hunt(ChainEnd::before_the_token, kVerifyOneHot)}},
          {.id = "C07",
           .source = "SGLang's tree kernel at thresholds 1",
           .fault = "of a drawn tree the nodes of the highest q are kept, as in B88, and judged without a q",
           .hunts = {{Detector::enumeration, find_reranked_without_q}}},
          {.id = "C08",
           .source = "vLLM, drafts without probabilities",
           .fault = "drafts that the grammar forbids are cut off, as in B102, and those that stay count as certain",
           .hunts = {{Detector::enumeration,
                      [](bool) { return find_forbidden_drafts(ForbiddenDrafts::cut, TakenFor::certain); }}}},
          {.id = "C09",
           .source = "llama.cpp without filters",
           .fault = "a token is drawn without the mask, and again with it where it is forbidden, as in B98",
           .hunts = {{Detector::enumeration, find_wrong_checked_draw}}}};
}

}  // namespace draftproof
