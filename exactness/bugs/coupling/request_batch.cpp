#include "exactness/bugs/coupling/request_batch.hpp"

#include <ranges>

#include "exactness/proof/distribution_text.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kBatchVocabSize = 16;

// Rows [count, V]: random weights over their sum.
std::vector<float> random_rows(std::int64_t count, std::uint64_t seed) {
  std::vector<float> rows;
  for (std::int64_t row = 0; row < count; ++row) {
    std::vector<double> weights;
    double sum = 0.0;
    for (std::int64_t token = 0; token < kBatchVocabSize; ++token) {
      const RandomBlock block = philox_block(seed, static_cast<std::uint32_t>(token), static_cast<std::uint32_t>(row),
                                             0, static_cast<std::uint32_t>(Purpose::simulator));
      weights.push_back(0.05 + uniform_53(high_half(block)));
      sum += weights.back();
    }
    for (const double weight : weights) rows.push_back(static_cast<float>(weight / sum));
  }
  return rows;
}

}  // namespace

RequestBatch::RequestBatch(std::span<const std::uint64_t> seeds) {
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const auto draft_len = static_cast<std::int64_t>(i % 4);
    const std::vector<float>& target = rows_.emplace_back(random_rows(draft_len + 1, derive_seed(2, i)));
    const std::vector<float>& proposal = rows_.emplace_back(random_rows(draft_len, derive_seed(3, i)));
    PhiloxSource source;
    AddressedChance<> chance(source, derive_seed(4, i), 0);
    std::vector<Token>& draft = drafts_.emplace_back();
    for (std::int64_t row = 0; row < draft_len; ++row) {
      const auto first = proposal.begin() + static_cast<std::ptrdiff_t>(row * kBatchVocabSize);
      draft.push_back(chance.draw(DenseMasses<double>(first, first + kBatchVocabSize), static_cast<std::uint32_t>(row),
                                  Purpose::draft_sample));
    }
    VerifyRequest request;
    request.draft = DraftTree::chain(draft);
    request.target_is_probabilities = true;
    request.target = {DType::f32, target.data(), draft_len + 1, kBatchVocabSize, kBatchVocabSize};
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = {DType::f32, proposal.data(), draft_len, kBatchVocabSize, kBatchVocabSize};
    request.seed = seeds[i];
    requests_.push_back(request);
  }
}

Finding first_difference_of_requests(std::span<const TokenString> reference, std::span<const TokenString> seen,
                                     const std::string& way) {
  return first_evidence("requests", std::views::iota(std::size_t{0}, reference.size()), [&](std::size_t i) {
    if (reference[i] == seen[i]) return std::string();
    return "request " + std::to_string(i) + " emits " + text_of(seen[i]) + " " + way + ", not " + text_of(reference[i]);
  });
}

}  // namespace draftproof
