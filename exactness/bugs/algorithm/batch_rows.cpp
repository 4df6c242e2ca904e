// B43/45: the rows of the draft stay where they were when the batch is put into another order.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/filter/hunts.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "reference/step/batch.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kVocabSize = 5;

struct DraftedRequest {
  std::uint64_t seed;
  std::vector<Token> draft;     // [K]
  std::vector<float> target;    // [K + 1, V]
  std::vector<float> proposal;  // [K, V]
};

DraftedRequest drafted_request(std::uint64_t seed, std::uint32_t draft_len) {
  DraftedRequest request{seed, {}, {}, {}};
  const auto append_row = [&](std::vector<float>& rows, std::uint32_t row, std::uint32_t step) {
    std::array<float, kVocabSize> weights{};
    float sum = 0.0f;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const RandomBlock block =
          philox_block(seed, static_cast<std::uint32_t>(i), row, step, static_cast<std::uint32_t>(Purpose::simulator));
      sum += weights[i] = static_cast<float>(1 + block.word[0] % 8);
    }
    for (const float w : weights) rows.push_back(w / sum);
  };
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    append_row(request.proposal, row, 0);
    const RowMatrix rows{DType::f32, request.proposal.data(), row + 1, kVocabSize, kVocabSize};
    Distribution distribution;
    distribution.make_probabilities(rows.row(row), row);
    request.draft.push_back(
        DistributionMasses(distribution).draw(PhiloxSource().block(seed, {0, row, 0, Purpose::draft_sample})));
  }
  for (std::uint32_t row = 0; row <= draft_len; ++row) append_row(request.target, row, 1);
  return request;
}

struct Verdict {
  std::uint32_t num_accepted;
  std::vector<Token> tokens;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// Draft rows lie in one tensor, in the order in which requests were drafted; verification wants long drafts first.
// Every request finds its rows where it was drafted, or (the fault) where its new place says.
std::vector<Verdict> verify_longest_first(const std::vector<DraftedRequest>& items, bool faulty) {
  std::vector<float> proposals;
  std::vector<std::int64_t> first_row;  // of every request, in drafting order
  for (const DraftedRequest& item : items) {
    first_row.push_back(static_cast<std::int64_t>(proposals.size()) / kVocabSize);
    proposals.insert(proposals.end(), item.proposal.begin(), item.proposal.end());
  }
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return items[i].draft.size(); });

  const RowMatrix all_rows{DType::f32, proposals.data(), static_cast<std::int64_t>(proposals.size()) / kVocabSize,
                           kVocabSize, kVocabSize};
  std::vector<VerifyRequest> requests;
  std::int64_t next_row = 0;
  for (const std::size_t i : order) {
    const auto draft_len = static_cast<std::int64_t>(items[i].draft.size());
    VerifyRequest request;
    request.draft = DraftTree::chain(items[i].draft);
    request.target_is_probabilities = true;
    request.target = {DType::f32, items[i].target.data(), draft_len + 1, kVocabSize, kVocabSize};
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = all_rows.slice(faulty ? next_row : first_row[i], draft_len);
    request.seed = items[i].seed;
    requests.push_back(request);
    next_row += draft_len;
  }
  const std::vector<Emission> emissions = verify_batch(requests, {}, 1);
  std::vector<Verdict> verdicts(items.size());
  for (std::size_t place = 0; place < order.size(); ++place)
    verdicts[order[place]] = {emissions[place].num_accepted, emissions[place].tokens};
  return verdicts;
}

// R: every request of a ragged batch against the same request alone.
Finding find_misaligned_rows(bool faulty) {
  std::vector<DraftedRequest> items;
  for (std::uint32_t i = 0; i < 12; ++i) items.push_back(drafted_request(derive_seed(0, i), 1 + i % 4));
  return find_batch_dependence(
      items, [faulty](const std::vector<DraftedRequest>& batch) { return verify_longest_first(batch, faulty); });
}

}  // namespace

std::vector<Bug> misaligned_row_bugs() {
  return {{.id = "B43/45",
           .source = "1Cat-vLLM #656, vllm #41044",
           .fault = "the batch is reordered between drafting and verification, and the rows of q are not: requests are "
                    "judged by the q of another",
           .hunts = {{Detector::ragged, find_misaligned_rows}},
           .rows_sampler = sampler_with([](OneDraft& draft) {
             // Another request's q: as far from p as the right one, in the other direction.
             for (std::size_t i = 0; i < draft.proposal.size(); ++i)
               draft.proposal[i] = draft.drafted[i] > 0.0 ? draft.target[i] * draft.target[i] / draft.drafted[i] : 0.0;
             if (total_of(draft.proposal) > 0.0) draft.proposal = normalised(std::move(draft.proposal));
             draft.residual = positive_difference(draft.target, draft.proposal);
           })}};
}

}  // namespace draftproof
