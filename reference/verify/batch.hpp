// A batch of verification steps. Each request is a pure function of its own rows, parameters, seed and step, so neither
// the batch it sits in, nor its place there, nor the number of threads can change a bit of what it emits.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "reference/verify/request.hpp"

namespace draftproof {

// Validates and verifies every request. `done`, if given, is called with the number of requests finished so far, from
// any thread. Errors name the lowest request that is wrong; (usage) threads < 1.
std::vector<Emission> verify_batch(std::span<const VerifyRequest> requests, const VerifyOptions& options, int threads,
                                   const std::function<void(std::int64_t)>& done = {});

}  // namespace draftproof
