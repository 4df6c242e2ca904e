#include "sim/serving/run_files.hpp"

namespace draftproof {
namespace {

// Nanoseconds as a decimal number of a thousand or a million of them, all digits.
std::string fixed(std::int64_t ns, int digits) {
  std::string text = std::to_string(ns);
  const auto wanted = static_cast<std::size_t>(digits) + 1;
  if (text.size() < wanted) text.insert(0, wanted - text.size(), '0');
  return text.insert(text.size() - static_cast<std::size_t>(digits), 1, '.');
}
std::string milliseconds(std::int64_t ns) {
  return fixed(ns, 6);
}
std::string microseconds(std::int64_t ns) {
  return fixed(ns, 3);
}

std::string counter(const char* name, const std::string& process, std::int64_t ns, const std::string& values) {
  return std::string(",\n{\"name\":\"") + name + "\",\"ph\":\"C\"," + process + ",\"ts\":" + microseconds(ns) +
         ",\"args\":{" + values + "}}";
}

}  // namespace

RunFiles::RunFiles(std::ostream& requests, std::ostream& steps, const std::string& process, std::int32_t servers)
    : requests_(requests), steps_(steps), servers_(servers) {
  requests_ << "request,arrival_ms,prompt_len,output_len,queue_ms,ttft_ms,tpot_ms,e2e_ms,steps,draft_tokens,"
               "accepted_tokens,preemptions"
            << (servers > 1 ? ",server\n" : "\n");
  steps_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (; server_ < servers; ++server_)
    steps_ << (server_ == 0 ? "" : ",\n") << "{\"name\":\"process_name\",\"ph\":\"M\"," << process_of_server()
           << ",\"args\":{\"name\":\"" << process << (servers > 1 ? ", server " + std::to_string(server_) : "")
           << "\"}}";
  server_ = 0;
}

RunFiles::~RunFiles() {
  steps_ << "\n]}\n";
}

void RunFiles::slice(const char* name, std::int64_t begin_ns, std::int64_t duration_ns, const std::string& arguments) {
  if (duration_ns == 0) return;
  steps_ << ",\n{\"name\":\"" << name << "\",\"ph\":\"X\"," << process_of_server()
         << ",\"tid\":1,\"ts\":" << microseconds(begin_ns) << ",\"dur\":" << microseconds(duration_ns) << ",\"args\":{"
         << arguments << "}}";
}

void RunFiles::on_step(const StepPlan& plan, const StepOutcome& outcome, const Scheduler& scheduler,
                       const SimulatedBackend& backend) {
  if (steps_seen_++ >= kTracedStepsMax) return;
  std::int64_t drafted = 0, accepted = 0, emitted = 0;
  for (const SequenceOutcome& sequence : outcome.sequences) {
    drafted += sequence.num_drafted;
    accepted += sequence.num_accepted;
    emitted += sequence.num_emitted;
  }
  const PassLoad& pass = backend.pass();
  const auto number = [](const char* key, std::int64_t value) {
    return std::string("\"") + key + "\":" + std::to_string(value);
  };
  slice("step", outcome.begin_ns, outcome.end_ns - outcome.begin_ns,
        number("step", plan.step) + "," + number("requests", static_cast<std::int64_t>(plan.requests.size())) + "," +
            number("rows", pass.rows) + "," + number("cached_tokens", pass.kv_tokens) + "," +
            number("drafted", drafted) + "," + number("accepted", accepted) + "," + number("emitted", emitted));
  slice("draft", outcome.begin_ns, outcome.draft_ns, number("passes", backend.draft().passes));
  slice("target", outcome.begin_ns + outcome.draft_ns, outcome.verify_ns, number("rows", pass.rows));
  slice("engine", outcome.begin_ns + outcome.draft_ns + outcome.verify_ns, outcome.sample_ns, "");
  const EngineMetrics& metrics = scheduler.metrics();
  steps_ << counter("requests", process_of_server(), outcome.begin_ns,
                    number("running", static_cast<std::int64_t>(plan.requests.size())) + "," +
                        number("waiting", metrics.num_waiting))
         << counter("KV blocks", process_of_server(), outcome.end_ns, number("held", metrics.blocks_held))
         << counter("tokens of the step", process_of_server(), outcome.begin_ns,
                    number("accepted", accepted) + "," + number("rejected", drafted - accepted));
}

void RunFiles::on_end(std::uint64_t request, const RequestProgress& r) {
  requests_ << request << ',' << milliseconds(r.arrival_ns) << ',' << r.streams[0].prompt_len << ',' << r.output_len
            << ',' << milliseconds(r.begin_ns - r.arrival_ns) << ',' << milliseconds(r.first_token_ns - r.arrival_ns)
            << ',';
  if (r.output_len > 1) requests_ << milliseconds((r.last_token_ns - r.first_token_ns) / (r.output_len - 1));
  requests_ << ',' << milliseconds(r.last_token_ns - r.arrival_ns) << ',' << r.steps << ',' << r.draft_tokens << ','
            << r.accepted_tokens << ',' << r.preemptions;
  if (servers_ > 1) requests_ << ',' << server_;
  requests_ << '\n';
}

}  // namespace draftproof
