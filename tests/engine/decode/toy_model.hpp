// A language model whose every row depends on the whole context, so that a token missed, kept or doubled anywhere in it
// (after a rollback, in the unconditional companion) changes what follows.
#pragma once

#include "engine/model/ngram_language_model.hpp"
#include "reference/random/philox.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

class ToyModel final : public ContextModel {
 public:
  // Logits are multiples of 1/2 in [-spread, spread], so that ties happen. Models with the same `tongue` agree with
  // weight 3 in 4, which makes one a useful drafter of another.
  ToyModel(std::int64_t vocab_size, std::uint64_t tongue, std::uint64_t personality, int spread = 4)
      : vocab_size_(vocab_size), tongue_(tongue), personality_(personality), spread_(spread) {}

  std::int64_t vocab_size() const override { return vocab_size_; }

  void logits(std::span<const Token> context, std::span<float> out) override {
    ++calls;
    std::uint64_t hash = 1;
    for (const Token token : context) hash = hash * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(token) + 1;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto index = static_cast<std::uint32_t>(i);
      out[i] = 0.75f * word(tongue_, hash, index) + 0.25f * word(personality_, hash, index);
    }
  }

  std::int64_t calls = 0;

 private:
  float word(std::uint64_t key, std::uint64_t hash, std::uint32_t index) const {
    const std::uint32_t bits =
        philox_block(key, index, static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32), 0).word[0];
    const auto levels = static_cast<std::uint32_t>(4 * spread_ + 1);
    return static_cast<float>(static_cast<int>(bits % levels) - 2 * spread_) / 2.0f;
  }

  std::int64_t vocab_size_;
  std::uint64_t tongue_;
  std::uint64_t personality_;
  int spread_;
};

// Counts the passes, and the tokens that they compute.
class CountingModel final : public ContextModel {
 public:
  explicit CountingModel(std::int64_t vocab_size) : model(vocab_size, 1, 2) {}
  std::int64_t vocab_size() const override { return model.vocab_size(); }
  void logits(std::span<const Token> context, std::span<float> out) override { model.logits(context, out); }
  void forward(const ForwardBatch& batch, KvCache& kv, ForwardOutput& out) override {
    ++passes;
    computed += static_cast<std::int64_t>(batch.tokens.size());
    ContextModel::forward(batch, kv, out);
  }

  ToyModel model;
  std::int64_t passes = 0;
  std::int64_t computed = 0;
};

// A model whose rows hold a NaN where a text of more than `length` tokens began with token 6.
class PoisonedModel final : public ContextModel {
 public:
  PoisonedModel(std::int64_t vocab_size, std::size_t length) : length_(length), model_(vocab_size, 1, 2) {}
  std::int64_t vocab_size() const override { return model_.vocab_size(); }
  void logits(std::span<const Token> context, std::span<float> out) override {
    model_.logits(context, out);
    if (context.size() > length_ && context.front() == 6) out[3] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  std::size_t length_;
  ToyModel model_;
};

}  // namespace draftproof::testing
