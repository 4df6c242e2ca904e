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

PassLoad verify_pass(const BatchLoad& batch, const DraftSize& form) {
  return pass_of(batch, form.nodes + 1);
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

double speculative_step_ns(const StepCost& model, const BatchLoad& batch, const DraftSize& form, DraftingKind kind) {
  const DraftLoad draft = drafting(batch, form, kind);
  return model.target_ns(verify_pass(batch, form)) + model.draft_ns(draft) + model.overhead_ns(batch.batch, draft);
}

double step_ratio(const StepCost& model, const BatchLoad& batch, const DraftSize& form, DraftingKind kind) {
  return speculative_step_ns(model, batch, form, kind) / plain_step_ns(model, batch);
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
