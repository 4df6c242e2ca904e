#include "reference/verify/batch.hpp"

#include <atomic>
#include <string>

#include "reference/error.hpp"
#include "reference/parallel.hpp"
#include "reference/verify/verify_request.hpp"

namespace draftproof {

std::vector<Emission> verify_batch(std::span<const VerifyRequest> requests, const VerifyOptions& options, int threads,
                                   const std::function<void(std::int64_t)>& done) {
  if (threads < 1) throw usage_error("threads", "it is " + std::to_string(threads) + "; 1 or more is right");
  std::vector<Emission> emissions(requests.size());
  std::vector<VerifyWorkspace> workspaces(static_cast<std::size_t>(threads));
  std::atomic<std::int64_t> finished{0};
  parallel_for(static_cast<std::int64_t>(requests.size()), threads, [&](std::int64_t i, int thread) {
    const auto index = static_cast<std::size_t>(i);
    validate(requests[index], i);
    PhiloxSource source;
    emissions[index] = verify_request(requests[index], options, source, workspaces[static_cast<std::size_t>(thread)]);
    if (done) done(++finished);
  });
  return emissions;
}

}  // namespace draftproof
