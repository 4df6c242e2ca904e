#include "sim/predict/acceptance_estimate.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/words.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/thinning.hpp"
#include "sim/acceptance/tree_survival.hpp"

namespace draftproof {
namespace {

constexpr double kSpreadOfTrees = 0.05;  // of the rule for siblings (tree_survival.hpp)

// Conditional rates by position, near the medians over the configurations of servers and papers that publish them (some
// 1,300 log lines and rows of 22 sources), and the scatter of the acceptance length between configurations. Hydra's and
// Medusa's are guesses from the lengths that their trees reach; that n-grams draft in half of the steps is assumed.
struct Typical {
  const char* drafter;  // its name begins so; empty: any of the kind
  DraftingKind kind;
  std::vector<double> conditional;
  double spread;
  double draft_share;
};
const std::vector<Typical>& typical_rates() {
  static const std::vector<Typical> table{
      {"EAGLE-3", DraftingKind::head, {0.68, 0.69, 0.72, 0.70}, 0.12, 1.0},
      {"MTP", DraftingKind::head, {0.85, 0.81, 0.78, 0.80}, 0.09, 1.0},
      {"EAGLE", DraftingKind::head, {0.76, 0.67, 0.64}, 0.09, 1.0},
      {"Hydra", DraftingKind::head, {0.68, 0.60, 0.57}, 0.15, 1.0},
      {"", DraftingKind::head, {0.70, 0.68, 0.66}, 0.15, 1.0},
      {"Medusa", DraftingKind::parallel, {0.55, 0.42, 0.38}, 0.15, 1.0},
      {"", DraftingKind::parallel, {0.73, 0.74, 0.72}, 0.12, 1.0},
      {"", DraftingKind::model, {0.74, 0.80, 0.82}, 0.15, 1.0},
      {"", DraftingKind::ngram, {0.58, 0.75, 0.79, 0.83}, 0.30, 0.5},
  };
  return table;
}

}  // namespace

void AcceptanceEstimate::set_known_rates(std::vector<double> survival) {
  survival_ = std::move(survival);
}

AcceptanceEstimate AcceptanceEstimate::of_data(const AcceptanceData& data, std::optional<std::int32_t> drafts) {
  AcceptanceEstimate estimate;
  estimate.notes_ = data.notes;
  estimate.draft_share_ = data.draft_share.value_or(1.0);
  estimate.description_ = data.format + " " + data.path;
  if (data.replay) {
    estimate.model_ = data.replay;
    estimate.trees_ = false;
    return estimate;
  }
  estimate.bounds_ = !std::ranges::all_of(data.survival_bounds, &Bounds::is_exact);
  if (!data.survival.empty()) {
    estimate.set_known_rates(data.survival);
    estimate.errors_ = data.survival_error;
    return estimate;
  }
  const std::int32_t levels = drafts.value_or(data.draft_len);
  if (levels < 1)
    throw usage_error(
        data.path,
        std::string("has an acceptance length alone and does not say of how many drafts; expected their number: ") +
            kSayDrafts);
  estimate.single_length_ = data.acceptance_length;
  estimate.single_length_error_ = data.acceptance_length_error.value_or(0.0);
  estimate.single_form_ = {data.tree_nodes > 0 ? data.tree_nodes : levels, levels};
  estimate.notes_.push_back("Only the acceptance length " + number("%.3g", data.acceptance_length) + " at " +
                            counted_noun(levels, "draft") + " is known; other numbers of drafts are extrapolated.");
  if (data.draft_len_is_least && !drafts)
    estimate.notes_.push_back("K = " + std::to_string(levels) +
                              " is the mean of the drafts, rounded up, since nothing says K; say it with " +
                              kSayDrafts + ".");
  return estimate;
}

AcceptanceEstimate AcceptanceEstimate::of_model(std::shared_ptr<const AcceptanceModel> model, const std::string& text) {
  AcceptanceEstimate estimate;
  estimate.description_ = text;
  try {
    estimate.trees_ = model->survival(8, 2).front() > model->survival(2, 2).front();
  } catch (const Error&) {
    estimate.trees_ = false;  // tabulated for other drafts
  }
  estimate.model_ = std::move(model);
  return estimate;
}

AcceptanceEstimate AcceptanceEstimate::typical_of(const DrafterShape& drafter) {
  const auto found = std::ranges::find_if(typical_rates(), [&](const Typical& typical) {
    return typical.kind == drafter.kind && drafter.name.starts_with(typical.drafter);
  });
  AcceptanceEstimate estimate;
  estimate.description_ = "typical of such drafters";
  estimate.set_known_rates(survival_of(found->conditional));
  estimate.spread_ = found->spread;
  estimate.draft_share_ = found->draft_share;
  estimate.training_ = drafter.training;
  estimate.notes_.emplace_back(
      "No metrics are given: the acceptance is the median of published ones of such drafters, and the band is wide.");
  if (found->draft_share < 1.0) estimate.notes_.emplace_back("Half of the steps are assumed to find a draft.");
  return estimate;
}

// Where no model says it.
ExtrapolatedSurvival AcceptanceEstimate::chain_survival(std::int32_t depth) const {
  if (!single_length_) {
    ExtrapolatedSurvival chain = extrapolate_rates(survival_, depth);
    if (training_.drafts > 0 && depth > training_.drafts)
      chain.survival = thinned(std::move(chain.survival), std::pow(training_.beyond, depth - training_.drafts));
    return chain;
  }
  return single_form_.is_tree()
             ? extrapolate_tree_length(*single_length_, single_form_.nodes, single_form_.depth, depth, description_)
             : extrapolate_length(*single_length_, single_form_.depth, depth, description_);
}

std::vector<double> AcceptanceEstimate::survival(std::int32_t depth, std::int32_t context) const {
  return model_ ? model_->survival_in_run(depth, depth, context) : chain_survival(depth).survival;
}

bool AcceptanceEstimate::extrapolates(const DraftSize& form) const {
  if (model_) return false;
  return single_length_ ? form != single_form_ : form.depth > std::ssize(survival_);
}

LengthEstimate AcceptanceEstimate::length(const DraftSize& form, std::int32_t context) const {
  LengthEstimate estimate = known_length(form, context);
  if (factor_ != 1.0)
    estimate.length = 1.0 + std::min(factor_ * (estimate.length - 1.0), static_cast<double>(form.depth));
  return estimate;
}

LengthEstimate AcceptanceEstimate::known_length(const DraftSize& form, std::int32_t context) const {
  if (model_) return {acceptance_length_of(model_->survival_in_run(form.nodes, form.depth, context)), spread_};
  if (single_length_ && single_form_.nodes == form.nodes && single_form_.depth == form.depth)
    return {*single_length_, std::hypot(spread_, single_length_error_ / *single_length_)};
  const ExtrapolatedSurvival chain = chain_survival(form.depth);
  double variance = spread_ * spread_;
  if (single_length_) {
    variance += std::pow(single_length_error_ / *single_length_, 2.0);
  } else {
    // Errors of positions go together: whoever accepts the second draft has accepted the first.
    double error = 0.0;
    for (std::size_t i = 0; i < std::min(errors_.size(), chain.survival.size()); ++i) error += errors_[i];
    variance += std::pow(error / acceptance_length_of(chain.survival), 2.0);
  }
  variance += chain.length_spread * chain.length_spread;
  if (!form.is_tree()) return {acceptance_length_of(chain.survival), std::sqrt(variance)};
  const TreeSurvivals trees = position_survivals(conditional_of(chain.survival, description_), form.depth);
  variance += kSpreadOfTrees * kSpreadOfTrees;
  return {acceptance_length_of(trees[static_cast<std::size_t>(form.nodes)]), std::sqrt(variance)};
}

}  // namespace draftproof
