// Measured step times in place of a roofline: a CSV file with the columns part, rows, ms and, for the target,
// kv_tokens.
//
//   part      target: a pass over `rows` rows of which attention reads `kv_tokens` cached tokens in all (0 if empty)
//             draft: one draft pass over `rows` rows
//             overhead: a step of `rows` requests, beside the passes
//             speculation: what verification adds to that
//
// Between measured rows: the monotone cubic of Fritsch and Carlson through points that never fall (noise is averaged
// out of them), linear in kv_tokens between curves. Beyond the last row the last slope goes on; below the first the
// first time holds. extrapolates() says where a load is outside.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/scheduler/step_cost.hpp"
#include "sim/csv.hpp"

namespace draftproof {

// A curve that never falls.
class MonotoneCurve {
 public:
  // `x` rises strictly, `y` may be noisy; neither is empty.
  MonotoneCurve(std::vector<double> x, const std::vector<double>& y);

  double at(double x) const;
  double first() const { return x_.front(); }
  double last() const { return x_.back(); }

 private:
  std::vector<double> x_;
  std::vector<double> y_;
  std::vector<double> slope_;
};

class MeasuredTable final : public StepCost {
 public:
  // Input error naming file and line for a row that is not as above, and where there is no target row.
  explicit MeasuredTable(const std::string& path);
  MeasuredTable(const CsvTable& table, const std::string& file);

  double target_ns(const PassLoad& load) const override;
  double draft_ns(const DraftLoad& load) const override;
  double overhead_ns(std::int64_t requests, const DraftLoad& load) const override;

  // Empty if the load is within what was measured; else a sentence, as "300 rows: measured up to 64".
  std::string extrapolates(const PassLoad& load) const;
  std::string extrapolates(const DraftLoad& load) const;

 private:
  std::map<double, MonotoneCurve> target_;                     // by kv_tokens
  std::vector<MonotoneCurve> draft_, overhead_, speculation_;  // none or one
};

}  // namespace draftproof
