// A smaller language model as the drafter: each draft is drawn from the model's processed row, after the drafts before
// it. The proposal distribution is that row, handed on as logits with the parameters they were drawn with.
#pragma once

#include "reference/draft/drafter.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/model/language_model.hpp"

namespace draftproof {

class ModelDrafter final : public Drafter {
 public:
  // `model` must outlive the object. Only temperature and filters of the parameters apply to a draft; others are the
  // target's alone. Errors: usage, for a parameter out of range, a penalty or guidance.
  ModelDrafter(LanguageModel& model, const RowParameters& draft_parameters);

  void propose(std::span<const Token> context, int draft_len_max, const DraftDraw& draw, Draft& out) override;

 private:
  LanguageModel& model_;
  RowParameters draft_parameters_;
  std::vector<Token> context_;
  Pipeline pipeline_;
  Distribution distribution_;
};

}  // namespace draftproof
