#include "engine/metrics/metrics.hpp"

#include <vector>

namespace draftproof {
namespace {

std::vector<std::int64_t> milliseconds(std::initializer_list<std::int64_t> bounds) {
  std::vector<std::int64_t> ns;
  for (const std::int64_t bound : bounds) ns.push_back(bound * 1'000'000);
  return ns;
}

// vLLM's buckets (vllm/v1/metrics/loggers.py).
std::vector<std::int64_t> first_token_bounds() {
  return milliseconds({1,    5,    10,   20,   40,     60,     80,     100,    250,     500,     750,
                       1000, 2500, 5000, 7500, 10'000, 20'000, 40'000, 80'000, 160'000, 640'000, 2'560'000});
}
std::vector<std::int64_t> token_bounds() {
  return milliseconds(
      {10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2500, 5000, 7500, 10'000, 20'000, 40'000, 80'000});
}
std::vector<std::int64_t> request_bounds() {
  return milliseconds({300,    500,    800,    1000,   1500,    2000,    2500,    5000,    10'000,    15'000,   20'000,
                       30'000, 40'000, 50'000, 60'000, 120'000, 240'000, 480'000, 960'000, 1'920'000, 7'680'000});
}

double share(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}

}  // namespace

EngineMetrics::EngineMetrics()
    : ttft(first_token_bounds()),
      inter_token(token_bounds()),
      tpot(token_bounds()),
      queue(request_bounds()),
      e2e(request_bounds()) {}

double EngineMetrics::acceptance_length() const {
  return acceptance.acceptance_length();
}

double EngineMetrics::tokens_per_step() const {
  return share(static_cast<double>(acceptance.received_tokens), static_cast<double>(acceptance.steps));
}

double EngineMetrics::acceptance_rate_p50() const {
  std::int64_t up_to = 0;
  for (std::size_t share = 0; share < accepted_shares.size(); ++share)
    if ((up_to += accepted_shares[share]) * 2 >= acceptance.drafts && up_to > 0)
      return static_cast<double>(share) / 1000.0;
  return 0.0;
}

double EngineMetrics::overhead_ratio() const {
  return share(static_cast<double>(draft_ns), static_cast<double>(verify_ns));
}

double EngineMetrics::effective_speedup() const {
  return tokens_per_step() / (1.0 + overhead_ratio());
}

double EngineMetrics::tokens_per_row() const {
  return share(static_cast<double>(acceptance.accepted_tokens + acceptance.drafts),
               static_cast<double>(acceptance.draft_tokens + acceptance.drafts));
}

double EngineMetrics::goodput() const {
  return share(static_cast<double>(generation_tokens()), static_cast<double>(last_end_ns - first_begin_ns) * 1e-9);
}

double EngineMetrics::requests_per_second_within_service_level() const {
  return share(static_cast<double>(ended_within_service_level),
               static_cast<double>(last_end_ns - first_begin_ns) * 1e-9);
}

double EngineMetrics::kv_usage() const {
  return share(static_cast<double>(blocks_held), static_cast<double>(num_blocks));
}

double EngineMetrics::kv_usage_mean() const {
  return share(held_block_ns, static_cast<double>(num_blocks) * static_cast<double>(busy_ns));
}

}  // namespace draftproof
