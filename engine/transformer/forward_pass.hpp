// One pass of a batch through a transformer: every thread goes through the same phases, and in each they share tokens,
// groups of a matrix or pieces of attention.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/transformer/attention.hpp"
#include "engine/transformer/buffers.hpp"
#include "engine/transformer/int8_rows.hpp"
#include "engine/transformer/rope.hpp"
#include "engine/transformer/thread_team.hpp"
#include "engine/transformer/transformer_kernels.hpp"
#include "engine/transformer/transformer_weights.hpp"

namespace draftproof {

enum class Arithmetic : std::uint8_t { int8, f32 };

// Model, memory and threads that a pass runs on.
struct ForwardContext {
  const TransformerWeights& weights;
  const std::vector<std::int64_t>& layers;  // that are run
  Arithmetic arithmetic;
  const TransformerKernels& kernels;
  const RopeTable& rope;  // long enough for the batch
  ThreadTeam& team;
};

// Rows of activations as the products take them.
struct ActivationRows {
  AlignedFloats values;  // [n][width]
  Int8Rows int8;         // where a quantised matrix wants them so
  std::int64_t width = 0;

  void resize(std::size_t n, std::int64_t columns, bool as_int8);
  float* row(std::size_t i) { return values.data() + i * static_cast<std::size_t>(width); }
};

// The buffers of one pass, kept between passes.
class ForwardPass {
 public:
  // The batch has been validated, the cache is of the model's form.
  void run(const ForwardContext& context, const ForwardBatch& batch, TransformerKvCache& kv, ForwardOutput& out);

 private:
  struct Phases;

  AlignedFloats residual_;  // [n][width]
  AlignedFloats product_;   // [n][width] what is to be added to it
  AlignedFloats queries_, keys_, values_;
  AlignedFloats gate_, up_;
  AlignedFloats logits_;              // [m][vocabulary, padded to whole groups], where that is padded
  std::vector<std::uint8_t> finite_;  // [m] of the rows of logits
  ActivationRows normed_, attended_, activated_, last_;
  AttentionPaths paths_;
  std::vector<AttentionTask> tasks_;
  std::vector<AttentionWorker> workers_;
  std::vector<const PackedMatrix*> order_;  // of the matrices of a pass
};

}  // namespace draftproof
