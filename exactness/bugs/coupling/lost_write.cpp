// A batch in which some requests bring a seed and others do not is sampled in two groups, and each group's tokens are
// written to its rows. In tensor libraries an indexed tensor is a copy: what is written to it is lost.
#include <cstdint>
#include <span>
#include <vector>

#include "exactness/bugs/coupling/request_batch.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "reference/step/batch.hpp"

namespace draftproof {
namespace {

using Indices = std::vector<std::size_t>;

// Writes a group's tokens to its rows.
using Write = void (*)(std::vector<Token>& tokens, const Indices& rows, std::span<const Token> values);

void write_in_place(std::vector<Token>& tokens, const Indices& rows, std::span<const Token> values) {
  for (std::size_t i = 0; i < rows.size(); ++i) tokens[rows[i]] = values[i];
}
void write_into_a_copy(std::vector<Token>& tokens, const Indices& rows, std::span<const Token> values) {
  std::vector<Token> indexed;
  for (const std::size_t row : rows) indexed.push_back(tokens[row]);
  for (std::size_t i = 0; i < rows.size(); ++i) indexed[i] = values[i];
}

// One token of every row. `draw(row)` samples; a batch of one kind needs no writing. `write` is that of seeded rows.
template <class Draw>
std::vector<Token> sample_batch(const std::vector<bool>& seeded, Draw draw, Write write) {
  std::vector<Token> tokens(seeded.size(), 0);
  for (const bool of_seeded : {false, true}) {
    Indices rows;
    std::vector<Token> values;
    for (std::size_t row = 0; row < seeded.size(); ++row) {
      if (seeded[row] != of_seeded) continue;
      rows.push_back(row);
      values.push_back(draw(row));
    }
    if (rows.size() == seeded.size()) return values;
    (of_seeded ? write : write_in_place)(tokens, rows, values);
  }
  return tokens;
}

// Request i is seeded where i is even; an unseeded one has a seed that was derived for it.
std::vector<TokenString> first_tokens(std::span<const VerifyRequest> requests, std::span<const std::size_t> numbers,
                                      Write write) {
  std::vector<bool> seeded;
  for (const std::size_t number : numbers) seeded.push_back(number % 2 == 0);
  Distribution distribution;
  PhiloxSource source;
  const auto draw = [&](std::size_t row) {
    const VerifyRequest& request = requests[numbers[row]];
    distribution.make_probabilities(request.target.row(0), 0);
    return AddressedChance<>(source, request.seed, 0).draw(DistributionMasses(distribution), 0, Purpose::target_sample);
  };
  std::vector<TokenString> strings;
  for (const Token token : sample_batch(seeded, draw, write)) strings.push_back({token});
  return strings;
}

std::vector<std::uint64_t> some_seeds() {
  constexpr std::uint64_t kRequests = 16;
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t i = 0; i < kRequests; ++i) seeds.push_back(derive_seed(0, i));
  return seeds;
}

std::vector<std::size_t> all_of(const RequestBatch& batch) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < batch.requests().size(); ++i) numbers.push_back(i);
  return numbers;
}

// Each request alone against all together.
Finding find_batch_dependence(bool faulty) {
  const RequestBatch batch(some_seeds());
  const Write write = faulty ? write_into_a_copy : write_in_place;
  std::vector<TokenString> alone;
  for (const std::size_t number : all_of(batch))
    alone.push_back(first_tokens(batch.requests(), std::span(&number, 1), write).front());
  return first_difference_of_requests(alone, first_tokens(batch.requests(), all_of(batch), write), "in the batch");
}

// The batch against the production verifier, which emits the same token for a step without drafts.
Finding find_lost_tokens(bool faulty) {
  const RequestBatch batch(some_seeds());
  std::vector<VerifyRequest> plain = batch.requests();
  for (VerifyRequest& request : plain) {
    request.draft = {};
    request.target = request.target.slice(0, 1);
    request.proposal = {};
    request.proposal_kind = ProposalKind::one_hot;
  }
  std::vector<TokenString> reference;
  for (const Emission& emission : verify_batch(plain, {}, 1)) reference.push_back(emission.tokens);
  const Write write = faulty ? write_into_a_copy : write_in_place;
  return first_difference_of_requests(reference, first_tokens(batch.requests(), all_of(batch), write), "in the batch");
}

// Requests in batches of two, the first of which is seeded.
LargeSampler mixed_batches(const FixedRowsPointer& rows) {
  return {rows->target.masses(), [rows](std::uint64_t draw) {
            const std::uint64_t first = draw - draw % 2;
            const auto sample = [&](std::size_t row) {
              return rows->target.draw(
                  PhiloxSource().block(derive_seed(0, first + row), {0, 0, 0, Purpose::target_sample}));
            };
            return sample_batch({true, false}, sample, write_into_a_copy)[static_cast<std::size_t>(draw % 2)];
          }};
}

}  // namespace

std::vector<Bug> lost_write_bugs() {
  return {
      {.id = "B10",
       .source = "vllm #6038, #9441, #10863",
       .fault = "where seeded and unseeded requests mix, the tokens of the seeded are written into a copy and stay 0",
       .hunts = {{Detector::batch, find_batch_dependence}, {Detector::differential, find_lost_tokens}},
       .rows_sampler = mixed_batches}};
}

}  // namespace draftproof
