// Faults of engines' runners of heads (docs/heads.md, "Faults"), each planted by itself: in the weights that the runner
// reads, or between an engine and its head, where what one shows the other is altered. The oracle's tests find them,
// and the audit of other engines' drafts (draft_audit.hpp) asks which of them would look like a run.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/heads/head_drafter.hpp"

namespace draftproof {

// Passes everything on as it is; faults alter it. Rows and drafts are reported with the true tokens.
class FaultyDrafter : public Drafter {
 public:
  explicit FaultyDrafter(HeadDrafter& head);

  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override;
  std::span<const std::int32_t> hidden_layers() const override { return head_.hidden_layers(); }
  std::unique_ptr<DraftCache> make_cache(std::int32_t num_blocks) const override;
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache* cache) override;
  void propose_all(std::span<DraftJob> jobs, DraftCache* cache) override;

  std::function<void(const HeadRow&)> on_row;
  std::function<void(const HeadDraft&)> on_draft;

 protected:
  virtual void begin_step() {}
  virtual void alter(ComputedTokens&) {}
  virtual void alter(DraftJob&) {}
  virtual void see_row(const HeadRow&) {}
  virtual void see_draft(const DraftJob&) {}

  std::span<float> features_at(std::int32_t row) {
    return std::span(features_).subspan(static_cast<std::size_t>(row) * width_, width_);
  }
  // The same stream with these tokens in their places.
  std::span<const Token> with(std::span<const Token> stream, const std::map<std::int64_t, Token>& wrong);
  // Accepted drafts among computed tokens, and the newest token's place there; nothing where no draft was verified.
  struct Verified {
    std::size_t newest;
    std::size_t accepted;
  };
  std::optional<Verified> verified(const ComputedTokens& of) const;

  HeadDrafter& head_;
  std::map<std::uint64_t, std::vector<Token>> truth_;  // streams as of the last drafts
  std::vector<float> features_;
  std::size_t width_ = 0;

 private:
  std::deque<std::vector<Token>> altered_;
};

// Conditions of a run under which a fault shows.
enum class FaultNeeds : std::uint8_t { nothing, chunks, shared_prefixes, chains };

struct HeadFault {
  int number = 0;    // row of the table of docs/heads.md, "Faults"
  std::string name;  // "one rejected draft stays"
  FaultNeeds needs = FaultNeeds::nothing;
  std::shared_ptr<const HeadWeights> weights;  // that the faulty runner reads
  // Between the engine and a head with these weights. The target predicts tokens, where the fault takes such.
  std::function<std::unique_ptr<FaultyDrafter>(HeadDrafter& head, TransformerModel& target)> plant;
};

inline constexpr std::array kHeadFaultNumbers{1, 2, 3, 4, 5, 11, 13, 14, 15, 16, 17, 21};

// The faults that a runner of this head can have, by number; some numbers have several, some none.
std::vector<HeadFault> head_faults(const std::shared_ptr<const HeadWeights>& head, const TransformerModel& target);

}  // namespace draftproof
