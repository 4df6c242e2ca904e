// A head's rows of logits from the tokens alone: the definition that a run of a head is compared with, in straight-line
// code over plain vectors. It has no cache of slots, no batch, no tree mask and no scheduler, and shares with the
// runner (draft_head.hpp, head_drafter.hpp) only the weights' values and the kernels' definitions of products, norms
// and sigmoids; attention, rotation and the order of pairs are written out again.
//
// Features are those of one pass of the target over the true tokens. What was computed of a text is remembered with its
// tokens, so that a text that grows costs what is new.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/heads/head_weights.hpp"
#include "engine/transformer/transformer_model.hpp"

namespace draftproof {

class SlowHead {
 public:
  // A row behind a path of drafts.
  struct Row {
    std::vector<float> logits;  // [rows of logits]; NaN throughout where one is not finite
    std::vector<float> state;   // [width] of pairs: what the next pair begins with; else empty
  };
  // Keys and values of a token, as binary16.
  struct Entry {
    std::vector<std::vector<std::uint16_t>> keys, values;  // [layers][heads of keys and values * head size]
  };
  // Cached results for a text.
  struct Text {
    std::vector<Token> tokens;
    std::vector<std::vector<float>> states;  // of tokens
    std::vector<Entry> entries;              // of pairs from token 1, or of tokens
    struct Node {
      Row row;
      std::vector<Entry> entries;  // of the newest token's pair and of those of the path
    };
    std::size_t drafted_at = 0;                // length of the text behind which the nodes hang
    std::map<std::vector<Token>, Node> nodes;  // by path
    std::vector<Row> block_rows;               // of a block head, with states: by slot
    std::int64_t size_bytes() const;
  };

  // kernels: whose products, norms and sigmoids; all sets give the same bits.
  SlowHead(std::shared_ptr<const HeadWeights> head, const TransformerModel& target,
           const TransformerKernels& kernels = scalar_transformer_kernels());

  const HeadDescription& description() const { return head_->description; }
  // The target's token of a column.
  Token token_of(std::int64_t column) const {
    const std::vector<Token>& tokens = description().draft_tokens;
    return tokens.empty() ? static_cast<Token>(column) : tokens[static_cast<std::size_t>(column)];
  }
  std::int64_t num_columns() const { return head_->body.shape.vocab_size; }
  std::int64_t target_vocab_size() const { return weights_->shape.vocab_size; }

  // Remembers the states of all tokens of a text, as one pass of the target computes them.
  void read(Text& text, std::span<const Token> tokens);
  // The row behind tokens [n >= 2] and a path, which the text begins with where it has been read; else it is read.
  const Row& row(Text& text, std::span<const Token> tokens, const std::vector<Token>& path);

 private:
  struct Rows {  // of tokens that see each other
    std::vector<std::vector<float>> residual, first;
    std::vector<std::int64_t> rotations;  // positions that they are rotated by
  };

  std::vector<float> product(const PackedMatrix& matrix, const std::vector<float>& x);
  std::vector<float> normed(const std::vector<float>& x, const std::vector<float>& weight) const;
  std::vector<float> embedding_of(Token token) const;
  std::vector<float> state_of(std::span<const float> features);
  void rotate(float* head, std::int64_t position) const;
  void finish(std::vector<float>& heads, const std::vector<float>& bias, const std::vector<float>& norm,
              std::int64_t position) const;
  void store(const PackedLayer& layer, const std::vector<float>& in, std::int64_t position, Entry& entry);
  std::vector<float> attention(const std::vector<float>& query, std::span<const Entry* const> seen, std::size_t layer,
                               std::int64_t first_position) const;
  std::vector<float> network(const auto& of, const std::vector<float>& x);
  std::vector<std::vector<float>> convolved(const PackedConvolution& conv, std::size_t side,
                                            const std::vector<std::vector<float>>& kernels,
                                            std::vector<std::vector<float>> rows) const;
  Row selected(const Row& row, const std::vector<float>& before);
  std::vector<float> mixture(const PackedLayer& layer, const std::vector<float>& x);
  void run_layers(Rows& rows, std::span<const Entry* const> before, std::int64_t first_position,
                  std::span<Entry> entries, bool to_the_end);
  std::vector<float> logits_of(const std::vector<float>& residual);
  Rows pair_rows(const std::vector<float>& state, Token token, std::int64_t position);
  Row row_of_pair(Rows rows, std::span<const Entry* const> before, Entry& entry);
  const Text::Node& node_of(Text& text, std::span<const Token> tokens, const std::vector<Token>& path);
  Row block_row(Text& text, std::span<const Token> tokens, const std::vector<Token>& path);
  Row medusa_row(const Text& text, std::span<const Token> tokens, std::size_t depth);

  std::shared_ptr<const HeadWeights> head_;
  std::shared_ptr<const TransformerWeights> weights_;
  TransformerModel target_;
  TransformerKernels kernels_;
  std::vector<std::int32_t> feature_layers_;
  std::vector<double> frequencies_;
  AlignedFloats product_;
};

}  // namespace draftproof
