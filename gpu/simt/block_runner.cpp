#include "gpu/simt/block_runner.hpp"

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"

namespace draftproof::simt {
namespace {

CudaIndex split(std::uint64_t linear, const Extent& extent) {
  return {static_cast<std::uint32_t>(linear % extent.x), static_cast<std::uint32_t>(linear / extent.x % extent.y),
          static_cast<std::uint32_t>(linear / extent.x / extent.y)};
}

std::string text_of(const CudaIndex& i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}

}  // namespace

BlockRunner::BlockRunner(const LaunchDescription& description, const std::function<void()>& kernel,
                         std::uint64_t first_ticket)
    : description_(description),
      kernel_(kernel),
      first_ticket_(first_ticket),
      thread_count_(static_cast<std::uint32_t>(description.block.count())),
      shared_(description.dynamic_shared_bytes),
      threads_(thread_count_),
      warps_((thread_count_ + kLanes - 1) / kLanes) {
  for (std::uint32_t thread = 0; thread < thread_count_; ++thread) {
    warps_[thread / kLanes].exists |= 1U << thread % kLanes;
    threads_[thread].index = split(thread, description_.block);
  }
}

// --- Scheduling: a random ready thread runs until it waits; when none is ready, the barrier opens or there is a fault.

void BlockRunner::run(std::uint32_t block) {
  start(block);
  while (!error_ && finished_ != thread_count_) {
    run_until_all_wait();
    if (error_ || finished_ == thread_count_) break;
    if (at_barrier_ == thread_count_) {
      release_barrier();
    } else {
      error_ = why_nobody_can_go_on();
    }
  }
  if (error_) cancel_the_rest();
  running_block = nullptr;
  if (error_) std::rethrow_exception(error_);
}

void BlockRunner::start(std::uint32_t block) {
  block_ = block;
  epoch_ = (first_ticket_ + block) << kEpochBits;
  schedule_.emplace(description_.seed, block);
  shared_.begin_block();
  at_barrier_ = finished_ = 0;
  error_ = nullptr;
  running_block = this;
  const Extent& b = description_.block;
  const Extent& g = description_.grid;
  blockIdx = split(block, g);
  blockDim = {b.x, b.y, b.z};
  gridDim = {g.x, g.y, g.z};
  for (Warp& warp : warps_) warp.waits = 0;
  ready_.clear();
  for (std::uint32_t thread = 0; thread < thread_count_; ++thread) {
    threads_[thread].fibre.emplace([this, thread] { thread_body(thread); });
    threads_[thread].state = State::ready;
    ready_.push_back(thread);
  }
}

void BlockRunner::thread_body(std::uint32_t thread) {
  try {
    if (!error_) kernel_();
  } catch (const Cancelled&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  threads_[thread].state = State::finished;
  ++finished_;
}

void BlockRunner::switch_to(std::uint32_t thread) {
  accessor_ = {epoch_, thread, &warps_[thread / kLanes].clock};
  threadIdx = threads_[thread].index;
  threads_[thread].fibre->resume();
}

void BlockRunner::suspend() {
  threads_[accessor_.thread].fibre->suspend();
  if (error_) throw Cancelled{};
}

void BlockRunner::run_until_all_wait() {
  while (!ready_.empty() && !error_) {
    std::swap(ready_[schedule_->below(static_cast<std::uint32_t>(ready_.size()))], ready_.back());
    const std::uint32_t thread = ready_.back();
    ready_.pop_back();
    switch_to(thread);
  }
}

void BlockRunner::release_barrier() {
  ++epoch_;
  at_barrier_ = 0;
  for (std::uint32_t thread = 0; thread < thread_count_; ++thread) {
    threads_[thread].state = State::ready;
    ready_.push_back(thread);
  }
}

void BlockRunner::cancel_the_rest() {
  const std::exception_ptr first = error_;
  for (std::uint32_t thread = 0; thread < thread_count_; ++thread) {
    if (threads_[thread].state != State::finished) switch_to(thread);
  }
  error_ = first;
}

// --- What threads call. ----------------------------------------------------------------------------------------------

void BlockRunner::barrier(const std::source_location& place) {
  Thread& self = threads_[accessor_.thread];
  if (at_barrier_ == 0) {
    first_at_barrier_ = accessor_.thread;
  } else if (!same_place(threads_[first_at_barrier_].barrier, place)) {
    fault("divergent barrier: waits in __syncthreads at " + simt::text_of(place) + ", but thread " +
          thread_name(first_at_barrier_) + " " + whereabouts(first_at_barrier_));
  }
  self.barrier = place;
  self.state = State::at_barrier;
  ++at_barrier_;
  suspend();
}

std::uint64_t BlockRunner::collective(Collective kind, std::uint32_t mask, std::uint64_t value, std::uint32_t source,
                                      const std::source_location& place) {
  const std::uint32_t self = accessor_.thread;
  const std::uint32_t lane = self % kLanes;
  Warp& warp = warps_[self / kLanes];
  Meeting& mine = warp.meetings[lane];
  mine = {kind, mask, source, value, 0, place};
  const auto say = [&](const std::string& what) {
    char hex[16];
    std::snprintf(hex, sizeof(hex), "0x%08x", mask);
    fault(std::string(name_of(kind)) + " at " + simt::text_of(place) + " with mask " + hex + what);
  };
  if ((mask >> lane & 1) == 0) say(": the mask does not name the calling lane " + std::to_string(lane));
  if ((warp.expected(mine) >> source & 1) == 0) {
    say(" reads lane " + std::to_string(source) + ", which takes no part: its value is undefined");
  }
  threads_[self].state = State::in_collective;
  warp.waits |= 1U << lane;
  if (warp.missing(mine) != kLanes) {
    suspend();
    return mine.result;
  }
  const std::uint32_t lanes = warp.expected(mine);
  warp.complete(mine);
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    if ((lanes >> i & 1) == 0) continue;
    const std::uint32_t thread = self - lane + i;
    threads_[thread].state = State::ready;
    ready_.push_back(thread);
  }
  suspend();  // the last to come is not the first to go on, or the order would be less than random
  return mine.result;
}

Region& BlockRunner::static_shared(const void* tag, const char* name, std::uint64_t bytes, std::uint32_t element_bytes,
                                   std::uint32_t alignment) {
  const std::uint64_t limit = std::min(kStaticSharedBytesMax, kSharedBytesMax - description_.dynamic_shared_bytes);
  Region* const region = shared_.array(tag, name, bytes, element_bytes, alignment, limit);
  if (region == nullptr) {
    fault(std::string("shared array ") + name + ": the static arrays of a block exceed the " + std::to_string(limit) +
          " bytes that " + std::to_string(description_.dynamic_shared_bytes) + " dynamic bytes leave them");
  }
  return *region;
}

// --- Faults. ---------------------------------------------------------------------------------------------------------

std::exception_ptr BlockRunner::why_nobody_can_go_on() const {
  for (std::uint32_t thread = 0; thread < thread_count_; ++thread) {
    if (threads_[thread].state != State::in_collective) continue;
    const std::uint32_t warp = thread / kLanes;
    const std::uint32_t absent = warps_[warp].missing(warps_[warp].meetings[thread % kLanes]);
    return fault_of(thread, whereabouts(thread) + " for lane " + std::to_string(absent) + ", but that thread " +
                                whereabouts(warp * kLanes + absent));
  }
  const auto with_state = [&](State state) {
    return static_cast<std::uint32_t>(
        std::find_if(threads_.begin(), threads_.end(), [&](const Thread& thread) { return thread.state == state; }) -
        threads_.begin());
  };
  const std::uint32_t waiting = with_state(State::at_barrier);
  const std::uint32_t gone = with_state(State::finished);
  return fault_of(waiting, "divergent barrier: " + whereabouts(waiting) + ", but thread " + thread_name(gone) + " " +
                               whereabouts(gone));
}

std::string BlockRunner::whereabouts(std::uint32_t thread) const {
  const Meeting& meeting = warps_[thread / kLanes].meetings[thread % kLanes];
  switch (threads_[thread].state) {
    case State::at_barrier:
      return "waits in __syncthreads at " + simt::text_of(threads_[thread].barrier);
    case State::in_collective: {
      char hex[16];
      std::snprintf(hex, sizeof(hex), "0x%08x", meeting.mask);
      return std::string("waits in ") + name_of(meeting.kind) + " at " + simt::text_of(meeting.place) + " with mask " +
             hex;
    }
    case State::finished:
      return "has finished";
    case State::ready:
      return "is ready";
  }
  return "";
}

std::string BlockRunner::thread_name(std::uint32_t thread) const {
  return text_of(split(thread, description_.block));
}

bool BlockRunner::block_name(std::uint64_t ticket, std::string& name) const {
  if (ticket < first_ticket_ || ticket - first_ticket_ >= description_.grid.count()) return false;
  name = "block " + text_of(split(ticket - first_ticket_, description_.grid));
  return true;
}

std::string BlockRunner::where(std::uint32_t thread) const {
  return "kernel " + description_.kernel + ", block " + text_of(split(block_, description_.grid)) + ", thread " +
         thread_name(thread) + ", seed " + std::to_string(description_.seed);
}

std::exception_ptr BlockRunner::fault_of(std::uint32_t thread, const std::string& what) const {
  return std::make_exception_ptr(Error(ErrorKind::internal, where(thread), what));
}

}  // namespace draftproof::simt
