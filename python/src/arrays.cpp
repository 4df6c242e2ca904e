#include "python/src/arrays.hpp"

#include <optional>

namespace draftproof::python {
namespace {

std::optional<DType> dtype_of(const nb::dlpack::dtype& dtype) {
  if (dtype.lanes != 1) return std::nullopt;
  const auto code = static_cast<nb::dlpack::dtype_code>(dtype.code);
  if (code == nb::dlpack::dtype_code::Float && dtype.bits == 32) return DType::f32;
  if (code == nb::dlpack::dtype_code::Float && dtype.bits == 16) return DType::f16;
  if (code == nb::dlpack::dtype_code::Bfloat && dtype.bits == 16) return DType::bf16;
  return std::nullopt;
}

}  // namespace

RowMatrix Arguments::rows(const char* name) {
  using Array = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
  Array array;
  if (!has(name) || !nb::try_cast<Array>(values_[name], array, false))
    throw usage_error(name, "is no array of two dimensions in host memory; expected [rows, V]");
  const std::optional<DType> dtype = dtype_of(array.dtype());
  if (!dtype) throw usage_error(name, "has another dtype; expected float32, float16 or bfloat16");
  const auto rows = static_cast<std::int64_t>(array.shape(0));
  const auto vocab_size = static_cast<std::int64_t>(array.shape(1));
  const bool forward = rows == 0 || array.stride(0) >= vocab_size || array.stride(0) == 0 || rows < 2;
  if ((array.stride(1) != 1 && vocab_size > 1 && rows > 0) || !forward)
    throw usage_error(name, "has rows that are not contiguous; expected a row's elements side by side");
  if (reinterpret_cast<std::uintptr_t>(array.data()) % (*dtype == DType::f32 ? 4 : 2) != 0)
    throw usage_error(name, "is not aligned; expected whole elements of memory");
  RowMatrix matrix{*dtype, array.data(), rows, vocab_size, rows < 2 ? vocab_size : array.stride(0)};
  kept_.push_back(nb::cast(array));
  return matrix;
}

}  // namespace draftproof::python
