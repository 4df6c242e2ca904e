// Ranks that hold one request and must draw one token: the noise of a row is cut into blocks of the vocabulary, and
// every rank keeps a state of its own.
#include <ranges>
#include <string>
#include <vector>

#include "exactness/bugs/coupling/key_faults.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/fixed_rows.hpp"

namespace draftproof {
namespace {

constexpr std::int32_t kVocabSize = 64;
constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint32_t kSteps = 16;

// Every block of the vocabulary counts its noise words from 0.
RandomKey without_block_prefix(RandomKey key) {
  key.address.index %= kBlockTokens / 4;
  return key;
}
// A rank that took no part in every second step did not advance either.
RandomKey every_second_step(RandomKey key) {
  key.address.step -= key.address.step % 2;
  return key;
}

// The tokens that a rank draws in consecutive steps.
template <class Source>
TokenString draws_of_rank(Source& source) {
  const ModelPair<double> model(kVocabSize, 0, ModelKind::dense);
  TokenString tokens;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    AddressedChance<Source> chance(source, derive_seed(0, 0), step, Sampler::race);
    tokens.push_back(chance.draw(model.target(tokens), 0, Purpose::target_sample));
  }
  return tokens;
}

Finding find_different_ranks(KeyFault keys) {
  PhiloxSource philox;
  MappedSource<PhiloxSource> mapped(philox, keys);
  const TokenString first = draws_of_rank(philox);
  const TokenString second = draws_of_rank(mapped);
  return first_evidence("draws", std::views::iota(std::size_t{0}, first.size()), [&](std::size_t step) {
    if (first[step] == second[step]) return std::string();
    return "in step " + std::to_string(step) + " the reference draws token " + std::to_string(first[step]) +
           ", the rank token " + std::to_string(second[step]);
  });
}

Hunt different_ranks_hunt(KeyFault fault) {
  return {Detector::differential, [=](bool faulty) { return find_different_ranks(keys_of(faulty, fault)); }};
}
Hunt reused_noise_hunt(KeyFault fault) {
  return {Detector::key_audit, [=](bool faulty) {
            return find_reused_key([&](AuditedSource<>& source) {
              MappedSource<AuditedSource<>> mapped(source, keys_of(faulty, fault));
              draws_of_rank(mapped);
            });
          }};
}

}  // namespace

std::vector<Bug> rank_bugs() {
  return {
      {.id = "B12",
       .source = "ROCm/aiter #2035",
       .fault =
           "a rank does not advance its state with the others, and blocks of the vocabulary count their noise from 0",
       .hunts = {reused_noise_hunt(without_block_prefix), reused_noise_hunt(every_second_step),
                 different_ranks_hunt(without_block_prefix), different_ranks_hunt(every_second_step)}}};
}

}  // namespace draftproof
