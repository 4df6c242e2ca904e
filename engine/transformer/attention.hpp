// Grouped-query attention of the tokens of a batch over their paths.
//   score_p = q . k_p, q scaled before; w_p = exp(score_p - max); out = (sum of w_p v_p, p ascending) (1 / sum of w_p)
#pragma once

#include <cstdint>
#include <vector>

#include "engine/transformer/attention_paths.hpp"
#include "engine/transformer/transformer_kernels.hpp"
#include "engine/transformer/transformer_kv_cache.hpp"

namespace draftproof {

// One piece of work: heads of queries that share keys and values, of neighbouring tokens that share most of their path.
struct AttentionTask {
  std::size_t token_begin;
  std::size_t token_end;
  std::int64_t head_begin;  // of queries
  std::int64_t head_end;    // all of one head of keys and values
};

// Tasks that a batch is cut into; large enough that threads share the work evenly.
std::vector<AttentionTask> attention_tasks(const ForwardBatch& batch, std::int64_t heads, std::int64_t kv_heads,
                                           int threads);

// Memory of a thread for its tasks; kept between them.
class AttentionWorker {
 public:
  // queries and out: [n][heads * head_len]; `layer` of the cache.
  void run(const AttentionTask& task, const ForwardBatch& batch, const AttentionPaths& paths,
           const TransformerKernels& kernels, const TransformerKvCache& kv, std::int64_t layer, std::int64_t heads,
           const float* queries, float* out);

 private:
  std::vector<float> queries_;  // [head_len][query]
  std::vector<float> scores_;   // [tile][query][16]
  std::vector<float> sums_;     // [query][head_len]
  std::vector<float> factors_;  // [query] 1 / sum of weights
  std::vector<std::uint16_t> gathered_;
};

}  // namespace draftproof
