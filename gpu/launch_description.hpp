// A kernel launch, described the same way for the CPU executor and a GPU: it knows neither fibres nor CUDA.
#pragma once

#include <cstdint>
#include <string>

namespace draftproof {

struct Extent {
  std::uint32_t x = 1, y = 1, z = 1;

  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

struct LaunchDescription {
  std::string kernel = {};  // the name that errors and reports carry
  Extent grid = {};         // blocks
  Extent block = {};        // threads of a block
  std::uint64_t dynamic_shared_bytes = 0;

  void* stream = nullptr;  // cudaStream_t; only the GPU's path reads it

  // Only the CPU executor reads these two. No result may depend on them: that is what they are for.
  std::uint64_t seed = 0;  // the order in which threads and blocks run
  int os_threads = 1;
};

inline constexpr std::uint64_t kThreadsMax = 1024;
inline constexpr std::uint64_t kSharedBytesMax = 227 * 1024;       // static and dynamic together, sm_90 and sm_100
inline constexpr std::uint64_t kStaticSharedBytesMax = 48 * 1024;  // what nvcc accepts

// Throws Error(internal) where a GPU would refuse the launch.
void check_description(const LaunchDescription& description);

}  // namespace draftproof
