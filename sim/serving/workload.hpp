// Which requests come when, and how long they are. A request has the same lengths in every run with the same seed, and
// the same arrival where arrivals do not depend on the server, so that policies are compared on the same requests
// (common random numbers).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "sim/serving/arrivals_file.hpp"

namespace draftproof {

// Simulated time is counted in 64 bits of nanoseconds. Up to here (146 years) the sum of two times fits, too.
inline constexpr std::int64_t kSimulatedNsMax = std::int64_t{1} << 62;
// Error (usage): the time lies behind it.
void require_simulated_ns(double ns, const char* what);

enum class ArrivalKind : std::uint8_t {
  poisson,
  gamma,     // gaps of a gamma distribution: bursty for a coefficient of variation above 1
  on_off,    // Poisson while a source is on; on and off for exponential times
  closed,    // `concurrency` requests are in the system: the next comes when one ends
  recorded,  // as in a file
};

struct ArrivalOptions {
  ArrivalKind kind = ArrivalKind::poisson;
  double rate = 1.0;               // requests per second, the mean over all time; recorded: 0, the file's own
  double variation = 1.0;          // gamma: standard deviation of the gaps / their mean
  double on_s = 1.0, off_s = 1.0;  // on_off: mean durations
  std::int32_t concurrency = 1;    // closed
};

enum class LengthKind : std::uint8_t { constant, lognormal, exponential, recorded };

// Lengths of prompts or outputs, in tokens. Drawn lengths are rounded up and kept inside [least, most].
struct LengthOptions {
  LengthKind kind = LengthKind::constant;
  double mean = 128.0;
  double variation = 1.0;  // lognormal: standard deviation / mean
  std::int32_t least = 1;
  std::int32_t most = std::numeric_limits<std::int32_t>::max();
};

struct WorkloadOptions {
  std::int64_t num_requests = 1000;
  ArrivalOptions arrivals;
  LengthOptions prompt;
  LengthOptions output;
  std::optional<std::int32_t> companion_prompt_len;  // of a guided request's unconditional companion
  double guided_share = 1.0;                         // of the requests, where there are companions
  // For recorded arrivals and lengths; requests beyond its end begin again, with arrivals that go on.
  std::shared_ptr<const ArrivalTrace> recorded;
};

struct RequestLengths {
  std::int32_t prompt_len;
  std::int32_t output_len;
};

class Workload {
 public:
  // Errors (usage): a rate, variation or duration that is not positive, no request, nothing recorded where that is
  // asked for, a source that goes on and off more than a thousand times between two requests.
  Workload(WorkloadOptions options, std::uint64_t seed);

  const WorkloadOptions& options() const { return options_; }
  bool closed() const { return options_.arrivals.kind == ArrivalKind::closed; }
  RequestLengths lengths(std::int64_t request) const;
  bool guided(std::int64_t request) const;

  // A turn of a session that comes after the end of another one.
  struct LaterTurn {
    std::int64_t request;
    std::int64_t delay_ns;  // since that end
  };
  std::optional<LaterTurn> turn_after(std::int64_t request) const;

  // The times at which requests arrive by the clock, ascending; of an open workload.
  class Arrivals {
   public:
    explicit Arrivals(const Workload& workload) : workload_(&workload) { skip_later_turns(); }
    // Number of the request whose time comes next.
    std::int64_t request() const { return request_; }
    // Error (usage) naming the request: it arrives behind kSimulatedNsMax.
    std::int64_t next_ns();

   private:
    void skip_later_turns();
    double next_gap_s();
    std::int64_t checked(double ns) const;

    const Workload* workload_;
    std::int64_t request_ = 0;
    double now_s_ = 0.0;
    double on_left_s_ = 0.0;
    std::uint64_t bursts_ = 0;
  };

 private:
  std::int32_t length(const LengthOptions& options, std::int64_t request, bool output) const;
  void read_turns();

  WorkloadOptions options_;
  std::uint64_t seed_;
  // For recorded arrivals: the turn after each request (-1: none), those that come by the clock, and the time from the
  // first of them to the first of a second round.
  std::vector<std::int64_t> turns_after_;
  std::int64_t by_clock_ = 0;
  std::int64_t round_ns_ = 0;
};

}  // namespace draftproof
