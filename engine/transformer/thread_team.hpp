// Threads that go through the phases of a forward pass together, some 250 in 5 ms. The work of a phase is claimed in
// ranges, and a phase is over when its ranges are done, not when every thread has come: on a busy machine a thread that
// the system has put aside holds up nothing but a range that it has claimed. Waiting spins for a moment, then sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
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

  // Calls body(thread) on thread 0, the caller, and on those of the others that are awake in time, thread in
  // [0, threads); returns when they have. body must not throw and does its work in for_ranges(), whose calls are the
  // same on every thread. One caller at a time.
  template <class Body>
  void run(const Body& body) {
    run_erased([](const void* context, int thread) { (*static_cast<const Body*>(context))(thread); }, &body);
  }

  // A phase: body(begin, end) for ranges of nearly equal size, at most `grain`, that make up [0, items), each on one
  // thread; every thread begins with its own share, one in threads() of the items. Returns when all are done, and what
  // they wrote is seen.
  template <class Body>
  void for_ranges(int thread, std::int64_t items, std::int64_t grain, const Body& body) {
    if (items == 0) return;
    const std::int64_t whole_shares = ((items + grain - 1) / grain + threads_ - 1) / threads_ * threads_;
    const std::int64_t ranges = whole_shares < items ? whole_shares : items;
    Member& self = members_[static_cast<std::size_t>(thread)];
    const std::uint32_t phase = self.phase++;
    for (int i = 0; i < threads_; ++i) {
      const int of = (thread + i) % threads_;
      const std::int64_t share_begin = ranges * of / threads_;
      const std::int64_t share_end = ranges * (of + 1) / threads_;
      std::int64_t done = 0;
      for (std::int64_t claimed = 0; (claimed = claim(of, phase, share_end - share_begin)) >= 0; ++done) {
        const std::int64_t range = share_begin + claimed;
        body(items * range / ranges, items * (range + 1) / ranges);
      }
      // Counted once for a share: the counter travels between cores.
      if (done > 0 && done_.fetch_add(done, std::memory_order_acq_rel) + done == ranges) return end_phase(phase);
    }
    wait_while(phase_, phase);
  }

 private:
  using Erased = void (*)(const void* context, int thread);

  struct alignas(64) Member {
    // Phase of the latest claim << 32 | ranges of its share that are claimed in it.
    std::atomic<std::uint64_t> cursor{0};
    std::uint32_t phase = 0;  // where this thread is
  };

  void run_erased(Erased body, const void* context);
  void work(int thread);
  // The number of a range of the share of thread `of`, of `count`; -1: all are claimed, or the phase is over.
  std::int64_t claim(int of, std::uint32_t phase, std::int64_t count);
  void end_phase(std::uint32_t phase);
  template <class T>
  void wait_while(const std::atomic<T>& value, T old) const;

  int threads_;
  int spins_;
  Erased body_ = nullptr;
  const void* context_ = nullptr;
  std::uint32_t first_phase_ = 0;  // of the job
  std::unique_ptr<Member[]> members_;
  alignas(64) std::atomic<std::uint32_t> job_{0};     // counts calls of run()
  alignas(64) std::atomic<std::uint32_t> inside_{0};  // threads other than the caller in the job; kOpen: may enter
  alignas(64) std::atomic<std::int64_t> done_{0};     // ranges of the phase
  alignas(64) std::atomic<std::uint32_t> phase_{0};   // counts phases, over all jobs
  std::atomic<bool> ends_{false};
  std::vector<std::jthread> workers_;
};

}  // namespace draftproof
