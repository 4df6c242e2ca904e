// A kernel with two faults at once: a uniform that is used twice, and a block reduce whose scratch is written again
// before everyone has read it.
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "exactness/bugs/coupling/key_faults.hpp"
#include "exactness/bugs/coupling/request_batch.hpp"
#include "exactness/bugs/coupling/warp_schedules.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "reference/step/verify_step_of.hpp"

namespace draftproof {
namespace {

// Requests through the production verifier, by that engine's convention, against the same with sound keys.
Finding find_different_tokens(bool faulty) {
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t request = 0; request < 64; ++request) seeds.push_back(derive_seed(0, request));
  const RequestBatch batch(seeds);
  const VerifyOptions options{.convention = Convention::flashinfer};
  PhiloxSource philox;
  MappedSource<PhiloxSource> mapped(philox, keys_of(faulty, residual_at_the_coin));
  StepWorkspace workspace;
  std::vector<TokenString> reference;
  std::vector<TokenString> seen;
  for (const VerifyRequest& request : batch.requests()) {
    reference.push_back(verify_step(request, options, philox, workspace).tokens);
    seen.push_back(verify_step(request, options, mapped, workspace).tokens);
  }
  return first_difference_of_requests(reference, seen, "with the shared uniform");
}

constexpr std::size_t kWarps = 2;
constexpr std::size_t kTiles = 2;
using Totals = std::array<std::array<int, kWarps>, kTiles>;  // of every tile, as every warp has read it

struct ReduceState {
  std::array<int, kWarps> scratch{};
  Totals totals{};
};

// Sum that warp `warp` adds up of a tile by itself.
int partial_sum(std::size_t tile, std::size_t warp) {
  return 1 << (tile * kWarps + warp);
}

// One tile after the other: write the warp's part, wait for all, add up all parts, wait before the next tile's write.
std::vector<WarpInstruction<ReduceState>> reduce_program(bool barrier_after_reading) {
  std::vector<WarpInstruction<ReduceState>> program;
  for (std::size_t tile = 0; tile < kTiles; ++tile) {
    program.push_back([tile](ReduceState& state, std::size_t warp) { state.scratch[warp] = partial_sum(tile, warp); });
    program.push_back(nullptr);
    program.push_back([tile](ReduceState& state, std::size_t warp) {
      state.totals[tile][warp] = std::accumulate(state.scratch.begin(), state.scratch.end(), 0);
    });
    if (barrier_after_reading) program.push_back(nullptr);
  }
  return program;
}

Finding find_race(bool faulty) {
  Finding finding{false, 0, "schedules", {}};
  const auto program = reduce_program(!faulty);
  const auto check = [&](const ReduceState& end) {
    if (finding.caught) return;
    ++finding.cases;
    for (std::size_t tile = 0; tile < kTiles; ++tile) {
      int expected = 0;
      for (std::size_t warp = 0; warp < kWarps; ++warp) expected += partial_sum(tile, warp);
      for (std::size_t warp = 0; warp < kWarps; ++warp) {
        if (end.totals[tile][warp] == expected || finding.caught) continue;
        finding.caught = true;
        finding.evidence = "in schedule " + std::to_string(finding.cases) + " warp " + std::to_string(warp) +
                           " adds up tile " + std::to_string(tile) + " to " + std::to_string(end.totals[tile][warp]) +
                           ", not " + std::to_string(expected);
      }
    }
  };
  WarpSchedules<ReduceState, decltype(check)>(program, kWarps, check).run({});
  return finding;
}

}  // namespace

std::vector<Bug> barrier_bugs() {
  return {
      {.id = "B06",
       .source = "flashinfer #424",
       .fault =
           "one uniform for acceptance and residual, and no barrier between a block reduce and the next one's writes",
       .hunts = {distribution_hunt({.draft_len = 2}, residual_at_the_coin, Sampler::inverse, kVerifyChain),
                 {Detector::differential, find_different_tokens},
                 {Detector::differential, find_race}},
       .rows_sampler = [](const FixedRowsPointer& rows) {
         return speculative_sampler(rows, residual_at_the_coin,
                                    {.draft_len = 2, .position = 1, .convention = Convention::flashinfer});
       }}};
}

}  // namespace draftproof
