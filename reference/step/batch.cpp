#include "reference/step/batch.hpp"

#include <atomic>
#include <string>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "reference/step/replay.hpp"
#include "reference/step/replayable.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {

BatchVerifier::BatchVerifier(int threads) {
  if (threads < 1) throw usage_error("threads", "it is " + std::to_string(threads) + "; expected 1 or more");
  workspaces_.resize(static_cast<std::size_t>(threads));
}

std::vector<Emission> BatchVerifier::verify(std::span<const VerifyRequest> requests, const VerifyOptions& options,
                                            const std::function<void(std::int64_t)>& done) {
  std::vector<Emission> emissions(requests.size());
  const int threads = static_cast<int>(workspaces_.size());
  std::atomic<std::int64_t> finished{0};
  parallel_for(static_cast<std::int64_t>(requests.size()), threads, [&](std::int64_t i, int thread) {
    const auto index = static_cast<std::size_t>(i);
    const VerifyRequest& request = requests[index];
    StepWorkspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    validate(request, options.verifier, i);
    if (request.recorded.any()) require_replayable(request, options.verifier, "request " + std::to_string(i));
    PhiloxSource source;
    try {
      emissions[index] = request.recorded.any() ? replay_step(request, options, workspace)
                                                : verify_step(request, options, source, workspace);
    } catch (const RowError& error) {
      throw error_in_request(request, i, error);
    }
    if (done) done(++finished);
  });
  return emissions;
}

std::vector<Emission> verify_batch(std::span<const VerifyRequest> requests, const VerifyOptions& options, int threads,
                                   const std::function<void(std::int64_t)>& done) {
  return BatchVerifier(threads).verify(requests, options, done);
}

}  // namespace draftproof
