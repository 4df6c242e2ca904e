#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "gpu/executors.hpp"
#include "gpu/reference_executor/draft_ranges.hpp"
#include "reference/verify/kv_slots.hpp"

namespace draftproof::reference_executor {
namespace {

// The accepted nodes of a request. Error (input): the array does not say that there are num_accepted of them.
std::vector<std::int32_t> path_of(const draftproof_kv_commit_arguments& a, std::int64_t request, std::int64_t nodes) {
  const std::int32_t num_accepted = a.num_accepted[request];
  if (num_accepted < 0 || num_accepted > nodes) throw input_error("num_accepted", "expected 0 to the draft's length");
  std::vector<std::int32_t> path(static_cast<std::size_t>(num_accepted));
  if (a.path == nullptr) {
    std::iota(path.begin(), path.end(), 0);
    return path;
  }
  const std::int32_t* given = a.path + request * a.draft_len_max;
  std::copy_n(given, num_accepted, path.begin());
  if (std::any_of(given + num_accepted, given + a.draft_len_max, [](std::int32_t node) { return node != -1; }))
    throw input_error("path", "it is longer than num_accepted");
  return path;
}

void move_entry(const draftproof_kv_commit_arguments& a, const SlotMove& move) {
  for (std::int64_t layer = 0; layer < a.layers; ++layer) {
    std::byte* entries = static_cast<std::byte*>(a.cache) + layer * a.layer_stride_bytes;
    std::memcpy(entries + move.to * a.slot_stride_bytes, entries + move.from * a.slot_stride_bytes,
                static_cast<std::size_t>(a.slot_bytes));
  }
}

}  // namespace

void kv_commit(const draftproof_kv_commit_arguments& a, const draftproof_settings&) {
  const std::vector<DraftRange> ranges = draft_ranges(a);
  for (std::int64_t b = 0; b < a.requests; ++b) {
    const DraftRange& range = ranges[static_cast<std::size_t>(b)];
    const std::int64_t first_row = range.begin + b;
    const std::int64_t nodes = range.length();
    const std::span<const std::int64_t> slots(a.slots + first_row, static_cast<std::size_t>(nodes + 1));
    std::int64_t* freed = a.freed_slots + first_row;
    std::fill_n(freed, nodes + 1, -1);
    const bool valid = range.valid && kv_len_valid(a.kv_len[b]);
    a.status[b] = valid ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_ID;
    if (!valid) continue;
    try {
      const std::vector<std::int32_t> path = path_of(a, b, nodes);
      const SlotCommit commit = commit_slots(slots, path, a.num_slots);
      for (const SlotMove& move : commit.moves) move_entry(a, move);
      std::ranges::copy(commit.freed, freed + path.size() + 1);
      a.kv_len[b] += static_cast<std::int64_t>(path.size()) + 1;
    } catch (const Error&) {
      a.status[b] = DRAFTPROOF_ROW_BAD_ID;
    }
  }
}

}  // namespace draftproof::reference_executor
