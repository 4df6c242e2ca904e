// Draft and recovered token raced over one noise vector.

#include "exactness/bugs/coupling/key_faults.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/fixed_rows.hpp"

namespace draftproof {
namespace {

RandomKey residual_at_the_draft(RandomKey key) {
  if (key.address.purpose == Purpose::residual) key.address.purpose = Purpose::draft_sample;
  return key;
}

// The distribution of the first token of a chain of one draft, on the rows of the report.
Finding first_token_of_shared_race(bool faulty) {
  const DenseRows<Rational> target{
      {{Rational(1, 10), Rational(6, 10), Rational(3, 10)}, {Rational(1, 3), Rational(1, 3), Rational(1, 3)}}};
  const DenseRows<Rational> proposal{{{Rational(5, 10), Rational(4, 10), Rational(1, 10)}}};
  return find_wrong_token_distribution(target.rows[0], [&](ExactChance& exact) {
    MappedExactChance chance(exact, keys_of(faulty, residual_at_the_draft), Sampler::race, 0, 0);
    const Token draft = chance.draw(proposal.rows[0], 0, Purpose::draft_sample);
    const ChainOutcome outcome = verify_chain(std::span(&draft, 1), target, proposal, chance);
    return outcome.num_accepted == 1 ? draft : outcome.last_token;
  });
}

}  // namespace

std::vector<Bug> shared_race_bugs() {
  return {{.id = "B01",
           .source = "vllm #47386, fixed in #54282",
           .fault = "the recovered token is raced over the Gumbel noise that the draft was raced over",
           .hunts = {key_audit_hunt(residual_at_the_draft, Sampler::race, kVerifyChain),
                     {Detector::enumeration, first_token_of_shared_race}},
           // The race itself, which visits every token.
           .rows_sampler = [](const FixedRowsPointer& rows) {
             return speculative_sampler(rows, residual_at_the_draft, {.sampler = Sampler::race});
           }}};
}

}  // namespace draftproof
