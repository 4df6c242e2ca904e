// Comparison of a result with another engine's, and what is found out about a verified trace.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/archives/safetensors.hpp"
#include "reference/step/consistency.hpp"
#include "reference/step/impossible_drafts.hpp"
#include "reference/step/replay.hpp"
#include "reference/trace/verify_result.hpp"

namespace draftproof {

struct ResultDifference {
  std::string tensor;
  std::int64_t request;
  std::optional<std::int64_t> index;  // among the request's numbers of the tensor
  double ours;
  double theirs;
  bool is_real = false;                // else both are whole numbers
  std::optional<Token> token_id = {};  // of a given id's log-probabilities
};

struct ResultComparison {
  std::string path;                         // of theirs
  std::vector<std::string> tensors;         // of theirs that were compared, in the order of docs/trace.md
  std::int64_t differing_requests = 0;      // in any of them
  std::optional<ResultDifference> first;    // lowest request, its tensors in that order
  std::vector<std::int64_t> first_row;      // output_tokens of theirs of that request
  std::optional<std::string> input_sha256;  // of the trace that theirs names, if it does

  // Whether theirs was made from this input; nothing when it names none.
  std::optional<bool> has_input(const std::string& sha256) const;
  std::string sentence() const;  // of a difference
};

// Log-probabilities and masses of two engines are the same within this.
inline constexpr double kRealTolerance = 1e-3;

// Compares with a file that has output_tokens [B, any width], i32 or i64, padded with -1, and maybe other tensors of a
// result: all that are there are compared, log-probabilities where both emitted a token. Input error: other shapes or
// dtypes, or a tensor that neither a result nor a trace has.
ResultComparison compare_result(const VerifyResult& result, const std::string& path);
ResultComparison compare_result(const VerifyResult& result, const SafetensorsFile& file);

// Faults of a verified trace, each as a sentence; none: nothing. Whatever else is found out about a trace belongs here.
// input_sha256: of the trace.
std::vector<std::string> findings_of(const ImpossibleDrafts& impossible, const ConsistencyReport& consistency,
                                     const std::optional<ResultComparison>& comparison,
                                     const std::string& input_sha256);

// The decision that makes the first differing request differ, for steps that were replayed with the engine's own random
// numbers. Nothing if none differs, or if what it emitted is no path of its drafts.
std::optional<Departure> departure_of(std::span<const VerifyRequest> requests, const VerifyOptions& options,
                                      const ResultComparison& comparison);

}  // namespace draftproof
