// Threads that go through a forward pass together, with some 250 barriers in 5 ms: waiting spins for a moment before it
// sleeps, between the phases of a pass and between passes.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace draftproof {

class ThreadTeam {
 public:
  // The calling thread is one of them. threads >= 1.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return threads_; }

  // Calls body(thread) on every thread, thread in [0, threads), and returns when all have. body must not throw. One
  // caller at a time.
  template <class Body>
  void run(const Body& body) {
    run_erased([](const void* context, int thread) { (*static_cast<const Body*>(context))(thread); }, &body);
  }

  // Within run(): returns when every thread has come here; what they wrote before is seen after.
  void barrier();

 private:
  using Erased = void (*)(const void* context, int thread);

  void run_erased(Erased body, const void* context);
  void work(int thread);
  void wait_while(const std::atomic<std::int32_t>& value, std::int32_t old) const;

  int threads_;
  int spins_;
  Erased body_ = nullptr;
  const void* context_ = nullptr;
  alignas(64) std::atomic<std::int32_t> job_{0};  // counts calls of run(); -1: end
  alignas(64) std::atomic<std::int32_t> arrived_{0};
  alignas(64) std::atomic<std::int32_t> phase_{0};
  std::vector<std::jthread> workers_;
};

}  // namespace draftproof
