#include "sim/cost/step_ratio.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

namespace draftproof {
namespace {

PassLoad pass_of(const BatchLoad& batch, std::int64_t rows_each) {
  PassLoad load;
  load.streams = batch.batch * (batch.guidance ? 2 : 1);
  load.rows = load.streams * rows_each;
  load.kv_tokens = load.streams * batch.context;
  load.attended = load.rows * batch.context;
  load.logit_rows = load.rows;
  return load;
}

}  // namespace

PassLoad plain_pass(const BatchLoad& batch) {
  return pass_of(batch, 1);
}

PassLoad verify_pass(const BatchLoad& batch, const DraftSize& form, double draft_share) {
  if (draft_share >= 1.0) return pass_of(batch, form.nodes + 1);
  PassLoad pass = plain_pass(batch);
  const auto drafted = static_cast<std::int64_t>(
      std::llround(draft_share * static_cast<double>(form.nodes) * static_cast<double>(pass.streams)));
  pass.rows += drafted;
  pass.logit_rows += drafted;
  pass.attended += drafted * batch.context;
  return pass;
}

DraftLoad drafting(const BatchLoad& batch, const DraftSize& form, DraftingKind kind) {
  DraftLoad load;
  load.requests = batch.batch;
  if (form.nodes <= 0) return load;
  const bool one_pass = kind == DraftingKind::parallel || kind == DraftingKind::ngram;
  load.passes = one_pass ? 1 : std::max(1, form.depth);
  // A tree of n nodes in d levels: about n / d rows a pass. One pass drafts all depths.
  const std::int64_t rows_each =
      one_pass ? std::max(1, form.depth) : std::max(1, (form.nodes + form.depth / 2) / std::max(1, form.depth));
  load.rows = batch.batch * rows_each * load.passes;
  load.kv_tokens = batch.batch * batch.context;
  load.tree = form.is_tree() && !one_pass;
  load.depth = form.depth;
  return load;
}

double plain_step_ns(const StepCost& model, const BatchLoad& batch) {
  return model.target_ns(plain_pass(batch)) + model.overhead_ns(batch.batch, {});
}

double speculative_step_ns(const StepCost& model, const BatchLoad& batch, const DraftSize& form, DraftingKind kind,
                           double draft_share) {
  if (form.nodes == 0 || draft_share <= 0.0) return plain_step_ns(model, batch);
  const DraftLoad draft = drafting(batch, form, kind);
  const double verify = model.target_ns(verify_pass(batch, form, draft_share));
  const double drafts = model.draft_ns(draft) + model.overhead_ns(batch.batch, draft);
  if (draft_share >= 1.0) return verify + drafts;
  // Drafting and its overhead where anyone does.
  const double any = 1.0 - std::pow(1.0 - draft_share, static_cast<double>(batch.batch));
  return verify + any * drafts + (1.0 - any) * model.overhead_ns(batch.batch, {});
}

double ahead_step_ns(const StepCost& model, const BatchLoad& batch, const DraftSize& form, DraftingKind kind,
                     const DraftingAhead& ahead, double ready) {
  const auto requests = static_cast<double>(batch.batch);
  DraftLoad drafts_ahead;
  for (std::int64_t i = 0; i < batch.batch; ++i)
    add_drafts_ahead(drafts_ahead, ahead, form.depth, batch.context,
                     kind == DraftingKind::parallel || kind == DraftingKind::ngram);
  const double any_missed = 1.0 - std::pow(ready, requests);
  const double any_ready = 1.0 - std::pow(1.0 - ready, requests);
  double backup = 0.0;
  if (ahead.backup && any_missed > 0.0) {
    BatchLoad missed = batch;
    missed.batch = std::max<std::int64_t>(1, std::llround(requests * (1.0 - ready) / any_missed));
    backup = any_missed * model.draft_ns(drafting(missed, form, kind));
  }
  const double verify = model.target_ns(verify_pass(batch, form, ahead.backup ? 1.0 : ready));
  return backup + any_ready * std::max(verify, model.draft_ns(drafts_ahead)) + (1.0 - any_ready) * verify +
         model.overhead_ns(batch.batch, drafts_ahead);
}

double step_ratio(const StepCost& model, const BatchLoad& batch, const DraftSize& form, DraftingKind kind,
                  double draft_share) {
  return speculative_step_ns(model, batch, form, kind, draft_share) / plain_step_ns(model, batch);
}

double prefill_ns(const StepCost& model, std::int64_t prompt_tokens) {
  PassLoad pass;
  pass.streams = pass.logit_rows = 1;
  pass.rows = pass.kv_tokens = prompt_tokens;
  pass.attended = prompt_tokens * (prompt_tokens + 1) / 2;
  return model.target_ns(pass);
}

double prefill_share(const StepCost& model, const BatchLoad& batch, const LoopLengths& lengths) {
  if (lengths.prompt <= 0 || lengths.output <= 0) return 0.0;
  const double prefills = static_cast<double>(batch.batch) * prefill_ns(model, lengths.prompt);
  return prefills / (prefills + static_cast<double>(lengths.output) * plain_step_ns(model, batch));
}

double SpeedupBand::spread() const {
  constexpr double kNormal90 = 1.2815515655446004;  // 80 % of a normal distribution lie within so many deviations
  return half_width / kNormal90;
}

double SpeedupBand::loss_probability() const {
  if (!(half_width > 0.0)) return middle < 1.0 ? 1.0 : 0.0;
  return 0.5 * boost::math::erfc(std::log(middle) / (spread() * std::numbers::sqrt2));
}

double SpeedupBand::expected_time() const {
  return std::exp(0.5 * spread() * spread()) / middle;
}

}  // namespace draftproof
