#include "gpu/device_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.hpp"
#include "gpu/api.hpp"

namespace draftproof::device {
namespace {

class HostMemory : public DeviceMemory {
 public:
  void* allocate(std::size_t bytes) override {
    void* const memory = std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void release(void* memory) override { std::free(memory); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

 private:
  static constexpr std::size_t kAlignment = 256;
};

}  // namespace

std::unique_ptr<DeviceMemory> memory_of(draftproof_executor executor) {
  const std::string why = why_unavailable(executor);
  if (!why.empty()) throw usage_error(executor_name(executor), why);
#if defined(DRAFTPROOF_HAS_CUDA)
  if (executor == DRAFTPROOF_CUDA) return cuda_executor::make_device_memory();
#endif
  return std::make_unique<HostMemory>();
}

}  // namespace draftproof::device
