// A run as files: its requests as CSV, its steps as a trace that chrome://tracing and Perfetto show.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "sim/serving/simulation.hpp"

namespace draftproof {

inline constexpr std::int64_t kTracedStepsMax = 20'000;  // a viewer holds no more

// Both streams must outlive the object, which writes the end of the trace.
class RunFiles final : public ServingObserver {
 public:
  // requests: arrival_ms,prompt_len,output_len,queue_ms,ttft_ms,tpot_ms,e2e_ms,steps,draft_tokens,accepted_tokens,
  //           preemptions, in the order in which requests end; tpot_ms is empty of one token; of several servers behind
  //           them server, 0, 1, ...
  // steps:    every step with its drafting, target pass and rest; counters of requests, KV blocks and tokens. Of a long
  //           run the first kTracedStepsMax steps. A server is a process of the trace.
  RunFiles(std::ostream& requests, std::ostream& steps, const std::string& process, std::int32_t servers = 1);
  ~RunFiles() override;

  bool takes_several_servers() const override { return true; }
  void on_server(std::int32_t server) override { server_ = server; }

  void on_step(const StepPlan& plan, const StepOutcome& outcome, const Scheduler& scheduler,
               const SimulatedBackend& backend) override;
  void on_end(std::uint64_t request, const RequestProgress& progress) override;

  std::int64_t steps() const { return steps_seen_; }

 private:
  std::string process_of_server() const { return "\"pid\":" + std::to_string(server_ + 1); }
  void slice(const char* name, std::int64_t begin_ns, std::int64_t duration_ns, const std::string& arguments);

  std::ostream& requests_;
  std::ostream& steps_;
  std::int32_t servers_;
  std::int32_t server_ = 0;
  std::int64_t steps_seen_ = 0;
};

}  // namespace draftproof
