// The request that each row belongs to.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"
#include "gpu/offset_guards.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct RowRequests {
  Global<const std::int32_t> named;  // [rows]; null: row r is request r
  std::int64_t requests;

  // A row of no request is refused.
  __device__ bool valid(std::int64_t row) const { return is_index(request_named(row), requests); }
  // The request whose parameters a kernel may read for a row; request 0 for a refused row.
  __device__ std::int64_t of(std::int64_t row) const {
    const std::int64_t request = request_named(row);
    return is_index(request, requests) ? request : 0;
  }

 private:
  __device__ std::int64_t request_named(std::int64_t row) const {
    return named == nullptr ? row : static_cast<std::int64_t>(static_cast<std::int32_t>(named[row]));
  }
};

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
