#include "gpu/simt/stack_pool.hpp"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>
#include <mutex>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace draftproof::simt {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = 256 * 1024;  // red zones make frames several times larger
void forget_old_frames(const boost::context::stack_context& stack) {
  const std::size_t bytes = kStackBytes / 2;  // the lower part is fresh, or clean by the epilogues that used it
  ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(stack.sp) - bytes, bytes);
}
#else
constexpr std::size_t kStackBytes = 64 * 1024;
void forget_old_frames(const boost::context::stack_context&) {}
#endif

struct Pool {
  std::mutex mutex;
  std::vector<boost::context::stack_context> free;
  std::size_t made = 0;
};

Pool& pool() {
  static Pool* const instance = new Pool;  // never destroyed: a fibre may outlive static objects
  return *instance;
}

}  // namespace

boost::context::stack_context StackPool::allocate() {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (!p.free.empty()) {
    const boost::context::stack_context stack = p.free.back();
    p.free.pop_back();
    forget_old_frames(stack);
    return stack;
  }
  boost::context::stack_context stack = boost::context::protected_fixedsize_stack(kStackBytes).allocate();
  // Stacks that all began at the same offset in a page would fight for the same few sets of the cache.
  const std::size_t offset = p.made++ % 16 * 256;
  stack.sp = static_cast<char*>(stack.sp) - offset;
  stack.size -= offset;
  return stack;
}

void StackPool::deallocate(boost::context::stack_context& stack) noexcept {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  p.free.push_back(stack);
}

}  // namespace draftproof::simt
