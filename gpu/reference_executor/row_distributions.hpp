// The rows of a call as the reference sees them: a call's arrays become RowParameters, RowConstraints and History, and
// what the reference throws becomes a row status.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/draftproof.h"
#include "gpu/offset_guards.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/sampling/distribution.hpp"

namespace draftproof::reference_executor {

// An element of an optional array.
template <class T>
T value_of(const T* values, std::int64_t at, T off) {
  return values == nullptr ? off : values[at];
}

// Row `row` of a matrix of rows.
RowView row_view(const draftproof_rows& rows, std::int64_t row, std::int64_t vocab_size);

std::vector<float> floats_of(const RowView& view);

// Elements of a list whose offsets may be invalid; of such a list none.
template <class T>
struct GuardedList {
  std::span<const T> elements = {};
  bool valid = true;
};
template <class T>
GuardedList<T> guarded_list(const T* values, const ListRange& range) {
  return {{values + range.begin, static_cast<std::size_t>(range.count())}, range.valid};
}

// The drafted tokens that stand before a row, where the call has some.
GuardedList<Token> drafted_before(const draftproof_constraints& constraints, std::int64_t row);

// The request of a row; -1, of which there is none, where the call names one outside of [0, requests).
inline std::int64_t request_of_row(const std::int32_t* row_request, std::int64_t row, std::int64_t requests) {
  const std::int64_t request = row_request == nullptr ? row : row_request[row];
  return is_index(request, requests) ? request : -1;
}

RowParameters parameters_of(const draftproof_parameters& parameters, std::int64_t request);

// Rows of logits that go through the pipeline.
struct RowDistributionsInput {
  std::int64_t vocab_size = 0;
  draftproof_rows logits{};
  draftproof_rows unconditional{};
  draftproof_parameters parameters{};
  draftproof_constraints constraints{};
};

class RowDistributions {
 public:
  explicit RowDistributions(const RowDistributionsInput& input) : input_(input) {}

  // Fills `distribution` with that of a row of `request`, whose history goes on with `drafted` after what is committed.
  // Returns the draftproof_row_status; the distribution is meaningless where it is not 0. A distribution is good until
  // the next call. request: -1 refuses the row.
  std::int32_t process(std::int64_t row, std::int64_t request, const GuardedList<Token>& drafted,
                       Distribution& distribution);

  Pipeline& pipeline() { return pipeline_; }

 private:
  RowDistributionsInput input_;
  Pipeline pipeline_;
};

}  // namespace draftproof::reference_executor
