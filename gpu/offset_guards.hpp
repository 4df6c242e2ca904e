// Guards for offsets and indices in a caller's arrays, shared by kernels and reference: one that leads out of its array
// is not followed. How its row or request is reported: draftproof.h, "Offsets and indices".
#pragma once

#include <cstdint>

#include "base/host_device.hpp"

namespace draftproof {

DRAFTPROOF_HD inline bool is_index(std::int64_t index, std::int64_t count) {
  return index >= 0 && index < count;
}

// Is this a length of a sequence, in KV entries? Sums with the drafts of a step then never wrap.
DRAFTPROOF_HD inline bool kv_len_valid(std::int64_t kv_len) {
  return is_index(kv_len, std::int64_t{1} << 62);
}

// Elements [begin, end) of an array; none where they would not lie in it.
struct ListRange {
  std::int64_t begin;
  std::int64_t end;
  bool valid;

  DRAFTPROOF_HD std::int64_t count() const { return end - begin; }
};

// count: of the array.
DRAFTPROOF_HD inline ListRange list_range(std::int64_t begin, std::int64_t end, std::int64_t count) {
  const bool valid = begin >= 0 && begin <= end && end <= count;
  return {valid ? begin : 0, valid ? end : 0, valid};
}
// The same of a list that is given by its length.
DRAFTPROOF_HD inline ListRange list_range_of_length(std::int64_t begin, std::int64_t length, std::int64_t count) {
  const bool valid = begin >= 0 && begin <= count && length >= 0 && length <= count - begin;
  return {valid ? begin : 0, valid ? begin + length : 0, valid};
}

// The drafts of a call: cu_num_draft_tokens [requests + 1] cuts draft_tokens_total of them.
struct DraftShape {
  std::int64_t requests;
  std::int64_t draft_tokens_total;
  std::int64_t draft_len_max;
};

// The drafts [begin, end) of a request. Whatever the offsets are, the ranges of all requests follow each other from 0
// to draft_tokens_total: every draft and every row has one request, which writes it. Only a valid range is the
// caller's.
struct DraftRange {
  std::int64_t begin;
  std::int64_t end;
  bool valid;

  DRAFTPROOF_HD std::int64_t length() const { return end - begin; }
};

// An offset as far as it bounds a range; -1, which is below all, where it lies outside of the drafts.
DRAFTPROOF_HD inline std::int64_t bounding_offset(std::int64_t offset, const DraftShape& shape) {
  return offset >= 0 && offset <= shape.draft_tokens_total ? offset : -1;
}

// Drafts of a request with the offsets `first` and `last`. highest_before: the largest bounding_offset of the requests
// [1, request), 0 where there is none.
DRAFTPROOF_HD inline DraftRange draft_range(std::int64_t request, std::int64_t highest_before, std::int64_t first,
                                            std::int64_t last, const DraftShape& shape) {
  const std::int64_t own = request == 0 ? 0 : bounding_offset(first, shape);
  const std::int64_t begin = own > highest_before ? own : highest_before;
  const std::int64_t next = request + 1 == shape.requests ? shape.draft_tokens_total : bounding_offset(last, shape);
  const std::int64_t end = next > begin ? next : begin;
  return {begin, end, first == begin && last == end && end - begin <= shape.draft_len_max};
}

}  // namespace draftproof
