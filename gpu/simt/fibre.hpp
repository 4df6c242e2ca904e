// One thread of a block: a Boost.Context fibre that the scheduler resumes and that suspends itself.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

namespace draftproof::simt {

class Fibre {
 public:
  // `body` must not let an exception out. It runs from the first resume() on.
  explicit Fibre(std::function<void()> body);

  void resume();   // by the scheduler: returns when the fibre suspends or ends
  void suspend();  // by the fibre itself

 private:
  void run_on_fibre(boost::context::fiber&& scheduler);

  std::function<void()> body_;
  boost::context::fiber other_side_;  // the fibre while the scheduler runs, the scheduler while the fibre runs

  // The two stacks, which AddressSanitizer must be passed at every switch. Null and unused without it.
  void* scheduler_fake_stack_ = nullptr;
  void* fibre_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;
  const void* stack_ = nullptr;
  std::size_t stack_bytes_ = 0;
};

}  // namespace draftproof::simt
