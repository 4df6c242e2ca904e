#include "gpu/simt/fibre.hpp"

#include <boost/context/preallocated.hpp>
#include <utility>

#include "gpu/simt/stack_pool.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace draftproof::simt {
namespace {

// Debian's Boost.Context does not announce its switches, so this does. old_fake_stack null: the old stack ends here.
#if defined(__SANITIZE_ADDRESS__)
void before_switch(void** old_fake_stack, const void* new_stack, std::size_t new_bytes) {
  __sanitizer_start_switch_fiber(old_fake_stack, new_stack, new_bytes);
}
void after_switch(void* fake_stack, const void** old_stack, std::size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, old_stack, old_bytes);
}
#else
void before_switch(void**, const void*, std::size_t) {}
void after_switch(void*, const void**, std::size_t*) {}
#endif

}  // namespace

Fibre::Fibre(std::function<void()> body) : body_(std::move(body)) {
  StackPool pool;
  const boost::context::stack_context stack = pool.allocate();
  stack_ = static_cast<const char*>(stack.sp) - stack.size;
  stack_bytes_ = stack.size;
  other_side_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                                      pool, [this](boost::context::fiber&& scheduler) {
                                        run_on_fibre(std::move(scheduler));
                                        return std::move(other_side_);
                                      });
}

void Fibre::run_on_fibre(boost::context::fiber&& scheduler) {
  after_switch(nullptr, &scheduler_stack_, &scheduler_stack_bytes_);
  other_side_ = std::move(scheduler);
  body_();
  before_switch(nullptr, scheduler_stack_, scheduler_stack_bytes_);
}

void Fibre::resume() {
  before_switch(&scheduler_fake_stack_, stack_, stack_bytes_);
  other_side_ = std::move(other_side_).resume();
  after_switch(scheduler_fake_stack_, nullptr, nullptr);
}

void Fibre::suspend() {
  before_switch(&fibre_fake_stack_, scheduler_stack_, scheduler_stack_bytes_);
  other_side_ = std::move(other_side_).resume();
  after_switch(fibre_fake_stack_, &scheduler_stack_, &scheduler_stack_bytes_);
}

}  // namespace draftproof::simt
