// A drafting head as the drafter of an engine.
//
// After every pass of the target it is shown the features of what was computed, and keeps them (head_entries.hpp);
// before every pass it drafts for all requests together, so that its weights are read once a level of the drafts.
// Entries are computed when a draft needs them, whoever's, so requests that do not draft cost nothing but the copy.
#pragma once

#include <functional>
#include <optional>

#include "engine/draft/drafter.hpp"
#include "engine/heads/draft_head.hpp"
#include "engine/heads/head_entries.hpp"
#include "engine/model/gathered_batch.hpp"
#include "reference/logits/pipeline.hpp"

namespace draftproof {

// A row of a head behind a path, when a draft is made from it, and a draft when it is complete: for the oracle
// (acceptance_oracle.hpp). The rows of a step's drafts come before the drafts.
struct HeadRow {
  std::uint64_t request = 0;
  std::span<const Token> stream;  // the true tokens
  std::vector<Token> path;        // drafts behind them
  std::span<const float> logits;  // [rows of logits]
  std::span<const float> state;   // of pairs: what the next pair begins with; else empty
  // Where drafts are guided: the true tokens of the companion, whose row the logits are guided by, and the scale.
  std::span<const Token> companion = {};
  float guidance_scale = 1.0f;
};
struct HeadDraft {
  std::uint64_t request = 0;
  std::span<const Token> stream;
  const Draft* draft = nullptr;
};

class HeadDrafter final : public Drafter {
 public:
  // draft_temperature: at which drafts are drawn; nothing: that of each request, with its filters. At temperature 0,
  // and for verifiers that take any drafts, the most probable token, as a one-hot proposal: EAGLE-2's dynamic tree
  // where the plan is a tree. Confidences are those of the head, where it has a head of confidences, else the largest
  // probability of the row that a draft comes from.
  // guided: under guidance the head runs behind the companion's tokens too, and drafts come from its two rows combined
  // as the target's are (logits/guidance.hpp); else from its row behind the request's own tokens, as engines draft.
  HeadDrafter(std::shared_ptr<DraftHead> head, std::optional<float> draft_temperature, bool guided = false);

  // Error (usage): a head drafts for an engine's requests only, since it reads their features.
  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override;
  bool has_confidences() const override { return true; }
  std::span<const std::int32_t> hidden_layers() const override { return head_->feature_layers(); }
  std::unique_ptr<DraftCache> make_cache(std::int32_t num_blocks) const override;
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache* cache) override;
  void propose_all(std::span<DraftJob> jobs, DraftCache* cache) override;

  const DraftHead& head() const { return *head_; }
  std::function<void(const HeadRow&)> on_row;
  std::function<void(const HeadDraft&)> on_draft;
  // The state [state width] of a token of a stream, before an entry is made of it: for planted faults.
  std::function<void(std::uint64_t request, std::int32_t stream_index, std::int64_t position, std::span<float> state)>
      on_state;

 private:
  struct Growth;
  struct Side;
  void add_tokens(const Side& side, std::int64_t begin, std::int64_t end, HeadEntries& cache, std::int32_t masks = 0,
                  std::int64_t mask_slot = 0);
  void store_batch(HeadEntries& cache);
  void catch_up(std::span<Growth> growths, HeadEntries& cache);
  std::vector<Side> sides_of(const DraftContext& context, HeadEntries& cache) const;
  Growth growth_of(DraftJob& job) const;
  void grow(std::span<Growth> growths, HeadEntries& cache);
  // By family (head_rows.cpp).
  void compute_roots(std::span<Growth> growths, HeadEntries& cache);
  void medusa_roots(std::span<Growth> growths, HeadEntries& cache);
  void read_contexts(std::span<Growth> growths, HeadEntries& cache);
  void run_blocks(std::span<Growth> growths, HeadEntries& cache);
  void parallel_roots(std::span<Growth> growths);
  void pair_roots(std::span<Growth> growths);
  void compute_frontiers(std::span<Growth> growths, HeadEntries& cache);
  void run_markov(std::span<Growth> growths);
  void run_next_pairs(std::span<Growth> growths, HeadEntries& cache);
  static void each_frontier(std::span<Growth> growths, auto f);
  static std::span<const float> row_after(const Growth& growth, std::int32_t node);
  const Distribution& process(const Growth& growth, std::int32_t node);
  void add_level(Growth& growth);
  void finish_draft(Growth& growth);
  float confidence_after(const Growth& growth, std::int32_t node);
  std::vector<float> scattered(std::span<const float> row) const;
  static bool follows_grammar(const Growth& growth);
  std::vector<float> target_row_after(const Growth& growth, std::int32_t node) const;

  struct Batch : GatheredBatch {
    std::vector<std::vector<std::int64_t>> tails;
    std::vector<std::pair<const Side*, std::int64_t>> origins;  // of the tokens that the features are of
    std::vector<float> features;                                // that the states are made of, where they are
    std::vector<float> states;

    void clear();
    void add_features(std::span<const float> of_token) {
      features.insert(features.end(), of_token.begin(), of_token.end());
    }
    HeadBatch view() const { return {GatheredBatch::view(), tails}; }
  };

  std::shared_ptr<DraftHead> head_;
  std::optional<float> draft_temperature_;
  bool guided_;
  Batch batch_;
  HeadOutput output_;
  Pipeline pipeline_;
  std::vector<float> full_row_;  // that distribution_ looks at
  Distribution distribution_;
};

}  // namespace draftproof
