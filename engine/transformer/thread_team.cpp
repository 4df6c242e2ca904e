#include "engine/transformer/thread_team.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace draftproof {
namespace {

// About 50 us: longer than a phase, and than what lies between two passes of a decoding loop.
constexpr int kSpins = 3000;
constexpr std::uint32_t kOpen = 1u << 31;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(int threads)
    : threads_(threads),
      spins_(static_cast<unsigned>(threads) > std::thread::hardware_concurrency() ? 0 : kSpins),
      members_(std::make_unique<Member[]>(static_cast<std::size_t>(threads))) {
  for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
}

ThreadTeam::~ThreadTeam() {
  ends_.store(true, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
}

template <class T>
void ThreadTeam::wait_while(const std::atomic<T>& value, T old) const {
  for (int i = 0; i < spins_; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}
template void ThreadTeam::wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) const;

std::int64_t ThreadTeam::claim(int of, std::uint32_t phase, std::int64_t count) {
  std::atomic<std::uint64_t>& cursor = members_[static_cast<std::size_t>(of)].cursor;
  std::uint64_t seen = cursor.load(std::memory_order_acquire);
  for (;;) {
    const auto ahead = static_cast<std::int32_t>(static_cast<std::uint32_t>(seen >> 32) - phase);
    // In an earlier phase all that it counts is done.
    const std::int64_t claimed = ahead < 0 ? 0 : static_cast<std::int64_t>(seen & 0xffffffffu);
    if (ahead > 0 || claimed >= count) return -1;
    const std::uint64_t next = std::uint64_t{phase} << 32 | static_cast<std::uint64_t>(claimed + 1);
    if (cursor.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_acquire)) return claimed;
  }
}

void ThreadTeam::end_phase(std::uint32_t phase) {
  const std::uint32_t next = phase + 1;
  done_.store(0, std::memory_order_relaxed);
  phase_.store(next, std::memory_order_release);
  phase_.notify_all();
}

void ThreadTeam::work(int thread) {
  for (std::uint32_t seen = 0;;) {
    wait_while(job_, seen);
    seen = job_.load(std::memory_order_acquire);
    if (ends_.load(std::memory_order_relaxed)) return;
    std::uint32_t inside = inside_.load(std::memory_order_acquire);
    while ((inside & kOpen) != 0 && !inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acq_rel)) {
    }
    if ((inside & kOpen) == 0) continue;  // it woke too late
    seen = job_.load(std::memory_order_acquire);
    members_[static_cast<std::size_t>(thread)].phase = first_phase_;
    body_(context_, thread);
    inside_.fetch_sub(1, std::memory_order_acq_rel);
    inside_.notify_all();
  }
}

void ThreadTeam::run_erased(Erased body, const void* context) {
  first_phase_ = phase_.load(std::memory_order_relaxed);
  members_[0].phase = first_phase_;
  if (threads_ == 1) return body(context, 0);
  body_ = body;
  context_ = context;
  inside_.store(kOpen, std::memory_order_release);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  body(context, 0);
  std::uint32_t inside = inside_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  while (inside != 0) {
    wait_while(inside_, inside);
    inside = inside_.load(std::memory_order_acquire);
  }
}

}  // namespace draftproof
