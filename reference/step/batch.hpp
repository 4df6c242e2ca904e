// A batch of verification steps. Each request is a pure function of its own rows, parameters, seed and step, so neither
// the batch it sits in, nor its place there, nor the number of threads can change a bit of what it emits.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "reference/step/step_rows.hpp"

namespace draftproof {

// Keeps the buffers of its threads from batch to batch: one object serves all steps of an engine.
class BatchVerifier {
 public:
  // Error (usage): threads < 1.
  explicit BatchVerifier(int threads);

  // Validates and verifies every request. `done`, if given, is called with the number of requests finished so far, from
  // any thread. Errors name the lowest request that is wrong.
  std::vector<Emission> verify(std::span<const VerifyRequest> requests, const VerifyOptions& options,
                               const std::function<void(std::int64_t)>& done = {});

 private:
  std::vector<StepWorkspace> workspaces_;  // one a thread
};

// One batch alone: BatchVerifier(threads).verify(requests, options, done).
std::vector<Emission> verify_batch(std::span<const VerifyRequest> requests, const VerifyOptions& options, int threads,
                                   const std::function<void(std::int64_t)>& done = {});

}  // namespace draftproof
