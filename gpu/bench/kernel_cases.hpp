// The measurements of `draftproof bench --device cuda`: calls on tensors of a size that engines meet, each with the
// bytes that must move at least.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace draftproof::bench {

struct KernelSizes {
  std::int64_t requests = 64;
  std::int64_t draft_len = 5;
  std::int64_t vocab_size = 128256;
  std::int64_t sample_rows = 1024;
  std::int64_t sample_vocab_size = 200000;
};

// A call that can be started again and again; it keeps its tensors on the GPU while it lives.
struct KernelWork {
  std::uint64_t bytes;                      // that must be read or written, at least
  std::function<void(void* stream)> start;  // asynchronous on a cudaStream_t; may be captured into a graph
};

struct KernelCase {
  std::string name;
  std::string what;               // sizes and element types in words
  std::optional<double> goal_ms;  // on an H200, at the default sizes
  std::function<KernelWork()> prepare;
};

// write_inputs: a folder that gets the tensors of the cases that a peer is compared with (README.md), or empty.
std::vector<KernelCase> kernel_cases(const KernelSizes& sizes, const std::filesystem::path& write_inputs);

}  // namespace draftproof::bench
