// Random context-dependent models on a tiny vocabulary, with exact distributions: what proofs quantify over. The
// distribution after a prefix is a pure function of (seed, prefix): small integers over their sum, zeros included.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/random/philox.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/draft_vocabulary.hpp"

namespace draftproof {

// Kinds of pairs of models, beside being random.
enum class ModelKind : std::uint8_t {
  dense,           // every token possible under both
  zeros,           // about a third of the entries is zero
  one_hot_target,  // greedy target
  one_hot_draft,   // deterministic drafts
  equal,           // p = q everywhere
  disjoint,        // no token possible under both (where V > 1)
  ties,            // ratios p/q tie exactly: q is a permutation of p with repeated values
};

inline constexpr std::array<ModelKind, 7> kModelKinds{
    ModelKind::dense,    ModelKind::zeros, ModelKind::one_hot_target, ModelKind::one_hot_draft, ModelKind::equal,
    ModelKind::disjoint, ModelKind::ties};

inline std::string_view name_of(ModelKind kind) {
  constexpr std::array<std::string_view, 7> kNames{"dense",    "zeros", "one-hot target", "one-hot draft", "p = q",
                                                   "disjoint", "ties"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Tokens of the target that the draft model knows.
enum class DraftTokens : std::uint8_t {
  all,
  half,  // half_vocabulary()
};

// One of every two tokens of the target, the second and the first in turn: 1, 2, 5, 6, 9, ... Ids are neither those of
// the draft vocabulary nor at a fixed distance from them. vocab_size >= 2.
inline DraftVocabulary half_vocabulary(std::int32_t vocab_size) {
  std::vector<Token> ids;
  for (Token i = 0; i < vocab_size / 2; ++i) ids.push_back(2 * i + 1 - i % 2);
  return {std::move(ids), vocab_size, "half vocabulary"};
}

template <class Number>
class ModelPair {
 public:
  // A distribution [V] after a prefix.
  using Model = std::function<DenseMasses<Number>(std::span<const Token> prefix)>;

  ModelPair(std::int32_t vocab_size, std::uint64_t seed, ModelKind kind, DraftTokens draft_tokens = DraftTokens::all)
      : vocab_size_(vocab_size), seed_(seed), kind_(kind), draft_tokens_(draft_tokens) {}
  // Two models that are given.
  ModelPair(std::int32_t vocab_size, Model target, Model draft)
      : vocab_size_(vocab_size), target_(std::move(target)), draft_(std::move(draft)) {}
  // The same distributions [V] after every prefix: the models of golden numbers.
  ModelPair(const DenseMasses<Number>& target, const DenseMasses<Number>& draft)
      : ModelPair(
            static_cast<std::int32_t>(target.size()), [target](std::span<const Token>) { return target; },
            [draft](std::span<const Token>) { return draft; }) {}

  std::int32_t vocab_size() const { return vocab_size_; }
  std::uint64_t seed() const { return seed_; }
  ModelKind kind() const { return kind_; }

  const DenseMasses<Number>& target(std::span<const Token> prefix) const { return distributions(prefix).target; }
  const DenseMasses<Number>& draft(std::span<const Token> prefix) const { return distributions(prefix).draft; }

 private:
  struct Distributions {
    DenseMasses<Number> target, draft;
  };

  const Distributions& distributions(std::span<const Token> prefix) const {
    std::vector<Token> key(prefix.begin(), prefix.end());
    const auto found = cache_.find(key);
    return found != cache_.end() ? found->second : cache_.emplace(std::move(key), make(prefix)).first->second;
  }

  // Small integers for both models after a prefix, then fractions.
  Distributions make(std::span<const Token> prefix) const {
    if (target_) return {target_(prefix), draft_(prefix)};
    std::uint32_t context = 1;
    for (const Token token : prefix)
      context = context * static_cast<std::uint32_t>(vocab_size_ + 1) + static_cast<std::uint32_t>(token) + 1;
    std::vector<std::uint32_t> p(static_cast<std::size_t>(vocab_size_));
    std::vector<std::uint32_t> q(p.size());
    const bool may_be_zero = kind_ == ModelKind::zeros;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const RandomBlock block = philox_block(seed_, static_cast<std::uint32_t>(i), context, 0,
                                             static_cast<std::uint32_t>(Purpose::simulator));
      p[i] = may_be_zero && block.word[0] % 3 == 0 ? 0 : 1 + block.word[1] % 5;
      q[i] = may_be_zero && block.word[2] % 3 == 0 ? 0 : 1 + block.word[3] % 5;
    }
    const RandomBlock extra = philox_block(seed_, 0, context, 1, static_cast<std::uint32_t>(Purpose::simulator));
    shape(p, q, extra);
    // A row needs some mass.
    if (sum_of(p) == 0) p[extra.word[0] % p.size()] = 1;
    if (draft_tokens_ == DraftTokens::half) {
      const DraftVocabulary vocabulary = half_vocabulary(vocab_size_);
      std::vector<std::uint32_t> part = vocabulary.gathered(q);
      if (sum_of(part) == 0) part[extra.word[1] % part.size()] = 1;
      return {fractions(p), vocabulary.scattered(fractions(part))};
    }
    if (sum_of(q) == 0) q[extra.word[1] % q.size()] = 1;
    return {fractions(p), fractions(q)};
  }

  void shape(std::vector<std::uint32_t>& p, std::vector<std::uint32_t>& q, const RandomBlock& extra) const {
    const std::size_t size = p.size();
    switch (kind_) {
      case ModelKind::dense:
      case ModelKind::zeros:
        return;
      case ModelKind::one_hot_target:
        p.assign(size, 0);
        return;  // make() puts the mass somewhere
      case ModelKind::one_hot_draft:
        q.assign(size, 0);
        return;
      case ModelKind::equal:
        q = p;
        return;
      case ModelKind::disjoint:
        if (size < 2) return;
        for (std::size_t i = 0; i < size; ++i) (i % 2 == extra.word[2] % 2 ? p : q)[i] = 0;
        return;
      case ModelKind::ties:
        for (std::size_t i = 0; i < size; ++i) p[i] = 1 + (extra.word[2] >> i) % 2;
        for (std::size_t i = 0; i < size; ++i) q[i] = p[(i + 1) % size];
        return;
    }
  }

  static std::uint32_t sum_of(const std::vector<std::uint32_t>& weights) {
    std::uint32_t sum = 0;
    for (const std::uint32_t w : weights) sum += w;
    return sum;
  }
  static DenseMasses<Number> fractions(const std::vector<std::uint32_t>& weights) {
    DenseMasses<Number> out;
    for (const std::uint32_t w : weights) out.push_back(Number(Number(w) / Number(sum_of(weights))));
    return out;
  }

  std::int32_t vocab_size_;
  std::uint64_t seed_ = 0;
  ModelKind kind_ = ModelKind::dense;
  DraftTokens draft_tokens_ = DraftTokens::all;
  Model target_, draft_;  // null: random
  mutable std::map<std::vector<Token>, Distributions> cache_;
};

}  // namespace draftproof
