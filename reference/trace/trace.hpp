// A trace file: one verification step of a batch as an engine dumped it, read as verify requests. The format is
// docs/trace.md; the container is safetensors.hpp.
//
// Rows are never copied: the requests' matrices and masks are views of the file's bytes, which are read once.
// Everything else that a file can lie about is checked when it is opened, so that a trace that opens has valid
// requests; what is in the rows of logits (NaN, +inf, nothing left) is found when they are processed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/step/request.hpp"
#include "reference/trace/trace_kind.hpp"
#include "reference/trace/trace_settings.hpp"

namespace draftproof {

struct TraceOptions {
  std::vector<TraceSetting> overrides;  // win over the file's metadata
  bool check_rows = true;               // every row of target_probs and draft_probs sums to 1: reads them all
  int threads = 1;                      // for that check
  TraceKind kind = TraceKind::steps;
};

struct TraceContents;
class SafetensorsFile;

class Trace {
 public:
  // Errors (input, or usage for parameters and settings) naming the file, the tensor, the entry and what would be
  // right.
  static Trace open(const std::string& path, const TraceOptions& options = {});

  // B requests in the order of the file. Copies of a Trace share them; they live as long as any copy.
  std::span<const VerifyRequest> requests() const;

  const TraceSettings& settings() const;
  VerifyOptions verify_options() const;  // with all_rows, as the result file needs it
  const std::string& path() const;
  const SafetensorsFile& file() const;       // for tensors that are not the requests'
  std::span<const std::byte> bytes() const;  // the whole file as it was read, for hashing

  std::int64_t vocab_size() const;
  bool is_dense() const;
  bool has_seeds() const;                                   // request seeds of its own: the run's seed is not used
  const std::vector<std::string>& recorded() const;         // tensors of an engine's own random numbers
  const std::vector<std::string>& unused_metadata() const;  // keys that are not settings

 private:
  explicit Trace(std::shared_ptr<const TraceContents> contents) : contents_(std::move(contents)) {}

  std::shared_ptr<const TraceContents> contents_;
};

}  // namespace draftproof
