// The inside of the scheduler and its pools, for invariants and for the faults that their tests plant. Nothing else may
// include this.
#pragma once

#include <algorithm>

#include "engine/scheduler/scheduler.hpp"

namespace draftproof {

struct KvBlockInspection {
  static auto& blocks(auto& pool) { return pool.blocks_; }
  static auto& blank(auto& pool) { return pool.blank_; }
  static auto& num_cached(auto& pool) { return pool.num_cached_; }
  static std::int32_t oldest(const KvBlockPool& pool) { return pool.oldest_; }
  static std::int32_t newest(const KvBlockPool& pool) { return pool.newest_; }
  static std::size_t table_entries(const KvBlockPool& pool) {
    return pool.table_.size() - static_cast<std::size_t>(std::count(pool.table_.begin(), pool.table_.end(), kNoBlock));
  }
};

struct SchedulerInspection {
  static auto& blocks(auto& scheduler) { return scheduler.blocks_; }
  static auto& swap_blocks(auto& scheduler) { return scheduler.swap_blocks_; }
  static auto& requests(auto& scheduler) { return scheduler.requests_; }
  static auto& running(auto& scheduler) { return scheduler.running_; }
  static auto& vacant(auto& scheduler) { return scheduler.vacant_; }
  static auto& plan(auto& scheduler) { return scheduler.plan_; }
  static auto& metrics(auto& scheduler) { return scheduler.metrics_; }
  static RequestHandle first_waiting(const Scheduler& scheduler) { return scheduler.first_waiting_; }
  static bool outstanding(const Scheduler& scheduler) { return scheduler.outstanding_; }
};

}  // namespace draftproof
