#include "reference/model/transformer/thread_team.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace draftproof {
namespace {

// About 100 us: longer than a phase, and than what lies between two passes of a decoding loop.
constexpr int kSpins = 4000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(int threads)
    : threads_(threads), spins_(static_cast<unsigned>(threads) > std::thread::hardware_concurrency() ? 0 : kSpins) {
  for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
}

ThreadTeam::~ThreadTeam() {
  job_.store(-1, std::memory_order_release);
  job_.notify_all();
}

void ThreadTeam::wait_while(const std::atomic<std::int32_t>& value, std::int32_t old) const {
  for (int i = 0; i < spins_; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

void ThreadTeam::work(int thread) {
  for (std::int32_t seen = 0;;) {
    wait_while(job_, seen);
    const std::int32_t job = job_.load(std::memory_order_acquire);
    if (job < 0) return;
    seen = job;
    body_(context_, thread);
    barrier();
  }
}

void ThreadTeam::run_erased(Erased body, const void* context) {
  body_ = body;
  context_ = context;
  if (threads_ > 1) {
    job_.store((job_.load(std::memory_order_relaxed) + 1) & 0x3fffffff, std::memory_order_release);
    job_.notify_all();
  }
  body(context, 0);
  barrier();
}

void ThreadTeam::barrier() {
  if (threads_ == 1) return;
  const std::int32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < threads_) return wait_while(phase_, phase);
  arrived_.store(0, std::memory_order_relaxed);
  phase_.store((phase + 1) & 0x3fffffff, std::memory_order_release);
  phase_.notify_all();
}

}  // namespace draftproof
