// Rows to measure on: normal logits, draft logits correlated with them, and drafts drawn from the draft's distribution,
// so that acceptance is what one sees in practice. The same on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "base/token.hpp"

namespace draftproof {

// A pool of standard normal numbers, long enough that a row cut out of it at any offset shows no repetition.
class NormalPool {
 public:
  explicit NormalPool(std::uint64_t seed);
  // Writes `count` of them to `out`, starting somewhere that depends on `row`; count at most 2^20.
  void fill(std::uint64_t row, std::size_t count, float* out) const;

 private:
  std::vector<float> values_;
  std::uint64_t seed_;
};

struct BenchVerifyInputs {
  std::int64_t batch = 0;
  std::int64_t draft_len = 0;              // K
  std::int64_t vocab_size = 0;             // V
  std::vector<float> target_logits;        // [B (K + 1), V]
  std::vector<std::uint16_t> target_bf16;  // the same, rounded
  std::vector<float> target_probs;         // [B (K + 1), V], their softmax
  std::vector<float> draft_probs;          // [B K, V]
  std::vector<Token> drafts;               // [B K], drawn from draft_probs
};

BenchVerifyInputs make_verify_inputs(std::int64_t batch, std::int64_t draft_len, std::int64_t vocab_size, int threads);

}  // namespace draftproof
