// KV slot commit as a call: kernels/kv_slots.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/kv_slots.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

// Does everything that addresses an entry come in whole units of `bytes`?
bool comes_in_units_of(std::int64_t bytes, const draftproof_kv_commit_arguments& a) {
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(a.cache) % 16);
  return (address | a.layer_stride_bytes | a.slot_stride_bytes | a.slot_bytes) % bytes == 0;
}

template <class Word>
void launch_move(const draftproof_settings& settings, OperationMemory& memory, const draftproof_kv_commit_arguments& a,
                 Global<const std::int64_t> cu_num_draft_tokens, Global<const std::int32_t> num_accepted,
                 Global<const std::int64_t> slots, Global<const std::int32_t> status) {
  constexpr std::int64_t kBytes = sizeof(Word);
  const std::int64_t slot_words = a.slot_bytes / kBytes;
  const std::int64_t layer_stride = a.layer_stride_bytes / kBytes;
  const std::int64_t slot_stride = a.slot_stride_bytes / kBytes;
  const std::int64_t extent = (a.layers - 1) * layer_stride + (a.num_slots - 1) * slot_stride + slot_words;
  const std::uint32_t threads = block_threads(settings, 256);
  const std::int64_t column_blocks = (slot_words + threads - 1) / threads;
  launch(describe(settings, "move_entries", a.requests * a.layers * column_blocks, threads), move_entries<Word>,
         cu_num_draft_tokens, num_accepted, memory.input("path", a.path, a.requests * a.draft_len_max), a.draft_len_max,
         slots, status, memory.in_out("cache", static_cast<Word*>(a.cache), extent), a.layers, column_blocks,
         layer_stride, slot_stride, slot_words);
}

}  // namespace

void kv_commit(const draftproof_kv_commit_arguments& a, const draftproof_settings& settings) {
  if (a.requests == 0) return;
  OperationMemory memory(nullptr);
  const std::int64_t rows = a.draft_tokens_total + a.requests;
  const auto cu_num_draft_tokens = memory.input("cu_num_draft_tokens", a.cu_num_draft_tokens, a.requests + 1);
  const auto num_accepted = memory.input("num_accepted", a.num_accepted, a.requests);
  const auto slots = memory.input("slots", a.slots, rows);
  const auto status = memory.output("status", a.status, a.requests);
  launch(describe(settings, "commit_slots", a.requests, block_threads(settings, 128)), commit_slots,
         cu_num_draft_tokens, DraftShape{a.requests, a.draft_tokens_total, a.draft_len_max}, num_accepted,
         memory.input("path", a.path, a.requests * a.draft_len_max), slots, a.num_slots,
         memory.in_out("kv_len", a.kv_len, a.requests), memory.output("freed_slots", a.freed_slots, rows), status);
  const bool moves = a.path != nullptr && a.layers > 0 && a.slot_bytes > 0 && a.num_slots > 0;
  if (moves && comes_in_units_of(16, a)) {
    launch_move<uint4>(settings, memory, a, cu_num_draft_tokens, num_accepted, slots, status);
  } else if (moves && comes_in_units_of(4, a)) {
    launch_move<std::uint32_t>(settings, memory, a, cu_num_draft_tokens, num_accepted, slots, status);
  } else if (moves) {
    launch_move<std::uint8_t>(settings, memory, a, cu_num_draft_tokens, num_accepted, slots, status);
  }
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
