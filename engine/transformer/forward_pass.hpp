// One pass of a batch through a transformer: every thread goes through the same phases, and in each they share tokens,
// groups of a matrix or pieces of attention.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/transformer/attention.hpp"
#include "engine/transformer/buffers.hpp"
#include "engine/transformer/mixture.hpp"
#include "engine/transformer/rope.hpp"
#include "engine/transformer/row_product.hpp"
#include "engine/transformer/transformer_weights.hpp"

namespace draftproof {

// Rows that a pass begins with in place of the embeddings of its tokens: a drafting head's.
struct PassInput {
  std::span<const float> residual = {};    // [n, width]; empty: embeddings
  std::span<const float> first_rows = {};  // [n, columns] what attention of the first layer reads; empty: its norm
  std::int64_t first_position = 0;         // positions before it have no KV; it rotates by 0
  // [n] the slots of what lies between the context and a token that hangs from it, in order; empty: nothing does.
  std::span<const std::vector<std::int64_t>> tails = {};
  std::span<const LayerConvolutions> convolutions = {};  // by layer; empty: none
  bool whole_chains = false;  // a token sees those behind it on its chain too, up to its last one
};

// Model, memory and threads that a pass runs on.
struct ForwardContext {
  const TransformerWeights& weights;
  const std::vector<std::int64_t>& layers;  // that are run
  Arithmetic arithmetic;
  const TransformerKernels& kernels;
  const RopeTable& rope;  // long enough for the batch
  ThreadTeam& team;
  PassInput input = {};
};

// The buffers of one pass, kept between passes.
class ForwardPass {
 public:
  // The batch has been validated, the cache is of the model's form. Empty norms leave rows as they are.
  void run(const ForwardContext& context, const ForwardBatch& batch, TransformerKvCache& kv, ForwardOutput& out);
  // Stores the keys and values that every layer makes of rows [n, width], its norm left out, at the tokens of a batch
  // (DFlash's context).
  void store_context(const ForwardContext& context, const ForwardBatch& batch, std::span<const float> rows,
                     TransformerKvCache& kv);

 private:
  struct Phases;

  AlignedFloats residual_;  // [n][width]
  AlignedFloats product_;   // [n][width] what is to be added to it
  AlignedFloats queries_, keys_, values_;
  AlignedFloats gate_, up_;
  AlignedFloats taps_;                // [n][rows of a convolution's kernel, padded to whole groups]
  AlignedFloats unconvolved_;         // [n][width]
  std::vector<ExpertRoute> routes_;   // [n][chosen]
  AlignedFloats of_experts_;          // [n][chosen][width]
  AlignedFloats logits_;              // [m][vocabulary, padded to whole groups], where that is padded
  std::vector<std::uint8_t> finite_;  // [m] of the rows of logits
  ActivationRows normed_, attended_, activated_, last_;
  ActivationRows convolved_;
  ActivationRows first_;  // where they are given
  AttentionPaths paths_;
  std::vector<AttentionTask> tasks_;
  std::vector<AttentionWorker> workers_;
  std::vector<const PackedMatrix*> order_;  // of the matrices of a pass
};

}  // namespace draftproof
