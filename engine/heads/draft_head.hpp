// A head at work on its target: states made of features, and rows of logits made of states. The bits of a row depend
// on the tokens and states before it alone, as the target's do (language_model.hpp).
//
// Positions of pairs: the pair (state of token i, embedding of token i + 1) has its KV in the slot of token i + 1 and
// is rotated as position i. So the tokens of a full block of slots determine all KV in it, and blocks can be shared.
// Token 0 has no pair. A block head's KV of a token lies in that token's slot.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/heads/head_weights.hpp"
#include "engine/transformer/transformer_model.hpp"

namespace draftproof {

// Tokens of a head's pass: positions are those of the tokens, also of pairs; `hidden_layers` is the head's own matter.
struct HeadBatch : ForwardBatch {
  // [n] the slots of what lies between the context and a token that hangs from it, in order; empty: nothing does.
  std::span<const std::vector<std::int64_t>> tails = {};
};

struct HeadOutput {
  std::vector<float> logits;  // [m, rows of logits]
  std::vector<float> states;  // [n, width] of pairs: what the next pair on the path begins with; of blocks: after
                              // the last norm
};

class DraftHead {
 public:
  // Both weights live as long as the object; so does `target`'s team of threads. Errors (input) at `where`: a target of
  // another width, vocabulary or number of layers than the head is for; a size that the kernels do not take.
  DraftHead(std::shared_ptr<const HeadWeights> weights, const TransformerModel& target, const std::string& where);

  const HeadWeights& weights() const { return *weights_; }
  const std::shared_ptr<const HeadWeights>& shared_weights() const { return weights_; }
  const HeadDescription& description() const { return weights_->description; }
  const TransformerKernels& kernels() const { return kernels_; }
  Arithmetic arithmetic() const { return arithmetic_; }
  std::span<const std::int32_t> feature_layers() const { return feature_layers_; }
  std::int64_t target_vocab_size() const { return target_->shape.vocab_size; }
  // Rows of logits, and the target's token of each.
  std::int64_t num_rows() const { return body_.shape.vocab_size; }
  Token token_of(std::int64_t row) const {
    const std::vector<Token>& tokens = description().draft_tokens;
    return tokens.empty() ? static_cast<Token>(row) : tokens[static_cast<std::size_t>(row)];
  }
  std::int64_t state_width() const;
  // Drafts on a path at most; 0: no limit.
  std::int32_t draft_len_max() const;
  // Null where the head has no layers.
  std::unique_ptr<TransformerKvCache> make_cache(std::int64_t num_slots) const;

  // features [n, feature layers, target width] -> states [n, state width].
  void make_states(std::span<const float> features, std::vector<float>& states);
  // Pairs: states [n, state width] of the tokens before. Writes the KV of the batch.
  void run_pairs(const HeadBatch& batch, std::span<const float> states, TransformerKvCache& kv, HeadOutput& out);
  // Block heads: the KV that the states of tokens [n, state width] become.
  void store_context(const HeadBatch& batch, std::span<const float> states, TransformerKvCache& kv);
  // Block heads: blocks, each a chain of block_len tokens behind its context.
  void run_blocks(const HeadBatch& batch, TransformerKvCache& kv, HeadOutput& out);
  // Medusa: states [n, state width] -> logits [n, rows of logits] of head `index`.
  void run_medusa(std::size_t index, std::span<const float> states, std::vector<float>& logits);
  // DSpark: the probability that the draft of a place of a block is accepted where those before it are, by its head of
  // confidences: states [width] of the place, and the token before it.
  float confidence(std::span<const float> state, Token before) const;
  // DSpark: adds to logits [n, rows of logits] what the token before says, tokens [n]. DFlash 2: the place's states
  // [n, width] say it too, and all but the row's best tokens become impossible; a row that overflows is NaN throughout.
  void add_markov(std::span<const Token> before, std::span<float> logits, std::span<const float> states);

 private:
  void embed(Token token, float* to) const;
  ForwardContext context_of(const PassInput& input) const;
  void norm(const float* x, const std::vector<float>& weight, float* to) const;
  void select(std::span<const float> context, std::span<float> logits) const;
  void multiply(const PackedMatrix& matrix, std::span<const float> x, std::vector<float>& out);
  void run_layers(const HeadBatch& batch, const PassInput& input, TransformerKvCache& kv, HeadOutput& out);

  std::shared_ptr<const HeadWeights> weights_;
  std::shared_ptr<const TransformerWeights> target_;
  std::shared_ptr<ThreadTeam> team_;
  TransformerKernels kernels_;
  Arithmetic arithmetic_;
  TransformerWeights body_;  // the head's, with the target's matrices where it has none of its own
  std::vector<std::int64_t> layers_;
  std::vector<std::int32_t> feature_layers_;
  RopeTable rope_;
  ForwardPass pass_;
  ForwardOutput output_;
  RowProduct product_;
  std::vector<float> rows_, residual_, ones_;
};

}  // namespace draftproof
