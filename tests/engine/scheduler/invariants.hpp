// Invariants of a scheduler after every plan() and every commit(), found by counting everything again. It costs a pass
// over all blocks and requests: for tests, and on demand.
//
//   blocks      every block is blank, findable or held, and in the one list of its kind; as many are held by the tables
//               of the requests as the pool counts, block by block, in the swap space too
//   slots       no slot holds two live tokens: a block in two tables is findable by the key that both streams have at
//               its place, and findable blocks are full and written by nobody
//   traces      no block lies behind the last computed position; after commit() nothing is computed of drafts that were
//               not accepted; what waits holds nothing
//   order       running and waiting requests are in order of arrival, the running ones first
//   counters    the metrics are those of a recount
//   starvation  the oldest request is in every plan; under the two-phase policy only in one of 2 (prefill_steps_max +
//               1) from the moment that it is the oldest, which one look cannot tell: it runs
#pragma once

#include "engine/scheduler/scheduler.hpp"
#include "tests/support/test.hpp"

namespace draftproof {

// The inside of the scheduler and its pools, for invariants and for the faults that their tests plant. Nothing else may
// include this.

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

// The first invariant that does not hold, as "name: what was found"; nothing where all hold.
std::optional<std::string> violated_invariant(const Scheduler& scheduler);

}  // namespace draftproof
