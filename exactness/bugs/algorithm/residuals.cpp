// B38, B39, B40 and B83: the residual of a rejection is another than norm(max(p - q, 0)). Faults are proposals with a
// residual of their own, which production's chain verifier finds in place of the right one.
#include <algorithm>
#include <array>
#include <string>

#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/engine_numbers.hpp"
#include "exactness/bugs/filter/hunts.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "exactness/proof/head_steps.hpp"
#include "reference/random/injected.hpp"
#include "reference/random/uniform.hpp"
#include "reference/verify/convention.hpp"

namespace draftproof {
namespace {

// Residual p, where only the rejected token has its q subtracted: that of the token last asked for.
struct OneTokenProposal {
  const ExactRows& rows;
  Token rejected = kPaddingToken;

  const Rational& probability(std::uint32_t row, Token token) {
    rejected = token;
    return rows.probability(row, token);
  }
};
ExactMasses residual_masses(const ExactRows& target, const OneTokenProposal& proposal, std::uint32_t row) {
  ExactMasses masses = target.row(row);
  const auto x = static_cast<std::size_t>(proposal.rejected);
  masses[x] = positive_part_of_difference(masses[x], proposal.rows.row(row)[x]);
  return masses;
}

// Residual max(p - q, floor).
template <class Number>
DenseMasses<Number> floored_difference(const DenseMasses<Number>& p, const DenseMasses<Number>& q) {
  const Number floor = Number(1) / Number(100000);
  DenseMasses<Number> masses = positive_difference(p, q);
  for (Number& x : masses) x = std::max(x, floor);
  return masses;
}
struct FlooredProposal {
  const ExactRows& rows;
  const Rational& probability(std::uint32_t row, Token token) const { return rows.probability(row, token); }
};
ExactMasses residual_masses(const ExactRows& target, const FlooredProposal& proposal, std::uint32_t row) {
  return floored_difference(target.row(row), proposal.rows.row(row));
}

// Residual max(p - q, 0) over the draft vocabulary alone; p there where that is empty.
struct DraftableProposal {
  const ExactRows& rows;
  const Rational& probability(std::uint32_t row, Token token) const { return rows.probability(row, token); }
};
ExactMasses residual_masses(const ExactRows& target, const DraftableProposal& proposal, std::uint32_t row) {
  const ExactMasses& p = target.row(row);
  const DraftVocabulary vocabulary = half_vocabulary(static_cast<std::int32_t>(p.size()));
  for (const ExactMasses& masses : {positive_difference(p, proposal.rows.row(row)), p}) {
    ExactMasses part = vocabulary.scattered(vocabulary.gathered(masses));
    if (total_of(part) > 0) return part;
  }
  return p;
}

// E: production's chain over the faulty proposal and over the right one.
template <class FaultyProposal>
auto verify_with_residual(bool faulty) {
  return
      [faulty](std::span<const Token> draft, const ExactRows& target, const ExactRows& proposal, ExactChance& chance) {
        FaultyProposal faulty_proposal{proposal};
        return faulty ? verify_chain(draft, target, faulty_proposal, chance)
                      : verify_chain(draft, target, proposal, chance);
      };
}
template <class FaultyProposal>
Finding find_wrong_residual(bool faulty) {
  return find_wrong_distribution({.draft_len = 2},
                                 proof_steps::chain_step(verify_with_residual<FaultyProposal>(faulty)));
}
// The same, with drafts of 3 of 6 tokens.
template <class FaultyProposal>
Finding find_wrong_residual_of_half(bool faulty) {
  return find_wrong_distribution({.vocab_size = 6, .draft_len = 2, .draft_tokens = DraftTokens::half},
                                 proof_steps::half_vocabulary_chain_step(verify_with_residual<FaultyProposal>(faulty)));
}

// Residual masses divided by their sum: checked, where there is a rule for the sum 0, or unchecked.
struct DividedProposal {
  const DenseRows<double>& rows;
  bool unchecked;

  double probability(std::uint32_t row, Token token) const { return rows.probability(row, token); }
};
std::vector<double> residual_masses(const DenseRows<double>& target, const DividedProposal& proposal,
                                    std::uint32_t row) {
  return normalised(proposal.unchecked ? positive_difference(target.row(row), proposal.rows.row(row))
                                       : residual_masses(target, proposal.rows, row));
}

// A coin that can be 1, and draws by the first cumulative sum above u: what a search in NaN gives is the end.
struct SearchChance {
  InjectedSource source;

  bool accept(double p, double q, std::uint32_t row) const {
    return accepts(Convention::tensorrt_llm, p, q, source.block(0, {0, row, 0, Purpose::accept}));
  }
  Token draw(const std::vector<double>& masses, std::uint32_t row, Purpose purpose) const {
    const double u = uniform_53(high_half(source.block(0, {0, row, 0, purpose})));
    double sum = 0.0;
    const auto found = std::ranges::find_if(masses, [&](double x) { return (sum += x) > u; });
    return static_cast<Token>(found - masses.begin());
  }
};

// X: acceptance coins at the ends of their range, p = q and p unlike q.
Finding find_empty_residual(bool faulty) {
  static const std::vector<double> even{0.5, 0.25, 0.25};
  static const std::vector<double> uneven{0.25, 0.5, 0.25};
  std::vector<SupportCase> cases;
  for (const auto* q : {&uneven, &even}) {
    for (const std::uint32_t word : kEndWords) {
      cases.push_back({std::string(q == &even ? "p = q" : "p unlike q") + ", coin word " + std::to_string(word),
                       {true, true, true},
                       [q, word, faulty] {
                         SearchChance chance{InjectedSource().inject(Purpose::accept, block_of(word))};
                         DenseRows<double> target{{even, even}};
                         const DenseRows<double> rows{{*q}};
                         DividedProposal proposal{rows, faulty};
                         const std::array<Token, 1> drafted{1};
                         return verify_chain(std::span<const Token>(drafted), target, proposal, chance).last_token;
                       }});
    }
  }
  return find_impossible_token(cases);
}

LargeSampler one_token_residual_sampler(const FixedRowsPointer& rows) {
  return {rows->target.masses(), [rows](std::uint64_t draw) {
            const std::uint64_t seed = derive_seed(0, draw);
            const PhiloxSource source;
            const Token token = rows->proposal.draw(source.block(seed, {0, 0, 0, Purpose::draft_sample}));
            const RandomBlock coin = source.block(seed, {0, 0, 0, Purpose::accept});
            if (sound_coin(rows->target.mass(token), rows->proposal.mass(token), coin)) return token;
            // It was rejected, so p < q there, and nothing is left of its mass.
            return rows->target.draw_without(token, source.block(seed, {0, 0, 0, Purpose::residual}));
          }};
}

// The more probable half of q's tokens is the draft vocabulary.
void recover_drafted_tokens_only(OneDraft& draft) {
  std::vector<bool> drafted(draft.proposal.size());
  for (const Token token : most_probable_tokens(draft.proposal, std::max<std::size_t>(1, drafted.size() / 2)))
    drafted[static_cast<std::size_t>(token)] = true;
  const auto part_of = [&](std::vector<double> masses) {
    for (std::size_t i = 0; i < masses.size(); ++i) masses[i] = drafted[i] ? masses[i] : 0.0;
    return masses;
  };
  draft.drafted = draft.proposal = normalised(part_of(draft.proposal));
  draft.residual = part_of(positive_difference(draft.target, draft.proposal));
  if (!(total_of(draft.residual) > 0.0)) draft.residual = part_of(draft.target);
}

}  // namespace

std::vector<Bug> residual_bugs() {
  return {
      {.id = "B38",
       .source = "SafeAILab/EAGLE #20",
       .fault = "after a rejection q is subtracted from p at the rejected token only",
       .hunts = {{Detector::enumeration, find_wrong_residual<OneTokenProposal>}},
       .rows_sampler = one_token_residual_sampler},
      {.id = "B39",
       .source = "jaymody/speculative-sampling #3",
       .fault = "the residual is divided by its sum without a look at it: with p = q that is 0/0",
       .hunts = {{Detector::injection, find_empty_residual}},
       .rows_sampler = sampler_with_coin(
           [](double p, double q, const RandomBlock& coin) { return accepts(Convention::tensorrt_llm, p, q, coin); })},
      {.id = "B40",
       .source = "vllm #13933, review",
       .fault = "every token's residual mass is at least 1e-5: at V = 128k that adds 1.3 to a residual of less than 1",
       .hunts = {{Detector::enumeration, find_wrong_residual<FlooredProposal>}},
       .rows_sampler =
           sampler_with([](OneDraft& draft) { draft.residual = floored_difference(draft.target, draft.proposal); })},
      {.id = "B83",
       .source = "reduced draft vocabularies; xllm #2175",
       .fault =
           "drafts come from a part of the vocabulary, and the residual is max(p - q, 0) over that part alone, or p "
           "less the drafted token's q alone",
       .hunts = {{Detector::enumeration, find_wrong_residual_of_half<DraftableProposal>},
                 {Detector::enumeration, find_wrong_residual_of_half<OneTokenProposal>}},
       .rows_sampler = sampler_with(recover_drafted_tokens_only)}};
}

}  // namespace draftproof
