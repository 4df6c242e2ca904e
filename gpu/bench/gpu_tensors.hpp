// Tensors of the benchmark: made on the host from few distinct rows, which is quick, and kept on the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "gpu/device_memory.hpp"
#include "gpu/draftproof.h"

namespace draftproof::bench {

struct HostRows {
  std::vector<std::byte> bytes;  // [rows, vocab_size]
  std::int64_t rows;
  std::int64_t vocab_size;
  std::int32_t dtype;
};

// normal: normal logits of deviation 3; those of one position share their larger part between two seeds, as a draft and
// its target do. model: those of a language model (model_rows.hpp), peaked.
enum class RowShape : std::uint8_t { normal, model };

// The logits of a row of the model: its logits by rank over shuffled tokens, any vocabulary. Where that is not the
// model's, the ranks behind the first 1,024 are stretched or pressed, of equal mass.
std::vector<float> model_row(std::int64_t index, std::int64_t vocab_size);

// Rows of logits or (kind) probabilities. positions [rows]: what a row stands for; 32 distinct rows serve in turns.
HostRows bench_rows(std::uint64_t seed, const std::vector<std::int64_t>& positions, std::int64_t vocab_size,
                    std::int32_t kind, std::int32_t dtype, RowShape shape = RowShape::normal);

// The token of the given rank among the most probable of a row, rank below 32.
std::int64_t likely_token(const HostRows& rows, std::int64_t row, std::int64_t rank);

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Error (input) naming the file.
void write_file(const std::filesystem::path& file, const std::vector<std::byte>& bytes);

class GpuTensors {
 public:
  GpuTensors() : memory_(device::memory_of(DRAFTPROOF_CUDA)) {}
  ~GpuTensors() {
    for (void* const p : arrays_) memory_->release(p);
  }
  GpuTensors(const GpuTensors&) = delete;
  GpuTensors& operator=(const GpuTensors&) = delete;

  template <class T>
  T* output(std::int64_t count) {
    arrays_.push_back(memory_->allocate(static_cast<std::size_t>(count) * sizeof(T)));
    return static_cast<T*>(arrays_.back());
  }
  template <class T>
  const T* input(const std::vector<T>& values) {
    T* const array = output<T>(static_cast<std::int64_t>(values.size()));
    memory_->copy_in(array, values.data(), values.size() * sizeof(T));
    return array;
  }
  // Contents of an array, once all work is done.
  template <class T>
  std::vector<T> values(const T* array, std::int64_t count) const {
    std::vector<T> out(static_cast<std::size_t>(count));
    memory_->copy_out(out.data(), array, out.size() * sizeof(T));
    return out;
  }
  draftproof_rows rows(const HostRows& rows) { return {input(rows.bytes), rows.vocab_size, rows.dtype}; }

 private:
  std::unique_ptr<device::DeviceMemory> memory_;
  std::vector<void*> arrays_;
};

}  // namespace draftproof::bench
