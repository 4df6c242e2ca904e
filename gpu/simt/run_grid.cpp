#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "gpu/simt/block_runner.hpp"
#include "gpu/simt/launch.hpp"

namespace draftproof::simt {
namespace {

std::atomic<std::uint64_t> next_ticket{1};  // 0 is the ticket of cells that no kernel has touched

}  // namespace

void outside_of_kernels() {
  throw Error(ErrorKind::internal, "gpu/simt", "device memory or a device function is used outside of a kernel");
}

void run_grid(const LaunchDescription& description, const std::function<void()>& kernel) {
  const std::uint64_t blocks = description.grid.count();
  std::vector<std::uint32_t> order(blocks);
  std::iota(order.begin(), order.end(), 0U);
  Schedule(description.seed, 0xffffffff).shuffle(order);

  const std::uint64_t first_ticket = next_ticket.fetch_add(blocks);
  std::vector<std::unique_ptr<BlockRunner>> runners(static_cast<std::size_t>(description.os_threads));
  parallel_for(static_cast<std::int64_t>(blocks), description.os_threads, [&](std::int64_t item, int thread) {
    auto& runner = runners[static_cast<std::size_t>(thread)];
    if (!runner) runner = std::make_unique<BlockRunner>(description, kernel, first_ticket);
    runner->run(order[static_cast<std::size_t>(item)]);
  });
}

}  // namespace draftproof::simt
