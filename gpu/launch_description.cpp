#include "gpu/launch_description.hpp"

#include "base/error.hpp"

namespace draftproof {

void check_description(const LaunchDescription& d) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::internal, "launch of kernel " + d.kernel, what);
  };
  if (d.block.count() == 0 || d.block.count() > kThreadsMax || d.block.z > 64) {
    refuse("a block has 1 to 1024 threads and z at most 64, not " + std::to_string(d.block.x) + " x " +
           std::to_string(d.block.y) + " x " + std::to_string(d.block.z));
  }
  if (d.grid.count() == 0 || d.grid.x > 0x7fffffff || d.grid.y > 65535 || d.grid.z > 65535) {
    refuse("a grid has at least one block, x below 2^31, y and z below 2^16, not " + std::to_string(d.grid.x) + " x " +
           std::to_string(d.grid.y) + " x " + std::to_string(d.grid.z));
  }
  if (d.grid.count() > 0xffffffff) refuse("the executor numbers at most 2^32 - 1 blocks");
  if (d.dynamic_shared_bytes > kSharedBytesMax) {
    refuse("a block has at most " + std::to_string(kSharedBytesMax) + " bytes of shared memory, not " +
           std::to_string(d.dynamic_shared_bytes));
  }
  if (d.os_threads < 1) refuse("needs at least one OS thread, not " + std::to_string(d.os_threads));
}

}  // namespace draftproof
