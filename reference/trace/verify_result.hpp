// Results of a verified batch, as the tensors of a result file (docs/trace.md), and the comparison with another
// engine's result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/token.hpp"
#include "reference/step/consistency.hpp"
#include "reference/step/impossible_drafts.hpp"
#include "reference/step/replay.hpp"
#include "reference/step/request.hpp"

namespace draftproof {

// B requests, M drafts, N = M + B rows, W = Kmax + 1; padding of dense input counts in none of them. Columns of a
// request beyond what it emitted hold kPaddingToken, and 0 in the log-probabilities.
struct VerifyResult {
  std::int64_t width = 1;                  // W
  std::vector<Token> output_tokens;        // [B, W] accepted drafts, then the recovered or bonus token
  std::vector<std::int32_t> num_accepted;  // [B]
  std::vector<std::uint8_t> accepted;      // [M] 1 for drafts that stood
  std::vector<std::int32_t> path;        // [B, W - 1] accepted draft nodes, padded with -1; empty where all are chains
  std::vector<float> logprob;            // [B, W] of the emitted tokens, processed distribution
  std::vector<float> raw_logprob;        // [B, W] before any edit, temperature or filter
  std::vector<float> kept_mass;          // [N]
  std::vector<std::int32_t> kept_count;  // [N]

  std::span<const Token> tokens_of(std::int64_t request) const;  // [num_accepted + 1]
};

// A result is a matrix: one long request beside many short ones is mostly padding, and 480 KB of trace could ask for
// 19 GB. This is 0.8 GB, or a million requests of 63 drafts.
inline constexpr std::int64_t kResultEntriesMax = std::int64_t{1} << 26;

// Input error naming the request with the most drafts when B x W is above kResultEntriesMax.
void require_result_fits(std::span<const VerifyRequest> requests);

// Error: a result that does not fit. The emissions must have been made with VerifyOptions::raw_logprobs and all_rows.
VerifyResult collect_result(std::span<const VerifyRequest> requests, std::span<const Emission> emissions);

// SHA-256 of the tensors' bytes, little-endian, one after the other in the order of the struct: equal if and only if
// the results are.
std::string digest_of(const VerifyResult& result);

// Writes the safetensors file, whole or not at all. Input error naming the path.
void write_result(const std::string& path, const VerifyResult& result,
                  const std::map<std::string, std::string>& metadata);

struct ResultDifference {
  std::string tensor;
  std::int64_t request;
  std::optional<std::int64_t> index;  // in the row of output_tokens
  std::int64_t ours;
  std::int64_t theirs;
};

struct ResultComparison {
  std::string path;                         // of theirs
  bool has_num_accepted = false;            // theirs: else only tokens were compared
  std::int64_t differing_requests = 0;      // in tokens or num_accepted
  std::optional<ResultDifference> first;    // lowest request, its tokens before its num_accepted
  std::vector<std::int64_t> first_row;      // output_tokens of theirs of that request
  std::optional<std::string> input_sha256;  // of the trace that theirs names, if it does

  // Whether theirs was made from this input; nothing when it names none.
  std::optional<bool> has_input(const std::string& sha256) const;
  std::string sentence() const;  // of a difference
};

// Compares with a file that has output_tokens [B, any width], i32 or i64, padded with -1, and maybe num_accepted [B].
// Other tensors are not looked at. Input error when it has other shapes or dtypes.
ResultComparison compare_result(const VerifyResult& result, const std::string& path);

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
