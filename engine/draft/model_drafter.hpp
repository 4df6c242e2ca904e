// A smaller language model as the drafter: each draft is drawn from the model's processed row, after the drafts on its
// path, in the way that the plan asks for. The proposal distribution is that row, handed on as logits with the
// parameters they were drawn with.
#pragma once

#include "engine/draft/drafter.hpp"
#include "engine/model/model_session.hpp"
#include "reference/logits/pipeline.hpp"

namespace draftproof {

class ModelDrafter final : public Drafter {
 public:
  // `model` must outlive the object. Only temperature and filters of the parameters apply to a draft; others are the
  // target's alone. Errors: usage, for a parameter out of range, a penalty or guidance.
  ModelDrafter(LanguageModel& model, const RowParameters& draft_parameters);
  // Drafts with the temperature and the filters of each request; trees for greedy requests at temperature 1.
  explicit ModelDrafter(LanguageModel& model) : model_(model), as_request_(true) {}

  // Discards its KV behind every step, and reads the prefix again in the next; else it rolls back to what was accepted.
  void discard_kv() { discards_kv_ = true; }
  void set_shared_tokens(const SharedTokens& shared) { shared_tokens_ = shared; }

  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override;
  void finish(const DraftContext& context) override { model_.forget(context.request); }
  std::optional<SharedTokens> shared_tokens() const override { return shared_tokens_; }

 private:
  const Distribution& process(std::span<const float> logits, std::uint32_t row);
  void propose_chain(const DraftPlan& plan, DraftChance& chance, Draft& out);
  void propose_tree(const DraftPlan& plan, DraftChance& chance, Draft& out);

  ModelSession model_;
  RowParameters draft_parameters_;
  bool as_request_ = false;
  bool discards_kv_ = false;
  std::optional<SharedTokens> shared_tokens_;
  std::uint64_t request_ = 0;
  DraftMask* mask_ = nullptr;  // of the request under way, where its drafts follow a grammar
  std::vector<Token> context_;
  Pipeline pipeline_;
  Distribution distribution_;
};

}  // namespace draftproof
