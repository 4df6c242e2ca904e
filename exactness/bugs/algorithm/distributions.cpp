// B27, B28, B30, B34, B86 and B104: the verifier is right, and a distribution it is given is not the one that was drawn
// from or asked for.
#include <algorithm>
#include <utility>

#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/engine_numbers.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "exactness/proof/steps.hpp"
#include "reference/logits/guidance.hpp"
#include "reference/sampling/logits_distribution.hpp"
#include "reference/verify/sampled_tree.hpp"

namespace draftproof {
namespace {

template <class Number>
DenseMasses<Number> only(const DenseMasses<Number>& masses, std::span<const Token> kept) {
  DenseMasses<Number> out(masses.size(), Number(0));
  for (const Token token : kept) out[static_cast<std::size_t>(token)] = masses[static_cast<std::size_t>(token)];
  return normalised(std::move(out));
}

template <class Number>
DenseMasses<Number> top_k_distribution(const DenseMasses<Number>& masses, std::size_t k) {
  return only(masses, most_probable_tokens(masses, k));
}

// The most probable tokens until their mass is `share` or more.
template <class Number>
DenseMasses<Number> top_p_distribution(const DenseMasses<Number>& masses, const Number& share) {
  std::vector<Token> tokens = most_probable_tokens(masses, masses.size());
  Number sum(0);
  std::size_t kept = 0;
  while (kept < tokens.size() && sum < share) sum += masses[static_cast<std::size_t>(tokens[kept++])];
  tokens.resize(kept);
  return only(masses, tokens);
}

// The softmax at half the temperature.
template <class Number>
DenseMasses<Number> cooled(DenseMasses<Number> masses) {
  for (Number& x : masses) x *= x;
  return normalised(std::move(masses));
}

// A softmax that was written as bfloat16. Sampling divides by the sum of what it was given. In units of 2^-40 the
// rounded probabilities of tiny vocabularies are integers.
ExactMasses bfloat16_distribution(const ExactMasses& masses) {
  ExactMasses out;
  for (const Rational& x : masses) {
    const double rounded = to_bfloat16(static_cast<double>(x));
    out.push_back(Rational(static_cast<std::int64_t>(rounded * 0x1p40)) / Rational(std::int64_t{1} << 40));
  }
  return normalised(std::move(out));
}

// E: a step whose drafts come from `drafted` while the verifier receives q, and one that drafts from q.
Hunt other_drafts_hunt(DistributionOf drafted) {
  return {Detector::enumeration, [drafted = std::move(drafted)](bool faulty) {
            return find_wrong_distribution(
                {.draft_len = 2},
                chain_step_with(faulty ? StepDistributions{.drafted = drafted} : StepDistributions{}));
          }};
}

RowsSampler sampler_with_drafts(std::vector<double> (*drafted)(const std::vector<double>& q)) {
  return sampler_with([drafted](OneDraft& draft) { draft.drafted = drafted(draft.proposal); });
}

constexpr int kTopK = 2;  // of the three tokens of an enumeration
constexpr std::size_t kLargeTopK = 50;

// E: p = (.6, .4) becomes (.75, .25), as was reported, with q = (.8, .2).
Finding find_argmax_drafts(bool faulty) {
  const ExactMasses p{Rational(3) / 5, Rational(2) / 5};
  const ExactMasses q{Rational(4) / 5, Rational(1) / 5};
  return find_wrong_token_distribution(p, [&](ExactChance& chance) {
    ExactRows target{{p, p}};
    ExactRows proposal{{q}};
    return verify_one_draft(faulty ? top_k_distribution(q, 1) : q, target, proposal, chance);
  });
}

// E: two children of every node, judged by RRSw: the most probable ones, or draws without replacement.
Finding find_argmax_children(bool faulty) {
  using namespace proof_steps;
  return faulty ? find_wrong_distribution({.draft_len = 2}, growing_step(top_children(2), rrsw))
                : find_wrong_distribution({.draft_len = 2}, growing_step(distinct_children(2), rrsw));
}

// E: the request asks for top_p = 4/5. Drafts honour it; the target row does too, or is scored without it.
Finding find_unfiltered_target(bool faulty) {
  const Rational share = Rational(4) / 5;
  const ExactMasses asked_for = top_p_distribution(plain_target(), share);
  return find_wrong_token_distribution(asked_for, [&](ExactChance& chance) {
    ExactRows target{{faulty ? plain_target() : asked_for, asked_for}};
    ExactRows proposal{{top_p_distribution(plain_draft(), share)}};
    return verify_one_draft(proposal.masses(0), target, proposal, chance);
  });
}

void leave_target_unfiltered(OneDraft& draft) {
  constexpr double kShare = 0.9;
  draft.requested = top_p_distribution(draft.requested, kShare);
  draft.drafted = draft.proposal = top_p_distribution(draft.proposal, kShare);
  draft.residual = positive_difference(draft.target, draft.proposal);
}

// Guidance at scale 2. Of logits, the exact one, a token that the condition forbids stays forbidden. Of probabilities
// each token that both rows forbid gets the weight e = 1e-10, of a total of the sum of c^2 / u: with m of them the
// distance is about m e over that total.
ExactMasses guided(GuidanceForm form) {
  std::vector<float> row, unconditional;  // a token that both rows forbid, and one that the condition alone does
  for (const float p : {0.6f, 0.4f, 0.0f, 0.0f}) row.push_back(log_f32(p));
  for (const float p : {0.2f, 0.4f, 0.0f, 0.4f}) unconditional.push_back(log_f32(p));
  combine_guidance(row, unconditional, 2.0f, {}, row, form);
  LogitsDistribution distribution;
  distribution.assign(row, {});
  ExactMasses masses;
  for (Token token = 0; token < std::ssize(row); ++token)
    masses.push_back(Rational(static_cast<std::int64_t>(distribution.mass(token))));
  return normalised(std::move(masses));
}

// E: the form that the engine has, against the exact one.
Finding find_guided_impossible(bool faulty) {
  const ExactMasses code = guided(faulty ? GuidanceForm::probabilities : GuidanceForm::logits);
  return find_wrong_token_distribution(
      guided(GuidanceForm::logits), [&](ExactChance& chance) { return chance.draw(code, 0, Purpose::target_sample); });
}

}  // namespace

std::vector<Bug> other_distribution_bugs() {
  return {
      {.id = "B27",
       .source = "transformers #32867, antirez/ds4 #482",
       .fault = "drafts are the argmax of q, and the verifier takes them as drawn from q",
       .hunts = {{Detector::enumeration, find_argmax_drafts}, {Detector::enumeration, find_argmax_children}},
       .rows_sampler = sampler_with_drafts([](const std::vector<double>& q) { return top_k_distribution(q, 1); })},
      {.id = "B28",
       .source = "transformers #47932, mlx-node #11, llama.cpp #27694",
       .fault = "drafts are drawn from q after top-k or top-p; the q that is handed on is the one before",
       .hunts = {other_drafts_hunt(
                     [](const ExactMasses&, const ExactMasses& q) { return top_k_distribution(q, kTopK); }),
                 other_drafts_hunt([](const ExactMasses&, const ExactMasses& q) {
                   return top_p_distribution(q, Rational(Rational(4) / 5));
                 })},
       .rows_sampler = sampler_with_drafts(
           [](const std::vector<double>& q) { return top_k_distribution(q, std::min(kLargeTopK, q.size() / 2)); })},
      {.id = "B30",
       .source = "vllm #9834, #10198",
       .fault = "the target is scored with default parameters, while drafts are filtered by the request's top-p",
       .hunts = {{Detector::enumeration, find_unfiltered_target}},
       .rows_sampler = sampler_with(leave_target_unfiltered)},
      {.id = "B34",
       .source = "DeepSpec #31",
       .fault = "drafts are drawn from a bfloat16 softmax, and the ratio is taken with the binary32 one",
       .hunts = {other_drafts_hunt([](const ExactMasses&, const ExactMasses& q) { return bfloat16_distribution(q); })},
       .rows_sampler = sampler_with_drafts([](const std::vector<double>& q) {
         std::vector<double> rounded;
         for (const double x : q) rounded.push_back(to_bfloat16(x));
         return rounded;
       })},
      {.id = "B86",
       .source = "vllm #37237",
       .fault = "drafts are drawn at the request's temperature; the q that is handed on is the one at temperature 1",
       .hunts = {other_drafts_hunt([](const ExactMasses&, const ExactMasses& q) { return cooled(q); })},
       .rows_sampler = sampler_with_drafts([](const std::vector<double>& q) { return cooled(q); })},
      {.id = "B104",
       .source = "texts on guidance that take log(p + 1e-10) of probabilities for logits",
       .fault = "guidance combines log(p + 1e-10) of both rows: tokens that both forbid get some of the mass, 1e-10 "
                "each over "
                "the sum of c^2 / u at scale 2",
       .hunts = {{Detector::enumeration, find_guided_impossible}}}};
}

}  // namespace draftproof
