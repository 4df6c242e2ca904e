// The distribution of a row that is given as probabilities, taken as already processed (trace files, other engines'
// tensors).
#pragma once

#include <cstdint>

#include "base/dtype.hpp"
#include "base/token.hpp"
#include "reference/numerics/fixed_point.hpp"
#include "reference/sampling/row_status.hpp"

namespace draftproof {

// A view of one row of a tensor: V elements of f32, f16 or bf16.
struct RowView {
  DType dtype = DType::f32;
  const void* data = nullptr;
  std::int64_t vocab_size = 0;
};

// One element as float, exact.
float element_of(const RowView& row, std::int64_t column);

// Elements [begin, begin + count) as floats: in place for f32, else converted into `scratch` [count].
const float* elements_of(const RowView& row, std::int64_t begin, std::size_t count, float* scratch);

// Rows that are no distribution: a sum above 3, whose masses could overflow, and one of 0.
RowError bad_sum(const RowName& row);
RowError all_zero(const RowName& row);

// The mass of token i is RNE(p_i 2^62); the row is not normalised again.
class ProbabilityRow {
 public:
  ProbabilityRow() = default;
  // `row` is the number that errors print. Elements are checked when they are read: each must be a number in [0, 1].
  ProbabilityRow(const RowView& view, const RowName& row) : view_(view), row_(row) {}

  std::int64_t vocab_size() const { return view_.vocab_size; }
  float probability(Token token) const;
  const float* probabilities_in(std::size_t begin, std::size_t count, float* scratch) const;
  const RowName& row() const { return row_; }

 private:
  RowView view_;
  RowName row_;
};

}  // namespace draftproof
