// Draft and recovered token raced over one noise vector.
#include <algorithm>
#include <limits>

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

// A race over E_x / q_x and another over E_x / r_x with the same exponentials E. Run in order of time: tokens arrive as
// a Poisson process with marks of distribution q, so that the first arrival of x is at E_x / q_x. The draft is the
// first mark; the winner of the other race is the least arrival time times q_x / r_x. That visits the few tokens that
// can win instead of the whole vocabulary twice.
LargeSampler shared_race_sampler(const FixedRowsPointer& rows) {
  double largest_ratio = 0.0;
  for (std::size_t x = 0; x < rows->proposal.masses().size(); ++x)
    largest_ratio = std::max(largest_ratio, rows->residual.masses()[x] / rows->proposal.masses()[x]);
  const auto draw = [rows, largest_ratio](std::uint64_t request) {
    const std::uint64_t seed = derive_seed(0, request);
    PhiloxSource philox;
    Token draft = kPaddingToken;
    Token recovered = kPaddingToken;
    double best = std::numeric_limits<double>::infinity();
    double time = 0.0;
    for (std::uint32_t arrival = 0; time < best * largest_ratio; ++arrival) {
      const RandomBlock block = philox.block(seed, {arrival, 0, 0, Purpose::draft_sample});
      const Token token = rows->proposal.draw(block);
      time += exponential_noise(block.word[2]);
      if (arrival == 0) {
        draft = token;
        AddressedChance<> chance(philox, seed, 0);
        if (chance.accept(rows->target.mass(token), rows->proposal.mass(token), 0)) return draft;
      }
      if (!(rows->residual.mass(token) > 0.0)) continue;
      const double score = time * rows->proposal.mass(token) / rows->residual.mass(token);
      if (score >= best) continue;
      best = score;
      recovered = token;
    }
    return recovered;
  };
  return {rows->target.masses(), draw};
}

}  // namespace

std::vector<Bug> shared_race_bugs() {
  return {{.id = "B01",
           .source = "vllm #47386, fixed in #54282",
           .fault = "the recovered token is raced over the Gumbel noise that the draft was raced over",
           .hunts = {key_audit_hunt(residual_at_the_draft, Sampler::race, kVerifyChain),
                     {Detector::enumeration, first_token_of_shared_race}},
           .large_sampler = [] { return shared_race_sampler(FixedRows::usual()); },
           // The race itself, which visits every token.
           .rows_sampler =
               [](const FixedRowsPointer& rows) {
                 return speculative_sampler(rows, residual_at_the_draft, {.sampler = Sampler::race});
               }}};
}

}  // namespace draftproof
