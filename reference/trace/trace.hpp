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
#include "reference/trace/trace_settings.hpp"
#include "reference/trace/trace_tensors.hpp"

namespace draftproof {

// Ways to read a trace file. The rows, parameters, masks and histories are the same in all.
enum class TraceKind : std::uint8_t {
  steps,          // verification steps: docs/trace.md
  emitted_steps,  // with what was emitted, output_tokens [B, W] and maybe num_accepted and group: docs/audit.md
  draws,          // single draws, samples and maybe group: a request without drafts for each row: docs/audit.md
  filtered,       // what filters left of the rows, filtered_logits or kept [G, V]: rows as of draws: docs/audit.md
};

struct TraceOptions {
  std::vector<TraceSetting> overrides;  // win over the file's metadata
  bool check_rows = true;               // every row of target_probs and draft_probs sums to 1: reads them all
  int threads = 1;                      // for that check
  TraceKind kind = TraceKind::steps;
};

// Contents of a trace file.
struct TraceContents {
  explicit TraceContents(SafetensorsFile opened) : file(std::move(opened)) {}

  SafetensorsFile file;
  TraceKind kind = TraceKind::steps;
  TraceSettings settings;
  std::vector<std::string> unused_metadata;
  std::int64_t vocab_size = 0;
  bool is_dense = false;
  bool has_seeds = false;
  bool has_parents = false;           // drafts are trees
  std::vector<std::string> recorded;  // tensors of an engine's own random numbers
  std::vector<VerifyRequest> requests;

  // Memory that the requests refer to.
  std::vector<TensorView> views;
  std::vector<TokenTensor> tokens;
  std::vector<LogitBias> logit_bias;
};

class Trace {
 public:
  // Errors (input, or usage for parameters and settings) naming the file, the tensor, the entry and what would be
  // right.
  static Trace open(const std::string& path, const TraceOptions& options = {});

  // B requests in the order of the file. Copies of a Trace share them; they live as long as any copy.
  std::span<const VerifyRequest> requests() const { return contents_->requests; }

  const TraceSettings& settings() const { return contents_->settings; }
  VerifyOptions verify_options() const;  // with all_rows, as the result file needs it
  const std::string& path() const { return file().path(); }
  const SafetensorsFile& file() const { return contents_->file; }      // for tensors that are not the requests'
  std::span<const std::byte> bytes() const { return file().bytes(); }  // the whole file as it was read, for hashing

  std::int64_t vocab_size() const { return contents_->vocab_size; }
  bool is_dense() const { return contents_->is_dense; }
  // Request seeds of its own: the run's seed is not used.
  bool has_seeds() const { return contents_->has_seeds; }
  // Tensors of an engine's own random numbers.
  const std::vector<std::string>& recorded() const { return contents_->recorded; }
  // Metadata keys that are not settings.
  const std::vector<std::string>& unused_metadata() const { return contents_->unused_metadata; }

 private:
  explicit Trace(std::shared_ptr<const TraceContents> contents) : contents_(std::move(contents)) {}

  std::shared_ptr<const TraceContents> contents_;
};

}  // namespace draftproof
