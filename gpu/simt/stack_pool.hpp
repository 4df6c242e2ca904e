// Stacks for fibres. They are taken when a block starts and come back when it ends; none is ever returned to the
// system, since mapping one costs as much as a hundred switches.
#pragma once

#include <boost/context/stack_context.hpp>

namespace draftproof::simt {

// A stack allocator of Boost.Context. Below every stack lies a page that traps.
class StackPool {
 public:
  boost::context::stack_context allocate();
  void deallocate(boost::context::stack_context& stack) noexcept;
};

}  // namespace draftproof::simt
