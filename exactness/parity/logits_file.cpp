#include "exactness/parity/logits_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr std::array<const char*, 4> kNames{"logits", "requests", "positions", "draft_positions"};

std::vector<std::int64_t> numbers_of(const SafetensorsFile& file, const char* name, std::size_t rows) {
  const TensorView tensor = file.tensor(name);
  if (tensor.shape != std::vector<std::uint64_t>{rows})
    throw input_error(tensor.where, "holds " + std::to_string(tensor.element_count()) + " numbers; expected " +
                                        std::to_string(rows) + ", one for each row of logits");
  std::vector<std::int64_t> numbers;
  if (tensor.dtype == DType::i32) {
    const auto values = tensor.as<std::int32_t>();
    numbers.assign(values.begin(), values.end());
  } else {
    const auto values = tensor.as<std::int64_t>();
    numbers.assign(values.begin(), values.end());
  }
  for (std::size_t r = 0; r < rows; ++r)
    if (numbers[r] < 0)
      throw input_error(tensor.where, "row " + std::to_string(r) + " is " + std::to_string(numbers[r]) +
                                          "; expected a number of 0 or more");
  return numbers;
}

}  // namespace

std::string RowPlace::text() const {
  std::string text = "request " + std::to_string(request) + ", position " + std::to_string(position);
  if (draft_position >= 0) text += ", row " + std::to_string(draft_position) + " of its step";
  return text;
}

void LogitsFile::row(std::size_t r, std::vector<float>& out) const {
  const std::size_t size = vocab_size();
  out.resize(size);
  const std::byte* const data = logits.bytes.data() + r * size * dtype_size_bytes(logits.dtype);
  if (logits.dtype == DType::f32) {
    std::memcpy(out.data(), data, size * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < size; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, data + i * sizeof bits, sizeof bits);
    out[i] = logits.dtype == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

LogitsFile read_logits_file(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  for (const std::string& name : file.names())
    if (std::ranges::find(kNames, name) == kNames.end())
      throw input_error(path, "has a tensor '" + name + "'; expected logits, requests, positions and draft_positions");
  LogitsFile read{path, file.tensor("logits"), {}};
  const TensorView& logits = read.logits;
  if (logits.dtype != DType::f32 && logits.dtype != DType::f16 && logits.dtype != DType::bf16)
    throw input_error(logits.where,
                      "is of dtype " + std::string(dtype_name(logits.dtype)) + "; expected F32, F16 or BF16");
  if (logits.shape.size() != 2 || logits.shape[0] < 1 || logits.shape[1] < 2)
    throw input_error(logits.where, "is no matrix of rows over a vocabulary; expected [N, V], N >= 1, V >= 2");
  const auto rows = static_cast<std::size_t>(logits.shape[0]);
  read.places.resize(rows);
  read.has_requests = file.contains("requests");
  read.has_positions = file.contains("positions");
  const auto requests = read.has_requests ? numbers_of(file, "requests", rows) : std::vector<std::int64_t>(rows, 0);
  const auto in_steps = file.contains("draft_positions") ? numbers_of(file, "draft_positions", rows)
                                                         : std::vector<std::int64_t>(rows, -1);
  std::vector<std::int64_t> positions;
  if (read.has_positions) positions = numbers_of(file, "positions", rows);
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::size_t r = 0; r < rows; ++r) {
    read.places[r] = {requests[r], read.has_positions ? positions[r] : static_cast<std::int64_t>(r), in_steps[r]};
    if (!seen.emplace(read.places[r].request, read.places[r].position).second)
      throw input_error(path, "has two rows of " + read.places[r].text() + ", the second of them row " +
                                  std::to_string(r) + "; expected one");
  }
  return read;
}

}  // namespace draftproof
