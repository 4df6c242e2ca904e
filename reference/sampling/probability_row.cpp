#include "reference/sampling/probability_row.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof {

float element_of(const RowView& row, std::int64_t column) {
  float scratch = 0.0f;
  return *elements_of(row, column, 1, &scratch);
}

const float* elements_of(const RowView& row, std::int64_t begin, std::size_t count, float* scratch) {
  switch (row.dtype) {
    case DType::f32:
      return static_cast<const float*>(row.data) + begin;
    case DType::f16:
      row_kernels().convert_f16(static_cast<const std::uint16_t*>(row.data) + begin, count, scratch);
      return scratch;
    case DType::bf16:
      row_kernels().convert_bf16(static_cast<const std::uint16_t*>(row.data) + begin, count, scratch);
      return scratch;
    default:
      throw Error(ErrorKind::internal, "row", "element type is not one of f32, f16, bf16");
  }
}

RowError bad_sum(const RowName& row) {
  return {RowStatus::bad_sum, row, -1, "the probabilities sum to more than 3; expected 1"};
}

RowError all_zero(const RowName& row) {
  return {RowStatus::all_zero, row, -1, "every probability is 0; expected a sum of 1"};
}

float ProbabilityRow::probability(Token token) const {
  const float p = element_of(view_, token);
  if (!(p >= 0.0f && p <= 1.0f))
    throw RowError(RowStatus::bad_probability, row_, token,
                   "the probability is " + std::to_string(p) + "; expected a number in [0, 1]");
  return p;
}

const float* ProbabilityRow::probabilities_in(std::size_t begin, std::size_t count, float* scratch) const {
  return elements_of(view_, static_cast<std::int64_t>(begin), count, scratch);
}

}  // namespace draftproof
