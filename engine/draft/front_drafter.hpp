// A drafter in front of another: where it has a draft, that is the draft, and elsewhere the other one proposes. The
// choice depends on the context alone, and the target decides: exact under every lossless verifier.
#pragma once

#include <memory>

#include "engine/draft/drafter_choice.hpp"
#include "engine/draft/suffix_drafter.hpp"

namespace draftproof {

class FrontDrafter : public Drafter {
 public:
  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override;
  void propose_all(std::span<DraftJob> jobs, DraftCache* cache) override;
  bool looks_up() const override { return other_ == nullptr || other_->looks_up(); }
  bool has_confidences() const override { return other_ != nullptr && other_->has_confidences(); }
  void finish(const DraftContext& context) override {
    if (other_) other_->finish(context);
  }
  std::optional<SharedTokens> shared_tokens() const override { return other_ ? other_->shared_tokens() : std::nullopt; }
  std::span<const std::int32_t> hidden_layers() const override {
    return other_ ? other_->hidden_layers() : std::span<const std::int32_t>();
  }
  std::unique_ptr<DraftCache> make_cache(std::int32_t num_blocks) const override {
    return other_ ? other_->make_cache(num_blocks) : nullptr;
  }
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache* cache) override {
    if (other_) other_->observe(computed, features, cache);
  }

 protected:
  // other null: nothing is proposed elsewhere.
  explicit FrontDrafter(std::shared_ptr<Drafter> other) : other_(std::move(other)) {}
  // False: it has no draft, and `out` is anything.
  virtual bool propose_first(const DraftJob& job) = 0;

 private:
  std::shared_ptr<Drafter> other_;
};

// Suffix decoding where the last tokens, `threshold` or more, occurred before (TensorRT-LLM's hybrid with heads:
// sa_config.threshold).
class SuffixFrontDrafter final : public FrontDrafter {
 public:
  explicit SuffixFrontDrafter(std::shared_ptr<Drafter> other, int threshold = kSaThreshold)
      : FrontDrafter(std::move(other)), suffix_({.match_min = threshold}) {}
  void finish(const DraftContext& context) override;

 private:
  bool propose_first(const DraftJob& job) override;

  SuffixDrafter suffix_;
};

}  // namespace draftproof
