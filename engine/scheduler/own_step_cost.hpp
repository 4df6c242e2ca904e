// StepCost of the passes that this process has taken itself: another cost's shape, corrected where steps were timed.
// Used where tokens do not depend on drafts (temperature 0, coupled verification), since times are no two runs' the
// same.
//
//   ratio(n)   timed over expected time of the target's passes with about n rows; where none was timed, that of the
//              nearest ones (a kernel over log2 n). Sums fade, so that the last 64 steps of a size or so count, fewer
//              where they lie further back than 256 steps. What takes half as long again as usual counts as that.
//   drafting   the same of one drafting pass by the number of requests; nothing until one was timed
//
// A step's time is all of it but drafting: sampling, verification and the engine's own work rise with rows as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/scheduler/step_cost.hpp"

namespace draftproof {

class OwnStepCost final : public StepCost {
 public:
  explicit OwnStepCost(std::shared_ptr<const StepCost> expected) : expected_(std::move(expected)) {}

  // Are the steps to come judged by what was timed, or as expected? Timed from the beginning on.
  void trust(bool timed) { timed_ = timed; }
  // A step that decodes alone, and what it drafted. drafting_ns is a part of ns. The time that it counts as.
  double observe(std::int64_t rows, std::int64_t requests, const DraftLoad& drafted, std::int64_t ns,
                 std::int64_t drafting_ns);
  // Were steps with about so many rows timed twice or more? How many steps ago the last one?
  bool knows(std::int64_t rows) const { return target_.of(rows).count >= 2; }
  std::int64_t age(std::int64_t rows) const { return steps_ - target_.of(rows).last; }
  // Of a step without drafts, by such steps alone; at least one was observed.
  double plain_ns(std::int64_t rows, std::int64_t requests) const {
    return expected_->target_ns(planned_pass(rows, requests)) * plain_.ratio(rows);
  }

  double target_ns(const PassLoad& load) const override;
  double draft_ns(const DraftLoad& load) const override;
  double overhead_ns(std::int64_t requests, const DraftLoad& load) const override;

 private:
  struct Timed {
    double expected_ns = 0.0;
    double ns = 0.0;
    std::int64_t count = 0;
    std::int64_t last = 0;  // step
  };
  // A cost by size, eight classes to an octave.
  class Curve {
   public:
    const Timed& of(std::int64_t size) const { return timed_[class_of(size)]; }
    double observe(std::int64_t size, double expected_ns, double ns, std::int64_t step);
    bool empty() const { return known_.empty(); }
    double ratio(std::int64_t size) const { return ratios_[class_of(size)]; }

   private:
    static constexpr std::size_t kClasses = 128;
    static std::size_t class_of(std::int64_t size);
    std::array<Timed, kClasses> timed_{};
    std::array<double, kClasses> ratios_{};
    std::vector<std::size_t> known_;  // classes with a count
  };
  double expected_pass_ns(std::int64_t requests) const {
    return expected_->target_ns(planned_pass(requests, requests));
  }

  std::shared_ptr<const StepCost> expected_;
  Curve target_;
  Curve plain_;  // the part of it without drafts
  Curve drafting_;
  double idle_ns_ = 0.0;  // of a request in a step without drafts: what the drafter does all the same; fading
  std::int64_t steps_ = 0;
  bool timed_ = true;
};

}  // namespace draftproof
