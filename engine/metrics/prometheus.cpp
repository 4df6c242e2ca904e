#include "engine/metrics/prometheus.hpp"

#include <cstdint>
#include <sstream>

namespace draftproof {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

// Whole nanoseconds as seconds, exactly, without trailing zeros.
std::string seconds(TotalNs ns) {
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  std::string digits = std::to_string(static_cast<std::int64_t>(ns % kPerSecond));
  digits.insert(0, 9 - digits.size(), '0');
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  return std::to_string(static_cast<std::int64_t>(ns / kPerSecond)) + "." + digits;
}

class Writer {
 public:
  explicit Writer(std::string_view model_name) : labels_("engine=\"0\",model_name=\"" + escaped(model_name) + "\"") {
    out_.precision(17);
  }

  void head(std::string_view name, std::string_view type, std::string_view help, std::string_view of = "vllm") {
    out_ << "# HELP " << of << ':' << name << ' ' << help << "\n# TYPE " << of << ':' << name << ' ' << type << '\n';
  }
  // One of our own, which vLLM has not.
  template <class Number>
  void own(std::string_view name, std::string_view type, std::string_view help, const Number& value) {
    head(name, type, help, "draftproof");
    out_ << "draftproof:" << name << '{' << labels_ << "} " << value << '\n';
  }
  template <class Number>
  void sample(std::string_view name, const Number& value, const std::string& label = "") {
    out_ << "vllm:" << name << '{' << labels_ << (label.empty() ? "" : "," + label) << "} " << value << '\n';
  }
  template <class Number>
  void gauge(std::string_view name, std::string_view help, Number value) {
    head(name, "gauge", help);
    sample(name, value);
  }
  void counter(const std::string& name, std::string_view help, std::int64_t value) {
    head(name + "_total", "counter", help);
    sample(name + "_total", value);
  }
  void histogram(const std::string& name, std::string_view help, const LatencyHistogram& histogram) {
    head(name, "histogram", help);
    std::int64_t up_to = 0;
    for (std::size_t i = 0; i < histogram.bounds_ns().size(); ++i)
      sample(name + "_bucket", up_to += histogram.counts()[i], "le=\"" + seconds(histogram.bounds_ns()[i]) + "\"");
    sample(name + "_bucket", histogram.count(), "le=\"+Inf\"");
    sample(name + "_count", histogram.count());
    sample(name + "_sum", seconds(histogram.sum_ns()));
  }

  std::string text() const { return out_.str(); }

 private:
  std::string labels_;
  std::ostringstream out_;
};

void write_speculation(Writer& out, const AcceptanceCounts& counts) {
  out.counter("spec_decode_num_drafts", "Steps that had a draft.", counts.drafts);
  out.counter("spec_decode_num_draft_tokens", "Drafted tokens.", counts.draft_tokens);
  out.counter("spec_decode_num_accepted_tokens", "Drafted tokens that were accepted.", counts.accepted_tokens);
  out.head("spec_decode_num_accepted_tokens_per_pos_total", "counter",
           "Drafted tokens that were accepted, by position from 0.");
  for (std::size_t j = 0; j < counts.accepted.size(); ++j)
    out.sample("spec_decode_num_accepted_tokens_per_pos_total", counts.accepted[j],
               "position=\"" + std::to_string(j) + "\"");
}

}  // namespace

std::string prometheus_text(const EngineMetrics& metrics, std::string_view model_name) {
  Writer out(model_name);
  out.gauge("num_requests_running", "Requests that hold KV blocks and take part in steps.", metrics.num_running);
  out.gauge("num_requests_waiting", "Requests that wait, preempted ones included.", metrics.num_waiting);
  out.gauge("kv_cache_usage_perc", "Share of the KV blocks that are held.", metrics.kv_usage());
  out.counter("prefix_cache_queries", "Tokens that were looked up in the prefix cache.", metrics.prefix_queries);
  out.counter("prefix_cache_hits", "Tokens that were found in the prefix cache.", metrics.prefix_hits);
  out.counter("num_preemptions", "Preemptions of requests.", metrics.preemptions);
  out.counter("prompt_tokens", "Prompt tokens computed.", metrics.prompt_tokens);
  out.counter("generation_tokens", "Tokens that requests received.", metrics.generation_tokens());
  out.head("request_success_total", "counter", "Requests that ended, by reason.");
  const auto ended = [&](RequestEnd end) { return metrics.ended[static_cast<std::size_t>(end)]; };
  out.sample("request_success_total", ended(RequestEnd::stop), "finished_reason=\"stop\"");
  out.sample("request_success_total", ended(RequestEnd::length), "finished_reason=\"length\"");
  out.sample("request_success_total", ended(RequestEnd::cancelled), "finished_reason=\"abort\"");
  out.sample("request_success_total", ended(RequestEnd::failed), "finished_reason=\"error\"");
  write_speculation(out, metrics.acceptance);
  out.own("draft_seconds_total", "counter", "Time of drafting.", seconds(metrics.draft_ns));
  out.own("verify_seconds_total", "counter", "Time of verification.", seconds(metrics.verify_ns));
  out.own("acceptance_rate_p50", "gauge", "Median over steps with a draft of accepted over drafted tokens.",
          metrics.acceptance_rate_p50());
  out.own("overhead_ratio", "gauge", "Time of drafting over time of verification.", metrics.overhead_ratio());
  out.own("effective_speedup", "gauge", "Tokens per step over 1 + overhead_ratio.", metrics.effective_speedup());
  out.own("tokens_per_row", "gauge", "Accepted tokens and one more over rows verified, of steps with a draft.",
          metrics.tokens_per_row());
  out.histogram("time_to_first_token_seconds", "Arrival to first token.", metrics.ttft);
  out.histogram("inter_token_latency_seconds", "Between two steps that emitted for a request.", metrics.inter_token);
  out.histogram("request_time_per_output_token_seconds", "Mean time per token after the first, by request.",
                metrics.tpot);
  out.histogram("request_queue_time_seconds", "Arrival to the first step.", metrics.queue);
  out.histogram("e2e_request_latency_seconds", "Arrival to the last token.", metrics.e2e);
  return out.text();
}

}  // namespace draftproof
