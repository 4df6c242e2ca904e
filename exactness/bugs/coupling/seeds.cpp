// Requests of one batch that share or swap their seeds.
#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <vector>

#include "exactness/bugs/coupling/key_faults.hpp"
#include "exactness/bugs/coupling/request_batch.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {
namespace {

// A batch as it runs: its requests by row, and the slot of the engine's state that each row sits in.
struct RunningBatch {
  std::vector<VerifyRequest> requests;
  std::vector<std::size_t> slots;
};

// The seed that a row's randomness is keyed with.
using SeedOf = std::uint64_t (*)(const RunningBatch&, std::size_t row);

std::uint64_t own_seed(const RunningBatch& batch, std::size_t row) {
  return batch.requests[row].seed;
}
std::uint64_t one_stream(const RunningBatch&, std::size_t) {
  return 0;
}
std::uint64_t seed_of_row_0(const RunningBatch& batch, std::size_t) {
  return batch.requests[0].seed;
}
std::uint64_t seed_at_the_slot(const RunningBatch& batch, std::size_t row) {
  return batch.requests[batch.slots[row]].seed;
}
std::uint64_t as_f32(std::uint64_t seed) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int64_t>(seed)));
}
std::uint64_t seed_as_f32(const RunningBatch& batch, std::size_t row) {
  return as_f32(batch.requests[row].seed);
}

// Users who number their requests from a large number, as a clock gives it.
std::vector<std::uint64_t> consecutive_seeds() {
  constexpr std::uint64_t kFirstSeed = 1'700'000'000'000'000'000;
  constexpr std::size_t kRequests = 16;
  std::vector<std::uint64_t> seeds(kRequests);
  std::iota(seeds.begin(), seeds.end(), kFirstSeed);
  return seeds;
}

// Runs a batch, row by row. `keep(row, tokens)` receives what is emitted.
template <class Source, class Keep>
void run_batch(const RunningBatch& batch, SeedOf seed_of, Source& source, Keep keep) {
  StepWorkspace workspace;
  for (std::size_t row = 0; row < batch.requests.size(); ++row) {
    VerifyRequest request = batch.requests[row];
    request.seed = seed_of(batch, row);
    keep(row, verify_step(request, VerifyOptions{}, source, workspace).tokens);
  }
}

// Tokens that each request emits when the batch holds the requests in this order; slots are given in order of arrival,
// which is that of the requests.
std::vector<TokenString> emitted_in_order(std::span<const VerifyRequest> requests, std::span<const std::size_t> order,
                                          SeedOf seed_of) {
  RunningBatch batch;
  for (const std::size_t i : order) batch.requests.push_back(requests[i]);
  batch.slots.assign(order.begin(), order.end());
  std::vector<TokenString> emitted(requests.size());
  PhiloxSource source;
  run_batch(batch, seed_of, source, [&](std::size_t row, const TokenString& tokens) { emitted[order[row]] = tokens; });
  return emitted;
}

Finding find_reused_seed(SeedOf seed_of) {
  const RequestBatch batch(consecutive_seeds());
  RunningBatch running{batch.requests(), std::vector<std::size_t>(batch.requests().size())};
  std::iota(running.slots.begin(), running.slots.end(), std::size_t{0});
  return find_reused_key(
      [&](AuditedSource<>& source) { run_batch(running, seed_of, source, [](std::size_t, const TokenString&) {}); });
}

// Each request alone, then all together in their order and in the opposite one.
Finding find_batch_dependence(SeedOf seed_of) {
  const RequestBatch batch(consecutive_seeds());
  const std::span<const VerifyRequest> requests(batch.requests());
  std::vector<TokenString> alone;
  for (const VerifyRequest& request : requests) {
    const std::size_t only = 0;
    alone.push_back(emitted_in_order(std::span(&request, 1), std::span(&only, 1), seed_of).front());
  }
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Finding finding = first_difference_of_requests(alone, emitted_in_order(requests, order, seed_of), "in the batch");
  if (finding.caught) return finding;
  std::reverse(order.begin(), order.end());
  const std::int64_t cases = finding.cases;
  finding = first_difference_of_requests(alone, emitted_in_order(requests, order, seed_of), "in the reversed batch");
  finding.cases += cases;
  return finding;
}

// Requests of unequal draft lengths that changed places since they arrived, against the reference of each.
Finding find_ragged_difference(SeedOf seed_of) {
  const RequestBatch batch(consecutive_seeds());
  std::vector<TokenString> reference;
  PhiloxSource source;
  StepWorkspace workspace;
  for (const VerifyRequest& request : batch.requests())
    reference.push_back(verify_step(request, VerifyOptions{}, source, workspace).tokens);
  std::vector<std::size_t> order(reference.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::rotate(order.begin(), order.begin() + 1, order.end());
  return first_difference_of_requests(reference, emitted_in_order(batch.requests(), order, seed_of),
                                      "after the batch was reordered");
}

Hunt seed_hunt(Detector detector, Finding (*find)(SeedOf), SeedOf fault) {
  return {detector, [=](bool faulty) { return find(faulty ? fault : own_seed); }};
}

// Draw i is a plain draw by the seed that request i is given.
RowsSampler seed_sampler(std::uint64_t (*seed_of_request)(std::uint64_t request)) {
  return [=](const FixedRowsPointer& rows) {
    return plain_sampler(rows, [=](std::uint64_t request) {
      return RandomKey{seed_of_request(request), {0, 0, 0, Purpose::target_sample}};
    });
  };
}

constexpr std::uint64_t kBatchSize = 8;  // of the large samplers

}  // namespace

std::vector<Bug> shared_seed_bugs() {
  return {{.id = "B07",
           .source = "TensorRT-LLM #19487",
           .fault = "every request starts one and the same stream again",
           .hunts = {seed_hunt(Detector::key_audit, find_reused_seed, one_stream)},
           .rows_sampler = seed_sampler([](std::uint64_t) { return std::uint64_t{0}; })},
          {.id = "B08",
           .source = "flashinfer #2345",
           .fault = "the kernel reads seed[0] for all rows of a batch",
           .hunts = {seed_hunt(Detector::batch, find_batch_dependence, seed_of_row_0),
                     seed_hunt(Detector::key_audit, find_reused_seed, seed_of_row_0)},
           .rows_sampler =
               seed_sampler([](std::uint64_t request) { return derive_seed(0, request - request % kBatchSize); })},
          {.id = "B09",
           .source = "vllm-ascend #9693",
           .fault = "the 64-bit seed is cast to f32, so that neighbouring seeds are one",
           .hunts = {seed_hunt(Detector::key_audit, find_reused_seed, seed_as_f32)},
           .rows_sampler = seed_sampler([](std::uint64_t request) { return as_f32(derive_seed(0, request)); })},
          {.id = "B14",
           .source = "TensorRT-LLM #1742",
           .fault = "seeds are stored by row and read by slot, which is another request's after a reorder",
           .hunts = {seed_hunt(Detector::ragged, find_ragged_difference, seed_at_the_slot),
                     seed_hunt(Detector::batch, find_batch_dependence, seed_at_the_slot)},
           .rows_sampler = seed_sampler([](std::uint64_t request) { return derive_seed(0, request ^ 1); })}};
}

}  // namespace draftproof
