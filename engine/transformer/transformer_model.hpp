// A transformer of the Llama family on the CPU.
//
// Two arithmetics, each a target of its own with bits of its own:
//   int8   rows of activations are rounded to int8 in blocks of 32 before a quantised matrix; dots are exact integers
//   f32    activations stay float, weights are decoded to float: the reference
// Matrices of float weights (F32, F16, BF16) take float activations in both. With either the bits of a row of logits
// depend on the tokens before it alone: not on the batch, on chunks, on the tree around it, on threads, on vectors.
//
// A row of logits in which anything is not finite is NaN throughout, so that whoever reads it sees it; other rows are
// as without it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/model/language_model.hpp"
#include "engine/transformer/forward_pass.hpp"
#include "engine/transformer/thread_team.hpp"
#include "engine/transformer/transformer_kernels.hpp"
#include "engine/transformer/transformer_weights.hpp"

namespace draftproof {

class TransformerModel final : public LanguageModel {
 public:
  // `start` is what every context begins with, or nothing. Kernels other than the fastest are for tests.
  TransformerModel(const std::shared_ptr<const TransformerWeights>& weights, Arithmetic arithmetic, int threads,
                   std::optional<Token> start = std::nullopt,
                   const TransformerKernels& kernels = transformer_kernels());

  // Views share weights, threads and the form of the cache with this model, and run when it does not.
  // Only these layers (counted from 0, ascending), then the head. It reads and writes the KV of those layers alone in a
  // cache of this model, and may draft on it. Error (usage): a layer that there is not, or that is not above the one
  // before it.
  std::unique_ptr<TransformerModel> with_layers(const std::vector<std::int64_t>& layers) const;
  std::unique_ptr<TransformerModel> with_arithmetic(Arithmetic arithmetic) const;
  // Weights of its own: the same, rounded again to this many bits (transformer_weights.hpp).
  std::unique_ptr<TransformerModel> requantised(int bits) const;

  std::int64_t vocab_size() const override { return weights_->shape.vocab_size; }
  std::int64_t context_len_max() const override { return weights_->shape.context_len_max; }
  std::optional<Token> start_token() const override { return start_; }
  std::unique_ptr<KvCache> make_kv_cache(std::int64_t num_slots) const override;
  void forward(const ForwardBatch& batch, KvCache& kv, ForwardOutput& out) override;

  const TransformerWeights& weights() const { return *weights_; }
  Arithmetic arithmetic() const { return arithmetic_; }
  int threads() const { return team_->threads(); }
  // For heads, whose passes run between those of the model.
  const std::shared_ptr<ThreadTeam>& team() const { return team_; }
  const std::shared_ptr<const TransformerWeights>& shared_weights() const { return weights_; }
  const TransformerKernels& kernels() const { return kernels_; }
  std::int64_t num_layers() const { return static_cast<std::int64_t>(layers_.size()); }
  std::int64_t weights_per_pass() const { return weights_->weights_per_pass(layers_); }

 private:
  TransformerModel(std::shared_ptr<const TransformerWeights> weights, Arithmetic arithmetic,
                   std::shared_ptr<ThreadTeam> team, std::shared_ptr<RopeTable> rope, std::optional<Token> start,
                   const TransformerKernels& kernels, std::vector<std::int64_t> layers);

  std::shared_ptr<const TransformerWeights> weights_;
  Arithmetic arithmetic_;
  std::shared_ptr<ThreadTeam> team_;
  std::shared_ptr<RopeTable> rope_;
  std::optional<Token> start_;
  TransformerKernels kernels_;
  std::vector<std::int64_t> layers_;
  ForwardPass pass_;
};

}  // namespace draftproof
