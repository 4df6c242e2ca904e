// Moves of KV entries after a verification step. The step wrote one entry per row of the request, the root's token and
// then its drafts, into a slot each. Accepted entries are kept, in order, in the request's first slots, as if they had
// been decoded plainly; the other slots are free again.
//
//   keep  row 0 and rows path[0] + 1, ..., path[tau - 1] + 1, in the slots of rows 0..tau;  free  the slots of the rest
//
// The accepted nodes ascend along a path, so path[k] + 1 >= k + 1: an entry moves to a slot of an earlier row or stays,
// and moves done in the order of the path never overwrite an entry that still has to move.
#pragma once

#include <cstddef>
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

// Appends the moves of a path to `moves`. slot_of(row): the slot of row 0 (the root's), 1, ..., K. The path is not
// checked.
template <class SlotOf>
void append_path_moves(std::span<const std::int32_t> path, SlotOf slot_of, std::vector<SlotMove>& moves) {
  for (std::size_t k = 0; k < path.size(); ++k) {
    const auto row = static_cast<std::size_t>(path[k]) + 1;
    if (row != k + 1) moves.push_back({slot_of(row), slot_of(k + 1)});
  }
}

// slots [K + 1]: of the root's row, then of the drafts'. path [tau]: the accepted nodes, tau <= K; of a chain 0, 1, ...
// Errors (input): a slot outside [0, num_slots) or given twice, a path that does not ascend or names no node.
SlotCommit commit_slots(std::span<const std::int64_t> slots, std::span<const std::int32_t> path,
                        std::int64_t num_slots);

}  // namespace draftproof
