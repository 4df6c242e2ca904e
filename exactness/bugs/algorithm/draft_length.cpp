// B87 and B91: how many tokens of a drawn chain are verified depends on the values of tokens that may be cut.
#include "exactness/bugs/algorithm/draft_length.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "exactness/bugs/coupling/key_faults.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "reference/verify/block.hpp"

namespace draftproof {
namespace {

constexpr EnumerationHunt kTwoDrafts{.draft_len = 2};
// The best length is the same for every draft on most pairs of models.
constexpr EnumerationHunt kManyModels{.draft_len = 2, .instances = 70};
constexpr auto kExactChain = verify_chain<ExactRows, ExactRows, ExactChance>;
constexpr auto kExactBlock = verify_block<ExactRows, ExactRows, ExactChance>;

const ExactMasses& row_after(const Models& models, const TokenString& prefix, std::span<const Token> draft) {
  return models.draft(continued(prefix, draft));
}

Token drawn_token(const ExactMasses& q, const TokenString& draft, ExactChance& chance) {
  return chance.draw(q, static_cast<std::uint32_t>(draft.size()), Purpose::draft_sample);
}

// How sure the draft model is of a slot, as a confidence head says it: known when the drafts before the slot are.
Rational confidence_of(const ExactMasses& q) {
  return *std::ranges::max_element(q);
}

// The length of the most tokens a unit of time: 1 + c_1 + c_1 c_2 + ... over the cost, 1 without drafts and 9/5 with
// one or two, as of kernels that take both at one price.
std::size_t best_length(std::span<const Rational> confidences) {
  const Rational cost = Rational(9) / 5;
  std::size_t best = 0;
  Rational best_rate(1), expected(1), survival(1);
  for (std::size_t i = 0; i < confidences.size(); ++i) {
    survival *= confidences[i];
    expected += survival;
    const Rational rate = expected / cost;
    if (rate > best_rate) {
      best_rate = rate;
      best = i + 1;
    }
  }
  return best;
}

// The best length over the confidences of all slots, the later of which have read drafts that it may cut; or the one
// over what is known before the first draw, which takes later slots to be as sure as the first.
EnumeratedStep scheduled_chain_step(bool faulty, EnumeratedVerify verify) {
  return [faulty, verify = std::move(verify)](const Models& models, const TokenString& prefix, std::int32_t draft_len,
                                              ExactChance& chance) {
    const auto slots = static_cast<std::size_t>(draft_len);
    std::vector<Rational> confidences(slots, confidence_of(models.draft(prefix)));
    const std::size_t drawn = faulty ? slots : best_length(confidences);
    TokenString draft;
    while (draft.size() < drawn) {
      const ExactMasses& q = row_after(models, prefix, draft);
      confidences[draft.size()] = confidence_of(q);
      draft.push_back(drawn_token(q, draft, chance));
    }
    if (faulty) draft.resize(best_length(confidences));
    return judge_chain(models, prefix, draft, chance, verify);
  };
}

Hunt scheduler_hunt(EnumeratedVerify verify) {
  return {Detector::enumeration, [verify = std::move(verify)](bool faulty) {
            return find_wrong_distribution(kManyModels, scheduled_chain_step(faulty, verify));
          }};
}
Hunt p_min_hunt(EnumeratedVerify verify) {
  return {Detector::enumeration, [verify = std::move(verify)](bool faulty) {
            const ChainEnd end = faulty ? ChainEnd::before_the_token : ChainEnd::before_the_draw;
            return find_wrong_distribution(kTwoDrafts, ended_chain_step(end, verify));
          }};
}

// The tokens of a draft that is drawn from q [V] in every row that come before the first of a q below p_min, here half
// the largest of q.
std::size_t sure_tokens(std::span<const Token> draft, const std::vector<double>& q) {
  const double p_min = *std::ranges::max_element(q) / 2.0;
  const auto unsure = [&](Token token) { return q[static_cast<std::size_t>(token)] < p_min; };
  return static_cast<std::size_t>(std::ranges::find_if(draft, unsure) - draft.begin());
}

// The first token of one draft, or none.
LargeSampler cut_sampler(const FixedRowsPointer& rows) {
  return speculative_sampler(
      rows, sound_keys, {.verify = [](std::span<const Token> draft, const FixedRows& of_rows, FixedChance& chance) {
        return verify_fixed_chain(draft.first(sure_tokens(draft, of_rows.proposal.masses())), of_rows, chance);
      }});
}

}  // namespace

EnumeratedStep ended_chain_step(ChainEnd end, EnumeratedVerify verify) {
  return [end, verify = std::move(verify)](const Models& models, const TokenString& prefix, std::int32_t draft_len,
                                           ExactChance& chance) {
    const Rational p_min = Rational(2) / 5;
    TokenString draft;
    while (std::ssize(draft) < draft_len) {
      const ExactMasses& q = row_after(models, prefix, draft);
      if (end == ChainEnd::before_the_draw && confidence_of(q) < p_min) break;
      const Token token = drawn_token(q, draft, chance);
      const bool unsure = q[static_cast<std::size_t>(token)] < p_min;
      if (end == ChainEnd::before_the_token && unsure) break;
      draft.push_back(token);
      if (end == ChainEnd::behind_the_token && unsure) break;
    }
    return judge_chain(models, prefix, draft, chance, verify);
  };
}

std::vector<Bug> draft_length_bugs() {
  return {
      {.id = "B87",
       .source = "DSpark 2607.05147, appendix A; TensorRT-LLM #17056",
       .fault = "a scheduler takes the best draft length over the confidences of all slots, and the later ones have "
                "read drafts that it then cuts",
       .hunts = {scheduler_hunt(kExactChain), scheduler_hunt(kExactBlock)}},
      {.id = "B91",
       .source = "p_min of llama.cpp, with the drawn drafts of llama.cpp #27694",
       .fault = "a drawn draft is dropped, with all behind it, where its own q is below p_min",
       .hunts = {p_min_hunt(kExactChain), p_min_hunt(kExactBlock)},
       .rows_sampler = cut_sampler}};
}

}  // namespace draftproof
