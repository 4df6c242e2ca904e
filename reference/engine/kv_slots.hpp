// What becomes of the KV entries of a verification step. The step wrote one entry per row of the request, the root's
// token and then its drafts, into a slot each. What was accepted is kept, in order, in the request's first slots, as if
// it had been decoded plainly; the other slots are free again.
//
//   keep  row 0 and rows path[0] + 1, ..., path[tau - 1] + 1, in the slots of rows 0..tau;  free  the slots of the rest
//
// The accepted nodes ascend along a path, so path[k] + 1 >= k + 1: an entry moves to a slot of an earlier row or stays,
// and moves done in the order of the path never overwrite an entry that still has to move.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace draftproof {

struct SlotMove {
  std::int64_t from;
  std::int64_t to;

  friend bool operator==(const SlotMove&, const SlotMove&) = default;
};

struct SlotCommit {
  std::vector<SlotMove> moves;      // to be done in this order, in every layer; entries that stay are left out
  std::vector<std::int64_t> freed;  // ascending by row
};

// slots [K + 1]: of the root's row, then of the drafts'. path [tau]: the accepted nodes, tau <= K; of a chain 0, 1, ...
// Errors (input): a slot outside [0, num_slots) or given twice, a path that does not ascend or names no node.
SlotCommit commit_slots(std::span<const std::int64_t> slots, std::span<const std::int32_t> path,
                        std::int64_t num_slots);

}  // namespace draftproof
