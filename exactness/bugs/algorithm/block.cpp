// B37: block verification by the token-wise rule.
#include <string>
#include <utility>

#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "exactness/proof/distribution_text.hpp"
#include "exactness/proof/steps.hpp"
#include "reference/verify/block.hpp"

namespace draftproof {
namespace {

// The last draft whose own coin passes decides, as in block verification; but the coins are min(1, p/q) of each token,
// and the residual is that of the row alone.
ChainOutcome verify_block_tokenwise(std::span<const Token> draft, ExactRows& target, ExactRows& proposal,
                                    ExactChance& chance) {
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  std::uint32_t num_accepted = 0;
  for (std::uint32_t row = 0; row < draft_len; ++row)
    if (chance.accept(target.probability(row, draft[row]), proposal.probability(row, draft[row]), row))
      num_accepted = row + 1;
  if (num_accepted == draft_len)
    return {draft_len, chance.draw(target.masses(draft_len), draft_len, Purpose::target_sample)};
  return {num_accepted, chance.draw(residual_masses(target, proposal, num_accepted), num_accepted, Purpose::residual)};
}

constexpr EnumerationHunt kHunt{.draft_len = 2};

EnumeratedStep block_step(bool faulty) {
  return proof_steps::chain_step(
      [faulty](std::span<const Token> draft, ExactRows& target, ExactRows& proposal, ExactChance& chance) {
        return faulty ? verify_block_tokenwise(draft, target, proposal, chance)
                      : verify_block(draft, target, proposal, chance);
      });
}

// A: the mean number of accepted drafts, exactly, against the recursion of the paper, which knows no verifier.
Finding find_wrong_mean_accepted(const EnumeratedStep& step) {
  Finding finding{false, 0, "outcomes", {}};
  for (std::int32_t instance = 0; instance < kHunt.instances && !finding.caught; ++instance) {
    const Models models(kHunt.vocab_size, derive_seed(0, static_cast<std::uint64_t>(instance)),
                        kModelKinds[static_cast<std::size_t>(instance) % kModelKinds.size()]);
    Rational mean(0);
    ExactChance chance;
    do {
      const ProofStep outcome = step(models, {}, kHunt.draft_len, chance);
      mean += outcome.accepted * chance.probability();
      ++finding.cases;
    } while (chance.next());
    const Rational expected = block_recursion(models, {}, kHunt.draft_len);
    if (mean == expected) continue;
    finding.caught = true;
    finding.evidence = "on " + std::string(name_of(models.kind())) + " models " + text_of(mean) + " of " +
                       std::to_string(kHunt.draft_len) + " drafts are accepted in the mean, not " + text_of(expected);
  }
  return finding;
}

// The first token of two drafts from distributions that do not depend on the context: it stands when either coin
// passes.
LargeSampler first_token_of_two(const FixedRowsPointer& rows) {
  return {rows->target.masses(), [rows](std::uint64_t draw) {
            const std::uint64_t seed = derive_seed(0, draw);
            const PhiloxSource source;
            const auto drafted = [&](std::uint32_t row) {
              return rows->proposal.draw(source.block(seed, {0, row, 0, Purpose::draft_sample}));
            };
            const auto passes = [&](Token token, std::uint32_t row) {
              return sound_coin(rows->target.mass(token), rows->proposal.mass(token),
                                source.block(seed, {0, row, 0, Purpose::accept}));
            };
            const Token first = drafted(0);
            if (passes(first, 0) || passes(drafted(1), 1)) return first;
            return rows->residual.draw(source.block(seed, {0, 0, 0, Purpose::residual}));
          }};
}

}  // namespace

Bug tokenwise_block_bug() {
  return {
      "B37",
      "vllm-ascend #7807",
      "block verification tosses the token-wise coins min(1, p/q) and draws from the residual max(p - q, 0) without "
      "the weight of the path",
      {{Detector::enumeration, [](bool faulty) { return find_wrong_distribution(kHunt, block_step(faulty)); }},
       {Detector::acceptance, [](bool faulty) { return find_wrong_mean_accepted(block_step(faulty)); }}},
      nullptr,
      {},
      first_token_of_two};
}

}  // namespace draftproof
