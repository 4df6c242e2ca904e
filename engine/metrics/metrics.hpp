// Metrics of the engine, counted by the scheduler step by step. Times are whole nanoseconds of the backend's clock.
//
//   TTFT     end of the step that emitted the first token - arrival
//   ITL      end of a step that emitted - end of the step before that emitted for the same request (one observation a
//            step, however many tokens it emitted, as vLLM counts)
//   TPOT     (last token - first token) / (output tokens - 1), of a finished request
//   acceptance_rate_p50  median over steps with a draft of accepted / drafted, rounded down to a thousandth
//   overhead_ratio       time of drafting / time of verification
//   effective_speedup    tokens per step / (1 + overhead ratio): the speedup where a plain step takes as long as a
//                        verification
//   tokens_per_row       tau / (gamma + 1): of steps with a draft, accepted tokens and one more / rows verified
//   goodput  tokens that requests received / time between the begin of the first step and the end of the last; by
//            service level: finished requests that kept to it / the same time
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/metrics/acceptance.hpp"

namespace draftproof {

// A sum of durations, each of 63 bits.
__extension__ typedef __int128 TotalNs;

// Durations counted in buckets. Times are whole nanoseconds.
class LatencyHistogram {
 public:
  // bounds_ns [n], ascending: bucket i counts what is at most bounds_ns[i] and above the bound before; a last bucket
  // counts the rest.
  explicit LatencyHistogram(std::span<const std::int64_t> bounds_ns)
      : bounds_ns_(bounds_ns.begin(), bounds_ns.end()), counts_(bounds_ns.size() + 1) {}

  void observe(std::int64_t duration_ns) {
    // Requests of one step have waited equally long, as a rule.
    if (duration_ns != last_ns_) {
      last_ns_ = duration_ns;
      last_bucket_ = static_cast<std::size_t>(std::ranges::lower_bound(bounds_ns_, duration_ns) - bounds_ns_.begin());
    }
    ++counts_[last_bucket_];
    ++count_;
    sum_ns_ += duration_ns;
  }

  std::span<const std::int64_t> bounds_ns() const { return bounds_ns_; }
  std::span<const std::int64_t> counts() const { return counts_; }  // [n + 1], each bucket's own
  std::int64_t count() const { return count_; }
  TotalNs sum_ns() const { return sum_ns_; }
  double mean_ns() const { return count_ == 0 ? 0.0 : static_cast<double>(sum_ns_) / static_cast<double>(count_); }

 private:
  std::vector<std::int64_t> bounds_ns_;
  std::vector<std::int64_t> counts_;
  std::int64_t count_ = 0;
  TotalNs sum_ns_ = 0;
  std::int64_t last_ns_ = -1;
  std::size_t last_bucket_ = 0;
};

// How a request ended.
enum class RequestEnd : std::uint8_t { none, stop, length, cancelled, failed };
inline constexpr std::size_t kRequestEnds = 5;

// Times that a request may take at most; 0: any time.
struct ServiceLevel {
  std::int64_t ttft_ns = 0;
  std::int64_t tpot_ns = 0;
};

struct EngineMetrics {
  EngineMetrics();

  // Steps of the engine, and of its requests (a request in a step is one, whether it computed a chunk or emitted).
  std::int64_t steps = 0;
  std::int64_t sequence_steps = 0;
  AcceptanceCounts acceptance;  // of steps that emitted; by position, or by depth in trees

  std::array<std::int64_t, 1001> accepted_shares{};  // steps with a draft, by thousandths of it that were accepted

  std::int64_t prompt_tokens = 0;      // computed for streams that had not emitted before, companions' too
  std::int64_t recomputed_tokens = 0;  // computed again after a preemption
  std::int64_t prefix_queries = 0;     // tokens of streams that were admitted with keys
  std::int64_t prefix_hits = 0;        // of them, tokens found in the cache
  std::int64_t preemptions = 0;        // of requests
  std::int64_t swapped_blocks = 0;     // written to the swap space
  std::int64_t added = 0;              // requests accepted by the scheduler
  std::array<std::int64_t, kRequestEnds> ended{};
  std::int64_t ended_tokens = 0;  // that the ended requests received
  std::int64_t ended_within_service_level = 0;

  std::int64_t draft_ns = 0;
  std::int64_t verify_ns = 0;
  std::int64_t sample_ns = 0;
  std::int64_t mask_ns = 0;
  std::int64_t busy_ns = 0;  // of all steps
  std::int64_t first_begin_ns = 0;
  std::int64_t last_end_ns = 0;

  // Now.
  std::int64_t num_running = 0;
  std::int64_t num_waiting = 0;  // preempted and swapped ones too
  std::int64_t num_blocks = 0;
  std::int64_t blocks_held = 0;
  std::int64_t blocks_held_max = 0;
  double held_block_ns = 0.0;  // blocks held times time, over all steps

  LatencyHistogram ttft;
  LatencyHistogram inter_token;
  LatencyHistogram tpot;
  LatencyHistogram queue;  // begin of the first step - arrival
  LatencyHistogram e2e;    // end of the last step - arrival

  std::int64_t generation_tokens() const { return acceptance.received_tokens; }
  std::int64_t wasted_drafts() const { return acceptance.draft_tokens - acceptance.accepted_tokens; }
  // 1 + accepted / drafts; 1 without drafts.
  double acceptance_length() const;
  double acceptance_rate_p50() const;  // 0 without drafts, as the next three without their denominator
  double overhead_ratio() const;
  double effective_speedup() const;
  double tokens_per_row() const;
  void count_draft(std::int64_t drafted, std::int64_t accepted) {
    if (drafted > 0) ++accepted_shares[static_cast<std::size_t>(1000 * accepted / drafted)];
  }
  // Tokens received per step that emitted; 0 without steps.
  double tokens_per_step() const;
  // Received tokens per second; 0 before any time has passed.
  double goodput() const;
  double requests_per_second_within_service_level() const;
  double kv_usage() const;       // share of the blocks that are held now
  double kv_usage_mean() const;  // over the time of all steps
};

}  // namespace draftproof
