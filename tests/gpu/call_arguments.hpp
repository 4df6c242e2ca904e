// Calls of gpu/api.hpp that are to be refused: every array is the same memory, which nobody may follow.
#pragma once

#include "gpu/api.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

alignas(256) inline std::array<std::byte, 1 << 16> refused_memory;

template <class T>
T* any() {
  return reinterpret_cast<T*>(refused_memory.data());
}

inline draftproof_rows rows_of(std::int64_t vocab_size) {
  return {refused_memory.data(), vocab_size, DRAFTPROOF_F32};
}

// Two requests with five drafts; what their rows are is missing.
inline draftproof_verify_arguments verify_call() {
  draftproof_verify_arguments a{};
  a.requests = 2;
  a.draft_tokens_total = 5;
  a.draft_len_max = 3;
  a.vocab_size = 100;
  a.draft_tokens = any<std::int32_t>();
  a.cu_num_draft_tokens = any<std::int64_t>();
  a.randomness = {any<std::uint64_t>(), any<std::uint32_t>()};
  a.num_accepted = a.tokens = a.status = any<std::int32_t>();
  return a;
}

inline draftproof_kv_commit_arguments kv_commit_call() {
  draftproof_kv_commit_arguments a{};
  a.requests = 2;
  a.draft_tokens_total = 5;
  a.draft_len_max = 3;
  a.cu_num_draft_tokens = any<std::int64_t>();
  a.num_accepted = a.path = a.status = any<std::int32_t>();
  a.slots = a.kv_len = a.freed_slots = any<std::int64_t>();
  a.num_slots = 8;
  a.cache = refused_memory.data();
  a.layers = 2;
  a.layer_stride_bytes = 128;
  a.slot_stride_bytes = a.slot_bytes = 16;
  return a;
}

}  // namespace draftproof::testing
