// Results of a verified batch, as the tensors of a result file (docs/trace.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/token.hpp"
#include "reference/step/request.hpp"

namespace draftproof {

// B requests, M drafts, N = M + B rows, W = Kmax + 1; padding of dense input counts in none of them. Columns of a
// request beyond what it emitted hold kPaddingToken, and 0 in the log-probabilities.
struct VerifyResult {
  std::int64_t width = 1;                  // W
  std::vector<Token> output_tokens;        // [B, W] accepted drafts, then the recovered or bonus token
  std::vector<std::int32_t> num_accepted;  // [B]
  std::vector<std::int32_t> draft_len;     // [B] drafts of each request: no tensor, but what M and N are sums of
  std::vector<std::uint8_t> accepted;      // [M] 1 for drafts that stood
  std::vector<std::int32_t> path;        // [B, W - 1] accepted draft nodes, padded with -1; empty where all are chains
  std::vector<float> logprob;            // [B, W] of the emitted tokens, processed distribution
  std::vector<float> raw_logprob;        // [B, W] before any edit, temperature or filter
  std::vector<float> kept_mass;          // [N]
  std::vector<std::int32_t> kept_count;  // [N]
  // Given ids of each request: no tensor, but what L is the number of.
  std::vector<std::vector<Token>> logprob_token_ids;  // [B]
  std::vector<float> token_id_logprob;                // [L, W] as logprob, of a given id in the rows of the tokens
  std::vector<float> raw_token_id_logprob;            // [L, W]

  std::span<const Token> tokens_of(std::int64_t request) const;  // [num_accepted + 1]
};

// A result is a matrix: one long request beside many short ones is mostly padding, and 480 KB of trace could ask for
// 19 GB. This is 0.8 GB, or a million requests of 63 drafts.
inline constexpr std::int64_t kResultEntriesMax = std::int64_t{1} << 26;

// Input error naming the request with the most drafts when B x W or L x W is above kResultEntriesMax.
void require_result_fits(std::span<const VerifyRequest> requests);

// Error: a result that does not fit. The emissions must have been made with VerifyOptions::raw_logprobs and all_rows.
VerifyResult collect_result(std::span<const VerifyRequest> requests, std::span<const Emission> emissions);

// SHA-256 of the tensors' bytes, little-endian, one after the other in the order of the struct: equal if and only if
// the results are.
std::string digest_of(const VerifyResult& result);

// Writes the safetensors file, whole or not at all. Input error naming the path.
void write_result(const std::string& path, const VerifyResult& result,
                  const std::map<std::string, std::string>& metadata);

}  // namespace draftproof
