// Typed reading of the tensors of a trace: dtypes, shapes, token ids and cumulative sums, each checked where it is
// read. Every error names the file, the tensor and the entry, and says what would be right.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/archives/safetensors.hpp"
#include "base/token.hpp"

namespace draftproof {

inline constexpr std::initializer_list<DType> kRowDTypes = {DType::f32, DType::f16, DType::bf16, DType::f64};
inline constexpr std::initializer_list<DType> kIndexDTypes = {DType::i32, DType::i64};

// The tensor, of one of these dtypes; nothing when the file has none of that name.
std::optional<TensorView> find_tensor(const SafetensorsFile& file, std::string_view name,
                                      std::initializer_list<DType> dtypes);

// `meaning` is the shape in letters: "[M, V]".
void require_shape(const TensorView& tensor, const std::vector<std::uint64_t>& shape, const std::string& meaning);

// "entry 3 is 17", the beginning of a complaint about one element.
std::string entry_is(std::uint64_t index, const std::string& value);

// One element of an i32 or i64 tensor.
std::int64_t integer_at(const TensorView& tensor, std::uint64_t index);

// Rows of binary64 rounded to binary32, which is what the pipeline takes; others as they are.
TensorView with_rows_of_binary32(TensorView tensor);

// One element of an f32, f64, i32 or i64 tensor, rounded to binary32.
float number_at(const TensorView& tensor, std::uint64_t index);

// Token ids: a view of the tensor where it is i32, else converted. A copy would refer into the original.
struct TokenTensor {
  TensorView tensor;  // owns what `tokens` refers to, unless it is `converted`
  std::vector<Token> converted;
  std::span<const Token> tokens;

  TokenTensor() = default;
  TokenTensor(TokenTensor&&) = default;
  TokenTensor& operator=(TokenTensor&&) = default;
};
// Error: an id outside [0, vocab_size); `padded` allows kPaddingToken too.
TokenTensor read_tokens(TensorView tensor, std::int64_t vocab_size, bool padded);

// Inclusive cumulative sums as B + 1 offsets, the first one 0. Errors: sums that fall, or do not end at `total`, which
// `total_meaning` explains.
std::vector<std::int64_t> read_cumulative_sums(const TensorView& tensor, std::uint64_t total,
                                               const std::string& total_meaning);

}  // namespace draftproof
