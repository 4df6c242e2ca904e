#include "sim/serving/planning_cost.hpp"

#include <algorithm>
#include <cmath>

namespace draftproof {

void PlanningCost::set_context(double kv_tokens_per_request) {
  // A context that has hardly grown changes no decision.
  if (std::abs(kv_tokens_per_request - kv_tokens_per_request_) <= kv_tokens_per_request_ / 16.0) return;
  kv_tokens_per_request_ = kv_tokens_per_request;
  batch_ = -1;
}

double PlanningCost::exact_target_ns(std::int64_t num_tokens, std::int64_t batch) const {
  PassLoad load;
  load.rows = num_tokens;
  load.streams = batch;
  load.logit_rows = num_tokens;
  load.kv_tokens = std::llround(kv_tokens_per_request_ * static_cast<double>(batch));
  load.attended = std::llround(kv_tokens_per_request_ * static_cast<double>(num_tokens));
  return cost_.target_ns(load);
}

double PlanningCost::target_ns(std::int64_t num_tokens, std::int64_t batch) const {
  if (batch != batch_ || num_tokens < least_ || num_tokens > least_ + kLines * step_) {
    batch_ = batch;
    least_ = num_tokens;  // a decision asks for the fewest first
    step_ = std::max<std::int64_t>((batch * drafts_max_ * 2 + kLines - 1) / kLines, 1);
    lines_per_row_ = 1.0 / static_cast<double>(step_);
    for (std::int32_t i = 0; i <= kLines; ++i)
      ns_[static_cast<std::size_t>(i)] = exact_target_ns(least_ + i * step_, batch);
  }
  const double at = static_cast<double>(num_tokens - least_) * lines_per_row_;
  const std::size_t line = std::min<std::size_t>(static_cast<std::size_t>(at), kLines - 1);
  return ns_[line] + (ns_[line + 1] - ns_[line]) * (at - static_cast<double>(line));
}

double PlanningCost::draft_ns(std::int32_t passes, std::int64_t batch) const {
  DraftLoad load;
  if (passes > 0) {
    load.requests = batch;
    load.passes = one_pass_ ? 1 : passes;
    load.rows = batch * passes;
    load.kv_tokens = std::llround(kv_tokens_per_request_ * static_cast<double>(batch));
  }
  const double overhead_ns = cost_.overhead_ns(batch, load);
  return passes == 0 ? overhead_ns : overhead_ns + cost_.draft_ns(load);
}

}  // namespace draftproof
