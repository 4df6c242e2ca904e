// The rows of a call as the reference sees them: a call's arrays become RowParameters, RowConstraints and History, and
// what the reference throws becomes a row status.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/draftproof.h"
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

// The drafted tokens that stand before a row, where the call has some.
std::span<const Token> drafted_before(const draftproof_constraints& constraints, std::int64_t row);

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
  // the next call.
  std::int32_t process(std::int64_t row, std::int64_t request, std::span<const Token> drafted,
                       Distribution& distribution);

  Pipeline& pipeline() { return pipeline_; }

 private:
  RowDistributionsInput input_;
  Pipeline pipeline_;
};

}  // namespace draftproof::reference_executor
