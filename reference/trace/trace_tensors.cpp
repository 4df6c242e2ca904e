#include "reference/trace/trace_tensors.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace draftproof {

std::optional<TensorView> find_tensor(const SafetensorsFile& file, std::string_view name,
                                      std::initializer_list<DType> dtypes) {
  if (!file.contains(name)) return std::nullopt;
  TensorView tensor = file.tensor(name);
  if (std::find(dtypes.begin(), dtypes.end(), tensor.dtype) != dtypes.end()) return tensor;
  std::string right;
  for (const DType dtype : dtypes) right.append(right.empty() ? "" : " or ").append(dtype_name(dtype));
  throw input_error(tensor.where, "has dtype " + std::string(dtype_name(tensor.dtype)) + "; expected " + right);
}

void require_shape(const TensorView& tensor, const std::vector<std::uint64_t>& shape, const std::string& meaning) {
  if (tensor.shape != shape)
    throw input_error(tensor.where,
                      "has shape " + shape_text(tensor.shape) + "; expected " + meaning + " = " + shape_text(shape));
}

std::string entry_is(std::uint64_t index, const std::string& value) {
  return "entry " + std::to_string(index) + " is " + value;
}

TensorView with_rows_of_binary32(TensorView tensor) {
  if (tensor.dtype != DType::f64) return tensor;
  const std::span<const double> values = tensor.as<double>();
  const auto rounded = std::make_shared<std::vector<float>>(values.begin(), values.end());
  tensor.dtype = DType::f32;
  tensor.bytes = std::as_bytes(std::span(*rounded));
  tensor.owner = rounded;
  return tensor;
}

float number_at(const TensorView& tensor, std::uint64_t index) {
  if (tensor.dtype == DType::f32) return tensor.as<float>()[index];
  if (tensor.dtype == DType::f64) return static_cast<float>(tensor.as<double>()[index]);
  return static_cast<float>(integer_at(tensor, index));
}

std::int64_t integer_at(const TensorView& tensor, std::uint64_t index) {
  if (tensor.dtype == DType::i32) return tensor.as<std::int32_t>()[index];
  return tensor.as<std::int64_t>()[index];
}

TokenTensor read_tokens(TensorView tensor, std::int64_t vocab_size, bool padded) {
  TokenTensor result;
  const std::size_t count = tensor.element_count();
  const std::int64_t least = padded ? kPaddingToken : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t id = integer_at(tensor, i);
    if (id < least || id >= vocab_size)
      throw input_error(tensor.where, entry_is(i, std::to_string(id)) + "; expected ids in [0, " +
                                          std::to_string(vocab_size) + ")" + (padded ? " and -1 (padding)" : ""));
  }
  if (tensor.dtype == DType::i32) {
    result.tokens = tensor.as<Token>();
  } else {
    result.converted.reserve(count);
    for (const std::int64_t id : tensor.as<std::int64_t>()) result.converted.push_back(static_cast<Token>(id));
    result.tokens = result.converted;
  }
  result.tensor = std::move(tensor);
  return result;
}

std::vector<std::int64_t> read_cumulative_sums(const TensorView& tensor, std::uint64_t total,
                                               const std::string& total_meaning) {
  std::vector<std::int64_t> offsets = {0};
  const std::size_t count = tensor.element_count();
  offsets.reserve(count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t sum = integer_at(tensor, i);
    if (sum < offsets.back())
      throw input_error(tensor.where, entry_is(i, std::to_string(sum)) +
                                          "; inclusive cumulative sums never fall, expected " +
                                          std::to_string(offsets.back()) + " or more");
    offsets.push_back(sum);
  }
  if (static_cast<std::uint64_t>(offsets.back()) != total)
    throw input_error(tensor.where, "ends at " + std::to_string(offsets.back()) + "; expected " + total_meaning +
                                        " = " + std::to_string(total) +
                                        " (inclusive cumulative sums, one per request, without a leading 0)");
  return offsets;
}

}  // namespace draftproof
