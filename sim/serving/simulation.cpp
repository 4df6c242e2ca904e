#include "sim/serving/simulation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sim/serving/planning_cost.hpp"

namespace draftproof {
namespace {

// Durations counted finely enough for percentiles: exact below 2^9 ns, above in buckets of which 2^9 make up a doubling
// (0.2 %). Memory does not grow with the number of observations, of which a long run has hundreds of millions.

class DurationCounts {
 public:
  void observe(std::int64_t ns) {
    // Requests of one step have waited equally long, as a rule.
    if (ns != last_ns_) {
      last_ns_ = ns;
      last_bucket_ = bucket_of(ns);
      if (last_bucket_ >= counts_.size()) counts_.resize(last_bucket_ + 1);
    }
    ++counts_[last_bucket_];
    ++count_;
    sum_ns_ += static_cast<double>(ns);
  }

  std::int64_t count() const { return count_; }
  double mean_ns() const { return count_ == 0 ? 0.0 : sum_ns_ / static_cast<double>(count_); }

  // The bucket's middle of the smallest duration that a share of at least `share` does not exceed; 0 of nothing.
  std::int64_t quantile_ns(double share) const {
    const double wanted = share * static_cast<double>(count_);
    std::int64_t seen = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += counts_[bucket];
      if (seen > 0 && static_cast<double>(seen) >= wanted) return middle_of(bucket);
    }
    return 0;
  }

 private:
  static constexpr int kBits = 9;

  static std::size_t bucket_of(std::int64_t ns) {
    const auto value = static_cast<std::uint64_t>(ns);
    const int shift = static_cast<int>(std::bit_width(value >> kBits)) - 1;
    if (shift < 0) return static_cast<std::size_t>(value);
    return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(value >> shift);
  }
  static std::int64_t middle_of(std::size_t bucket) {
    if (bucket < (std::size_t{2} << kBits)) return static_cast<std::int64_t>(bucket);
    const auto shift = (bucket >> kBits) - 1;
    const std::uint64_t low = (bucket - (shift << kBits)) << shift;
    return static_cast<std::int64_t>(low + (std::uint64_t{1} << shift) / 2);
  }

  std::vector<std::int64_t> counts_;
  std::int64_t count_ = 0;
  double sum_ns_ = 0.0;
  std::int64_t last_ns_ = -1;
  std::size_t last_bucket_ = 0;
};

// Nearest rank. Sorts.
LatencySummary summary_of(std::vector<std::int64_t>& durations_ns) {
  LatencySummary summary;
  if (durations_ns.empty()) return summary;
  std::ranges::sort(durations_ns);
  const auto n = static_cast<double>(durations_ns.size());
  const auto at = [&](double share) {
    return durations_ns[static_cast<std::size_t>(std::max(std::ceil(share * n), 1.0)) - 1];
  };
  double sum = 0.0;
  for (const std::int64_t ns : durations_ns) sum += static_cast<double>(ns);
  summary = {static_cast<std::int64_t>(durations_ns.size()), sum / n, at(0.5), at(0.9), at(0.99)};
  return summary;
}

LatencySummary summary_of(const DurationCounts& counts) {
  return {counts.count(), counts.mean_ns(), counts.quantile_ns(0.5), counts.quantile_ns(0.9), counts.quantile_ns(0.99)};
}

// What of two servers' metrics adds up.
void add(EngineMetrics& to, const EngineMetrics& from) {
  for (auto EngineMetrics::*const member :
       {&EngineMetrics::steps, &EngineMetrics::sequence_steps, &EngineMetrics::prompt_tokens,
        &EngineMetrics::recomputed_tokens, &EngineMetrics::preemptions, &EngineMetrics::swapped_blocks,
        &EngineMetrics::added, &EngineMetrics::ended_tokens, &EngineMetrics::ended_within_service_level,
        &EngineMetrics::draft_ns, &EngineMetrics::verify_ns, &EngineMetrics::sample_ns, &EngineMetrics::mask_ns,
        &EngineMetrics::busy_ns})
    to.*member += from.*member;
  for (std::size_t i = 0; i < kRequestEnds; ++i) to.ended[i] += from.ended[i];
  to.acceptance += from.acceptance;
  to.held_block_ns += from.held_block_ns;
  if (from.steps == 0) return;
  to.first_begin_ns = to.steps == from.steps ? from.first_begin_ns : std::min(to.first_begin_ns, from.first_begin_ns);
  to.last_end_ns = std::max(to.last_end_ns, from.last_end_ns);
}

struct Server {
  Server(const StepCost& cost, const AcceptanceModel& acceptance, const ServingOptions& options,
         std::int32_t its_number)
      : number(its_number),
        planning_cost(std::make_shared<PlanningCost>(cost, options.speculation.most, options.drafting.one_pass)),
        scheduler(options.scheduler, SpeculationPolicy(options.speculation, planning_cost)),
        backend(cost, acceptance, options.drafting, &scheduler.policy()) {}

  std::int32_t number;
  std::shared_ptr<PlanningCost> planning_cost;
  Scheduler scheduler;
  SimulatedBackend backend;
  StepOutcome outcome;
  const StepPlan* plan = nullptr;                              // the step under way, whose outcome is known
  std::vector<std::pair<std::int64_t, std::int64_t>> arrived;  // request and time, during that step
  std::int64_t requests = 0, prompt_tokens = 0;                // that have not ended
};

class Simulation {
 public:
  Simulation(const Workload& workload, const StepCost& cost, const AcceptanceModel& acceptance,
             const ServingOptions& options, ServingObserver* observer)
      : workload_(workload), options_(options), observer_(observer), arrivals_(workload) {
    if (observer != nullptr && options.fleet.servers > 1 && !observer->takes_several_servers())
      throw usage_error(
          "servers", "there are " + std::to_string(options.fleet.servers) + "; expected one, whose steps are recorded");
    for (std::int32_t i = 0; i < options.fleet.servers; ++i)
      servers_.push_back(std::make_unique<Server>(cost, acceptance, options_, i));
    const auto expected = static_cast<std::size_t>(workload.options().num_requests);
    ttft_ns_.reserve(expected);
    tpot_ns_.reserve(expected);
    e2e_ns_.reserve(expected);
  }

  ServingResult run() {
    if (workload_.closed()) {
      for (std::int32_t i = 0; i < workload_.options().arrivals.concurrency; ++i) add_next(0);
    } else {
      next_by_clock();
    }
    while (true) {
      while (next_arrival_ns() >= 0 && next_arrival_ns() <= now_ns_) arrive();
      Server* first = nullptr;  // to end its step
      for (const auto& server : servers_) {
        start(*server);
        if (server->plan != nullptr && (first == nullptr || server->outcome.end_ns < first->outcome.end_ns))
          first = server.get();
      }
      const std::int64_t arrival_ns = next_arrival_ns();
      if (arrival_ns >= 0 && (first == nullptr || arrival_ns <= first->outcome.end_ns)) {
        now_ns_ = arrival_ns;
      } else if (first != nullptr) {
        now_ns_ = first->outcome.end_ns;
        finish(*first);
      } else {
        break;
      }
    }
    return result();
  }

 private:
  void next_by_clock() {
    by_clock_ = arrivals_.request();
    by_clock_ns_ = by_clock_ < workload_.options().num_requests ? arrivals_.next_ns() : -1;
  }

  // -1: nobody arrives before somebody ends.
  std::int64_t next_arrival_ns() const {
    if (turns_.empty() || (by_clock_ns_ >= 0 && by_clock_ns_ <= turns_.top().first)) return by_clock_ns_;
    return turns_.top().first;
  }

  void arrive() {
    if (turns_.empty() || next_arrival_ns() == by_clock_ns_) {
      add(by_clock_, by_clock_ns_);
      return next_by_clock();
    }
    const auto [ns, request] = turns_.top();
    turns_.pop();
    add(request, ns);
  }

  void add_next(std::int64_t arrival_ns) {
    if (arrived_ < workload_.options().num_requests) add(arrived_, arrival_ns);
  }

  std::int64_t prompt_tokens_of(std::int64_t request) const {
    return workload_.lengths(request).prompt_len +
           (workload_.guided(request) ? *workload_.options().companion_prompt_len : 0);
  }

  Server& server_for(std::int64_t request) {
    const FleetOptions& fleet = options_.fleet;
    const bool guided = fleet.guided_servers > 0 && workload_.guided(request);
    const auto begin = static_cast<std::size_t>(guided ? 0 : fleet.guided_servers);
    const auto end = guided ? static_cast<std::size_t>(fleet.guided_servers) : servers_.size();
    if (fleet.router == Router::in_turn) return *servers_[begin + turn_[guided ? 1 : 0]++ % (end - begin)];
    const auto load = fleet.router == Router::fewest_requests ? &Server::requests : &Server::prompt_tokens;
    std::size_t best = begin;
    for (std::size_t i = begin; i < end; ++i)
      if ((*servers_[i]).*load < (*servers_[best]).*load) best = i;
    return *servers_[best];
  }

  void add(std::int64_t request, std::int64_t arrival_ns) {
    Server& server = server_for(request);
    ++server.requests;
    server.prompt_tokens += prompt_tokens_of(request);
    ++arrived_;
    ++events_;
    if (server.plan != nullptr)
      server.arrived.emplace_back(request, arrival_ns);
    else
      add_to(server, request, arrival_ns);
  }

  void add_to(Server& server, std::int64_t request, std::int64_t arrival_ns) {
    const RequestLengths lengths = workload_.lengths(request);
    RequestSpec spec;
    spec.prompt_len = lengths.prompt_len;
    if (workload_.guided(request)) spec.companion_prompt_len = workload_.options().companion_prompt_len;
    spec.output_len_max = lengths.output_len;
    spec.arrival_ns = arrival_ns;
    spec.draft_trees = options_.drafting.tree_depth > 0;
    RequestHandle handle = -1;
    try {
      handle = server.scheduler.add(spec, "a request");
    } catch (const Error& error) {
      throw Error(error.kind(), "request " + std::to_string(request) + " of the workload",
                  std::string(error.what()).substr(error.where().size() + 2));
    }
    server.backend.add(handle, static_cast<std::uint64_t>(request), lengths.prompt_len);
    requested_tokens_ += server.scheduler.progress(handle).output_len_max;
  }

  void start(Server& server) {
    if (server.plan != nullptr) return;
    const StepPlan& plan = server.scheduler.plan();
    if (plan.empty()) return;
    if (server.backend.now_ns() < now_ns_) server.backend.advance_to(now_ns_);
    server.backend.run(plan, server.outcome);
    server.plan = &plan;
  }

  void finish(Server& server) {
    const StepPlan& plan = *server.plan;
    const StepOutcome& outcome = server.outcome;
    const std::int64_t duration_ns = outcome.end_ns - outcome.begin_ns;
    count_inter_token(server);
    const EngineMetrics& now = server.scheduler.metrics();
    in_system_ns_ += static_cast<double>(now.num_running + now.num_waiting) * static_cast<double>(duration_ns);
    held_slot_ns_ += static_cast<double>(server.backend.held_slots()) * static_cast<double>(duration_ns);
    committed_slot_ns_ += static_cast<double>(server.backend.committed_kv_tokens()) * static_cast<double>(duration_ns);
    server.planning_cost->set_context(static_cast<double>(server.backend.committed_kv_tokens()) /
                                      static_cast<double>(plan.requests.size()));
    server.scheduler.commit(outcome);
    ++events_;
    if (observer_ != nullptr) {
      observer_->on_server(server.number);
      observer_->on_step(plan, outcome, server.scheduler, server.backend);
    }
    server.plan = nullptr;
    for (const RequestHandle handle : server.scheduler.finished()) end(server, handle);
    // In a closed system the next request comes with the end of the one before.
    if (workload_.closed())
      for (std::size_t i = server.scheduler.finished().size(); i > 0; --i) add_next(outcome.end_ns);
    for (const auto& [request, arrival_ns] : server.arrived) add_to(server, request, arrival_ns);
    server.arrived.clear();
  }

  void count_inter_token(const Server& server) {
    const auto warmup = static_cast<std::uint64_t>(options_.warmup_requests);
    for (const PlannedRequest& planned : server.plan->requests) {
      if (!planned.sample) continue;
      const std::int64_t last_ns = server.scheduler.progress(planned.request).last_token_ns;
      if (last_ns >= 0 && server.backend.number(planned.request) >= warmup)
        inter_token_.observe(server.outcome.end_ns - last_ns);
    }
  }

  void end(Server& server, RequestHandle handle) {
    const RequestProgress& request = server.scheduler.progress(handle);
    // The metrics' sums of shorter durations are below this one.
    in_system_sum_ns_ += static_cast<double>(request.last_token_ns - request.arrival_ns);
    require_simulated_ns(in_system_sum_ns_, "time in the system of all requests");
    served_ += request.output_len == request.output_len_max ? 1 : 0;
    const std::uint64_t number = server.backend.number(handle);
    --server.requests;
    server.prompt_tokens -= prompt_tokens_of(static_cast<std::int64_t>(number));
    queue_ns_ += static_cast<double>(request.begin_ns - request.arrival_ns);
    if (number >= static_cast<std::uint64_t>(options_.warmup_requests)) {
      const std::size_t kind = workload_.guided(static_cast<std::int64_t>(number)) ? 1 : 0;
      ttft_ns_.push_back(request.first_token_ns - request.arrival_ns);
      ttft_of_kind_ns_[kind].push_back(ttft_ns_.back());
      e2e_ns_.push_back(request.last_token_ns - request.arrival_ns);
      if (request.output_len > 1) {
        tpot_ns_.push_back((request.last_token_ns - request.first_token_ns) / (request.output_len - 1));
        tpot_of_kind_ns_[kind].push_back(tpot_ns_.back());
      }
    }
    if (observer_ != nullptr) observer_->on_end(number, request);
    if (const auto turn = workload_.turn_after(static_cast<std::int64_t>(number))) {
      require_simulated_ns(static_cast<double>(request.last_token_ns) + static_cast<double>(turn->delay_ns),
                           "delay of a later turn");
      turns_.emplace(request.last_token_ns + turn->delay_ns, turn->request);
    }
  }

  ServingResult result() {
    EngineMetrics metrics = servers_.front()->scheduler.metrics();
    std::int64_t blocks_held = servers_.front()->scheduler.blocks().num_held();
    for (std::size_t i = 1; i < servers_.size(); ++i) {
      draftproof::add(metrics, servers_[i]->scheduler.metrics());
      blocks_held += servers_[i]->scheduler.blocks().num_held();
    }
    ConservationCounts counts;
    counts.requests_wanted = workload_.options().num_requests;
    counts.requests_arrived = arrived_;
    for (const std::int64_t ended : metrics.ended) counts.requests_ended += ended;
    counts.requests_served = served_;
    counts.tokens_requested = requested_tokens_;
    counts.tokens_received = metrics.generation_tokens();
    counts.tokens_ended = metrics.ended_tokens;
    counts.blocks_held = blocks_held;
    if (const auto violated = violated_conservation(counts)) throw Error(ErrorKind::internal, "simulation", *violated);
    ServingResult result;
    result.metrics = metrics;
    result.ttft = summary_of(ttft_ns_);
    result.tpot = summary_of(tpot_ns_);
    result.e2e = summary_of(e2e_ns_);
    result.inter_token = summary_of(inter_token_);
    result.ttft_plain = summary_of(ttft_of_kind_ns_[0]);
    result.ttft_guided = summary_of(ttft_of_kind_ns_[1]);
    result.tpot_plain = summary_of(tpot_of_kind_ns_[0]);
    result.tpot_guided = summary_of(tpot_of_kind_ns_[1]);
    result.queue_mean_ns =
        servers_.size() == 1 ? metrics.queue.mean_ns() : queue_ns_ / static_cast<double>(counts.requests_ended);
    result.events = events_;
    for (const auto& server : servers_) {
      result.asked_drafts += server->backend.asked_drafts();
      result.ready_drafts += server->backend.ready_drafts();
    }
    result.requested_tokens = requested_tokens_;
    result.requests_in_system = in_system_ns_ / static_cast<double>(metrics.last_end_ns);
    result.kv_waste = held_slot_ns_ > 0.0 ? 1.0 - committed_slot_ns_ / held_slot_ns_ : 0.0;
    return result;
  }

  const Workload& workload_;
  const ServingOptions& options_;
  ServingObserver* observer_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::array<std::size_t, 2> turn_{};  // of the pools, the guided one second
  Workload::Arrivals arrivals_;
  std::int64_t now_ns_ = 0;
  std::int64_t by_clock_ = 0, by_clock_ns_ = -1;       // the next request by the clock; -1: no more arrive by it
  using Turn = std::pair<std::int64_t, std::int64_t>;  // time, request
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::int64_t arrived_ = 0;
  std::int64_t served_ = 0;
  std::int64_t requested_tokens_ = 0;
  std::int64_t events_ = 0;
  double held_slot_ns_ = 0.0;
  double committed_slot_ns_ = 0.0;
  double in_system_ns_ = 0.0;
  double in_system_sum_ns_ = 0.0;
  DurationCounts inter_token_;
  double queue_ns_ = 0.0;
  std::array<std::vector<std::int64_t>, 2> ttft_of_kind_ns_, tpot_of_kind_ns_;  // guided second
  std::vector<std::int64_t> ttft_ns_;
  std::vector<std::int64_t> tpot_ns_;
  std::vector<std::int64_t> e2e_ns_;
};

}  // namespace

const char* name_of(Router router) {
  return router == Router::in_turn           ? "in_turn"
         : router == Router::fewest_requests ? "fewest_requests"
                                             : "fewest_tokens";
}

std::optional<std::string> violated_conservation(const ConservationCounts& counts) {
  const auto unequal = [](std::int64_t a, const char* a_is, std::int64_t b, const char* b_is) {
    return std::to_string(a) + " " + a_is + ", but " + std::to_string(b) + " " + b_is;
  };
  if (counts.requests_arrived != counts.requests_wanted)
    return unequal(counts.requests_wanted, "requests were to be served", counts.requests_arrived, "arrived");
  if (counts.requests_ended != counts.requests_arrived)
    return unequal(counts.requests_arrived, "requests arrived", counts.requests_ended, "ended");
  if (counts.requests_served != counts.requests_ended)
    return unequal(counts.requests_ended, "requests ended", counts.requests_served, "with all their tokens");
  if (counts.tokens_received != counts.tokens_requested)
    return unequal(counts.tokens_requested, "tokens were requested", counts.tokens_received, "received");
  if (counts.tokens_ended != counts.tokens_received)
    return unequal(counts.tokens_received, "tokens were received", counts.tokens_ended, "by requests that ended");
  if (counts.blocks_held != 0) return std::to_string(counts.blocks_held) + " blocks are held by nobody's request";
  return std::nullopt;
}

ServingResult simulate(const Workload& workload, const StepCost& cost, const AcceptanceModel& acceptance,
                       const ServingOptions& options, ServingObserver* observer) {
  return Simulation(workload, cost, acceptance, options, observer).run();
}

}  // namespace draftproof
