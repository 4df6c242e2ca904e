#include "reference/draft/model_drafter.hpp"

#include "reference/error.hpp"
#include "reference/logits/edits.hpp"

namespace draftproof {

ModelDrafter::ModelDrafter(LanguageModel& model, const RowParameters& draft_parameters)
    : model_(model), draft_parameters_(draft_parameters) {
  validate(draft_parameters, "draft parameters");
  if (needs_history(draft_parameters, {}) || draft_parameters.guidance_scale != 1.0f)
    throw usage_error("draft parameters",
                      "has penalties or guidance, which are the target's alone; expected temperature and filters only");
}

void ModelDrafter::propose(std::span<const Token> context, int draft_len_max, const DraftDraw& draw, Draft& out) {
  const auto vocab_size = static_cast<std::size_t>(model_.vocab_size());
  out.proposal_kind = ProposalKind::logits;
  out.draft_parameters = draft_parameters_;
  out.tree = {};
  out.logits.resize(static_cast<std::size_t>(draft_len_max) * vocab_size);
  context_.assign(context.begin(), context.end());
  for (std::uint32_t row = 0; row < static_cast<std::uint32_t>(draft_len_max); ++row) {
    const std::span<float> logits = std::span(out.logits).subspan(row * vocab_size, vocab_size);
    model_.logits(context_, logits);
    RowInput input;
    input.logits = {DType::f32, logits.data(), model_.vocab_size()};
    input.parameters = draft_parameters_;
    input.row = row;
    pipeline_.run(input, distribution_);
    context_.push_back(draw(distribution_, row));
    out.tree.add(context_.back(), static_cast<std::int32_t>(row) - 1);
  }
}

}  // namespace draftproof
