#include "sim/serving/planning_cost.hpp"

#include <algorithm>
#include <cmath>

namespace draftproof {

void PlanningCost::set_context(double kv_tokens_per_request) {
  if (std::abs(kv_tokens_per_request - kv_tokens_per_request_) <= kv_tokens_per_request_ / 16.0) return;
  kv_tokens_per_request_ = kv_tokens_per_request;
  for (Known& known : known_) known.batch = -1;
}

PlanningCost::Known& PlanningCost::known_of(std::int64_t batch) const {
  Known& known = known_[static_cast<std::size_t>(batch) % known_.size()];
  if (known.batch == batch) return known;
  known.batch = batch;
  // Some 16 lines between no drafts and all of them.
  known.rows_apart = std::max<std::int64_t>(batch * drafts_max_ / 16, 1);
  known.lines_per_row = 1.0 / static_cast<double>(known.rows_apart);
  known.target_ns.clear();
  known.drafting.clear();
  return known;
}

double PlanningCost::end_ns(Known& known, std::size_t end) const {
  if (end >= known.target_ns.size()) known.target_ns.resize(end + 1, -1.0);
  double& ns = known.target_ns[end];
  if (ns >= 0.0) return ns;
  PassLoad load;
  load.rows = std::max(static_cast<std::int64_t>(end) * known.rows_apart, std::int64_t{1});
  load.streams = known.batch;
  load.logit_rows = load.rows;
  load.kv_tokens = std::llround(kv_tokens_per_request_ * static_cast<double>(known.batch));
  load.attended = std::llround(kv_tokens_per_request_ * static_cast<double>(load.rows));
  return ns = cost_.target_ns(load);
}

double PlanningCost::target_ns(const PassLoad& load) const {
  Known& known = known_of(load.streams);
  const double at = static_cast<double>(load.rows) * known.lines_per_row;
  const auto line = static_cast<std::size_t>(at);
  const double low = end_ns(known, line);
  return low + (end_ns(known, line + 1) - low) * (at - static_cast<double>(line));
}

const PlanningCost::Drafting& PlanningCost::drafting(std::int64_t batch, std::int32_t passes) const {
  Known& known = known_of(batch);
  const auto at = static_cast<std::size_t>(passes);
  if (at >= known.drafting.size()) known.drafting.resize(at + 1);
  Drafting& drafting = known.drafting[at];
  if (drafting.overhead_ns >= 0.0) return drafting;
  DraftLoad load = planned_drafting(passes, batch);
  if (passes > 0) {
    if (one_pass_) load.passes = 1;
    load.kv_tokens = std::llround(kv_tokens_per_request_ * static_cast<double>(batch));
  }
  return drafting = {passes == 0 ? 0.0 : cost_.draft_ns(load), cost_.overhead_ns(batch, load)};
}

}  // namespace draftproof
