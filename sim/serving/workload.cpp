#include "sim/serving/workload.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "reference/random/uniform.hpp"
#include "sim/serving/variates.hpp"

namespace draftproof {
namespace {

void require_positive(double value, const char* name) {
  if (!(value > 0.0) || !std::isfinite(value))
    throw usage_error(name, "it is " + std::to_string(value) + "; expected a number above 0");
}

// More periods than this look like a Poisson source, and take their time each.
constexpr double kPeriodsPerRequestMax = 1000.0;

std::string beyond_time(double ns) {
  return number("%.3g", ns * 1e-9) + " s; expected at most " +
         number("%.3g", static_cast<double>(kSimulatedNsMax) * 1e-9) + " s of simulated time";
}

void check(const LengthOptions& options, bool recorded, const char* name) {
  require_positive(options.mean, name);
  require_positive(options.variation, name);
  if (options.least < 1 || options.most < options.least)
    throw usage_error(name, "its bounds are " + std::to_string(options.least) + " and " + std::to_string(options.most) +
                                "; expected 1 <= least <= most");
  if (options.kind == LengthKind::recorded && !recorded)
    throw usage_error(name, "no recorded requests were given; expected a file with them");
}

}  // namespace

void require_simulated_ns(double ns, const char* what) {
  if (!(ns <= static_cast<double>(kSimulatedNsMax))) throw usage_error(what, "it lasts " + beyond_time(ns));
}

Workload::Workload(WorkloadOptions options, std::uint64_t seed) : options_(std::move(options)), seed_(seed) {
  const bool recorded = options_.recorded && !options_.recorded->requests.empty();
  const ArrivalOptions& arrivals = options_.arrivals;
  if (options_.num_requests < 1)
    throw usage_error("requests", "there are " + std::to_string(options_.num_requests) + "; expected 1 or more");
  if (arrivals.kind == ArrivalKind::recorded && !recorded)
    throw usage_error("arrivals", "no recorded requests were given; expected a file with them");
  if (arrivals.kind == ArrivalKind::recorded ? arrivals.rate != 0.0 : !closed())
    require_positive(arrivals.rate, "arrival rate");
  require_positive(arrivals.variation, "variation of the gaps between arrivals");
  require_positive(arrivals.on_s, "time for which the source is on");
  require_positive(arrivals.off_s, "time for which the source is off");
  const double periods = 1.0 / (arrivals.rate * (arrivals.on_s + arrivals.off_s));
  if (arrivals.kind == ArrivalKind::on_off && !(periods <= kPeriodsPerRequestMax))
    throw usage_error("arrivals",
                      "the source is on and off for " + number("%g", arrivals.on_s + arrivals.off_s) + " s, " +
                          number("%.3g", periods) + " times between two requests; expected at most " +
                          number("%g", kPeriodsPerRequestMax) + " times: " +
                          number("%.3g", 1.0 / (arrivals.rate * kPeriodsPerRequestMax)) + " s or more at this rate");
  if (arrivals.concurrency < 1)
    throw usage_error("concurrency", "it is " + std::to_string(arrivals.concurrency) + "; expected 1 or more");
  check(options_.prompt, recorded, "prompt lengths");
  check(options_.output, recorded, "output lengths");
  if (arrivals.kind == ArrivalKind::recorded) read_turns();
}

void Workload::read_turns() {
  const std::vector<RecordedArrival>& rows = options_.recorded->requests;
  turns_after_.assign(rows.size(), -1);
  std::int64_t last_ns = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].turn_before >= 0) {
      turns_after_[static_cast<std::size_t>(rows[i].turn_before)] = static_cast<std::int64_t>(i);
    } else {
      last_ns = rows[i].arrival_ns;
      ++by_clock_;
    }
  }
  // A second round begins one mean gap after the last arrival of the first.
  round_ns_ = last_ns + last_ns / std::max<std::int64_t>(by_clock_ - 1, 1);
}

std::optional<Workload::LaterTurn> Workload::turn_after(std::int64_t request) const {
  if (turns_after_.empty()) return std::nullopt;
  const auto count = static_cast<std::int64_t>(turns_after_.size());
  const std::int64_t turn = turns_after_[static_cast<std::size_t>(request % count)];
  const std::int64_t number = request - request % count + turn;
  if (turn < 0 || number >= options_.num_requests) return std::nullopt;
  return LaterTurn{number, options_.recorded->requests[static_cast<std::size_t>(turn)].arrival_ns};
}

std::int32_t Workload::length(const LengthOptions& options, std::int64_t request, bool output) const {
  const VariateAddress address{seed_, static_cast<std::uint64_t>(request),
                               output ? VariateStream::output_len : VariateStream::prompt_len};
  double length = options.mean;
  switch (options.kind) {
    case LengthKind::constant:
      break;
    case LengthKind::lognormal: {
      const double variance = natural_log(1.0 + options.variation * options.variation);
      length *= natural_exp(std::sqrt(variance) * normal_variate(address) - 0.5 * variance);
      break;
    }
    case LengthKind::exponential:
      length *= exponential_variate(address);
      break;
    case LengthKind::recorded: {
      const std::vector<RecordedArrival>& rows = options_.recorded->requests;
      const RecordedArrival& row = rows[static_cast<std::size_t>(request) % rows.size()];
      length = output ? row.output_len : row.prompt_len;
      break;
    }
  }
  return static_cast<std::int32_t>(
      std::clamp(std::ceil(length), static_cast<double>(options.least), static_cast<double>(options.most)));
}

RequestLengths Workload::lengths(std::int64_t request) const {
  return {length(options_.prompt, request, false), length(options_.output, request, true)};
}

bool Workload::guided(std::int64_t request) const {
  if (!options_.companion_prompt_len || options_.guided_share >= 1.0) return options_.companion_prompt_len.has_value();
  const VariateAddress address{seed_, static_cast<std::uint64_t>(request), VariateStream::guided};
  return uniform_53(high_half(address.block())) < options_.guided_share;
}

double Workload::Arrivals::next_gap_s() {
  const ArrivalOptions& options = workload_->options_.arrivals;
  const auto item = static_cast<std::uint64_t>(request_);
  const VariateAddress address{workload_->seed_, item, VariateStream::gap};
  if (options.kind == ArrivalKind::gamma)
    return gamma_variate(address, 1.0 / (options.variation * options.variation)) / options.rate;
  if (options.kind == ArrivalKind::poisson) return exponential_variate(address) / options.rate;
  // The rate while the source is on makes up for the time in which it is off.
  const double rate = options.rate * (options.on_s + options.off_s) / options.on_s;
  double on_s = exponential_variate(address) / rate;
  double gap_s = 0.0;
  while (on_s > on_left_s_) {
    on_s -= on_left_s_;
    gap_s += on_left_s_;
    // The source is found on at time 0.
    if (bursts_ > 0)
      gap_s += options.off_s * exponential_variate({workload_->seed_, bursts_, VariateStream::burst_off});
    on_left_s_ = options.on_s * exponential_variate({workload_->seed_, bursts_++, VariateStream::burst_on});
  }
  on_left_s_ -= on_s;
  return gap_s + on_s;
}

std::int64_t Workload::Arrivals::checked(double ns) const {
  if (ns <= static_cast<double>(kSimulatedNsMax)) return std::llround(ns);
  throw usage_error("arrivals", "request " + std::to_string(request_ - 1) + " arrives at " + beyond_time(ns) +
                                    "; a higher rate, or fewer requests");
}

void Workload::Arrivals::skip_later_turns() {
  if (workload_->turns_after_.empty()) return;
  const std::vector<RecordedArrival>& rows = workload_->options_.recorded->requests;
  while (rows[static_cast<std::size_t>(request_) % rows.size()].turn_before >= 0) ++request_;
}

std::int64_t Workload::Arrivals::next_ns() {
  const ArrivalOptions& options = workload_->options_.arrivals;
  if (options.kind != ArrivalKind::recorded) {
    now_s_ += next_gap_s();
    ++request_;
    return checked(now_s_ * 1e9);
  }
  const std::vector<RecordedArrival>& rows = workload_->options_.recorded->requests;
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t length_ns = workload_->round_ns_;
  const std::int64_t in_round_ns = rows[static_cast<std::size_t>(request_ % count)].arrival_ns;
  const std::int64_t rounds = request_ / count;
  ++request_;
  checked(static_cast<double>(in_round_ns) + static_cast<double>(rounds) * static_cast<double>(length_ns));
  skip_later_turns();
  const std::int64_t ns = in_round_ns + rounds * length_ns;
  if (options.rate == 0.0) return ns;
  const double rate_recorded =
      static_cast<double>(count) * 1e9 / static_cast<double>(std::max<std::int64_t>(length_ns, 1));
  return checked(static_cast<double>(ns) * (rate_recorded / options.rate));
}

}  // namespace draftproof
