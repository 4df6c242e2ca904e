#include "sim/serving/static_batch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/scheduler/speculation_policy.hpp"
#include "sim/serving/planning_cost.hpp"

namespace draftproof {
namespace {

struct Place {
  AcceptanceState acceptance;
  SpeculationState speculation;
  std::int32_t prompt_len = 0;
  std::int32_t output_len = 0;
  std::int32_t output_len_max = 0;
};

class StaticBatch {
 public:
  StaticBatch(const Workload& workload, const StepCost& cost, const AcceptanceModel& acceptance,
              const StaticBatchOptions& options)
      : workload_(workload),
        cost_(cost),
        acceptance_(acceptance),
        options_(options),
        planning_cost_(std::make_shared<PlanningCost>(cost, options.speculation.most, options.drafting.one_pass)),
        policy_(options.speculation, planning_cost_) {
    if (options.batch < 1)
      throw usage_error("batch", "it is " + std::to_string(options.batch) + "; expected 1 or more");
    fill();
  }

  StaticBatchResult run() {
    while (!places_.empty()) step();
    result_.requests = served_;
    if (served_ != workload_.options().num_requests)
      throw Error(ErrorKind::internal, "static batch",
                  std::to_string(workload_.options().num_requests) + " requests were to be served, but " +
                      std::to_string(served_) + " were");
    result_.acceptance = counts();
    return result_;
  }

 private:
  void fill() {
    for (; places_.size() < static_cast<std::size_t>(options_.batch) && next_ < workload_.options().num_requests;
         ++next_) {
      const RequestLengths lengths = workload_.lengths(next_);
      places_.push_back({acceptance_.begin(static_cast<std::uint64_t>(next_)), policy_.first_state(),
                         lengths.prompt_len, 0, lengths.output_len});
    }
  }

  void decide() {
    if (!policy_.looks_at_batch()) return;
    policy_.begin_step();
    // As in the scheduler, where the policy has looked at the batch before a request is admitted to it.
    for (Place& place : places_)
      if (place.output_len > 0) policy_.count(place.speculation, 1);
    policy_.decide(0);
  }

  // Drafts of a place in this step, and what would be accepted of all of them.
  struct Drafted {
    std::int32_t nodes = 0;
    std::int32_t depth = 0;
    std::int32_t accepted = 0;
  };

  // accepted(at, nodes, depth): of so many drafts.
  template <class Accepted>
  Drafted draft(const Place& place, DraftLoad& load, Accepted accepted) {
    const std::int32_t room = place.output_len_max - place.output_len - 1;
    const std::int32_t context = place.prompt_len + place.output_len;
    std::int32_t nodes = room == 0 ? 0 : policy_.num_drafts(place.speculation);
    if (options_.drafting.tree_depth == 0) nodes = std::min(nodes, room);
    if (nodes == 0) return {};
    std::int32_t depth = std::min(nodes, room);
    if (options_.drafting.tree_depth > 0) depth = std::min(depth, options_.drafting.tree_depth);
    ++load.requests;
    load.rows += options_.drafting.one_pass ? depth : nodes;
    load.kv_tokens += context;
    load.depth = std::max(load.depth, depth);
    load.tree |= depth < nodes && !options_.drafting.one_pass;
    return {nodes, depth, accepted(AcceptancePlace{place.output_len, context}, nodes, depth)};
  }

  // All places draft, and the policy says which of the drafts are verified.
  void run_confident(PassLoad& pass, DraftLoad& load) {
    drafted_.resize(places_.size());
    confidences_.resize(std::max(confidences_.size(), places_.size()));
    confident_.clear();
    for (std::size_t i = 0; i < places_.size(); ++i) {
      std::vector<float>& confidences = confidences_[i];
      confidences.clear();
      drafted_[i] = draft(places_[i], load, [&](AcceptancePlace at, std::int32_t, std::int32_t depth) {
        return acceptance_.accepted_with_confidences(places_[i].acceptance, at, depth, confidences);
      });
      confident_.push_back({confidences});
    }
    policy_.keep_confident(confident_);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::int32_t kept = confident_[i].kept;
      verify(places_[i], {kept, kept, std::min(drafted_[i].accepted, kept)}, pass);
    }
  }

  void verify(Place& place, const Drafted& drafted, PassLoad& pass) {
    const std::int64_t context = place.prompt_len + place.output_len;
    const std::int32_t nodes = drafted.nodes;
    const std::int32_t depth = drafted.depth;
    const std::int32_t accepted = drafted.accepted;
    pass.rows += nodes + 1;
    pass.kv_tokens += context - 1;
    pass.attended += context * (nodes + 1) + std::int64_t{nodes} * (depth + 1) / 2;
    place.output_len += accepted + 1;
    policy_.observe(place.speculation, nodes, accepted, accepted < depth);
    ++steps_with_[static_cast<std::size_t>(accepted)][accepted < depth ? 1 : 0];
    drafts_ += nodes > 0 ? 1 : 0;
    draft_tokens_ += nodes;
  }

  void step() {
    decide();
    PassLoad pass;
    DraftLoad load;
    bool ended = false;
    if (options_.speculation.rule == SpeculationRule::confidence) {
      run_confident(pass, load);
    } else {
      for (Place& place : places_)
        verify(place,
               draft(place, load,
                     [&](AcceptancePlace at, std::int32_t nodes, std::int32_t depth) {
                       return acceptance_.accepted(place.acceptance, at, nodes, depth);
                     }),
               pass);
    }
    for (const Place& place : places_) ended |= place.output_len == place.output_len_max;
    pass.streams = static_cast<std::int64_t>(places_.size());
    pass.logit_rows = pass.rows;
    load.passes = options_.drafting.one_pass ? std::min(load.depth, 1) : load.depth;
    const double draft_ns = load.passes == 0 ? 0.0 : cost_.draft_ns(load);
    const double verify_ns = cost_.target_ns(pass);
    const double overhead_ns = cost_.overhead_ns(pass.streams, load);
    require_simulated_ns(static_cast<double>(result_.total_ns()) + draft_ns + verify_ns + overhead_ns, "simulation");
    result_.draft_ns += std::llround(draft_ns);
    result_.verify_ns += std::llround(verify_ns);
    result_.overhead_ns += std::llround(overhead_ns);
    ++result_.steps;
    planning_cost_->set_context(static_cast<double>(pass.kv_tokens + pass.streams) / static_cast<double>(pass.streams));
    if (!ended) return;
    served_ += static_cast<std::int64_t>(
        std::erase_if(places_, [](const Place& place) { return place.output_len == place.output_len_max; }));
    fill();
  }

  AcceptanceCounts counts() const {
    AcceptanceCounts counts;
    counts.drafts = drafts_;
    counts.draft_tokens = draft_tokens_;
    for (std::size_t accepted = 0; accepted < steps_with_.size(); ++accepted) {
      const auto [ended, rejected] = steps_with_[accepted];
      const std::int64_t steps = ended + rejected;
      if (steps == 0) continue;
      counts.steps += steps;
      counts.accepted_tokens += steps * static_cast<std::int64_t>(accepted);
      counts.grow_to(accepted + (rejected > 0 ? 1 : 0));
      for (std::size_t j = 0; j < accepted; ++j) {
        counts.reached[j] += steps;
        counts.accepted[j] += steps;
      }
      if (rejected > 0) counts.reached[accepted] += rejected;
    }
    counts.received_tokens = counts.accepted_tokens + counts.steps;
    return counts;
  }

  const Workload& workload_;
  const StepCost& cost_;
  const AcceptanceModel& acceptance_;
  const StaticBatchOptions& options_;
  std::shared_ptr<PlanningCost> planning_cost_;
  SpeculationPolicy policy_;
  std::vector<Place> places_;     // in the order in which they came
  std::vector<Drafted> drafted_;  // rule confidence: of each place, in this step
  std::vector<std::vector<float>> confidences_;
  std::vector<ConfidentDraft> confident_;
  std::int64_t next_ = 0;
  std::int64_t served_ = 0;
  // Steps by accepted drafts, without and with a rejected one below: all that acceptance by position needs, at the
  // price of one addition a step.
  std::array<std::array<std::int64_t, 2>, kDraftLenMax + 1> steps_with_{};
  std::int64_t drafts_ = 0;
  std::int64_t draft_tokens_ = 0;
  StaticBatchResult result_;
};

}  // namespace

StaticBatchResult run_static_batch(const Workload& workload, const StepCost& cost, const AcceptanceModel& acceptance,
                                   const StaticBatchOptions& options) {
  return StaticBatch(workload, cost, acceptance, options).run();
}

}  // namespace draftproof
