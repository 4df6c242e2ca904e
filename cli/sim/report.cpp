#include "cli/sim/report.hpp"

#include <cmath>
#include <cstdio>

#include "base/printable.hpp"

namespace draftproof {
namespace {

std::string text(const char* format, double value) {
  if (!std::isfinite(value)) return "-";
  char out[64];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

}  // namespace

void print_sim_report(std::ostream& out, const Scenario& scenario, std::span<const PolicyReport> reports) {
  out << printable_line(scenario.server) << '\n'
      << scenario.workload.num_requests << " requests, " << scenario.replications << " replication"
      << (scenario.replications == 1 ? "" : "s");
  if (!scenario.static_batch) out << ", " << scenario.scheduler.num_blocks << " KV blocks";
  out << "\n\n";
  struct Column {
    const char* head;
    const char* unit;
    const char* format;
    Figure figure;
  };
  const Column columns[] = {{"tokens", "/s", "%.0f", Figure::throughput},
                            {"goodput", "req/s", "%.2f", Figure::goodput},
                            {"in SLO", "share", "%.3f", Figure::slo_share},
                            {"TTFT ms", "p50", "%.1f", Figure::ttft_p50},
                            {"", "p99", "%.1f", Figure::ttft_p99},
                            {"TPOT ms", "p50", "%.2f", Figure::tpot_p50},
                            {"", "p99", "%.2f", Figure::tpot_p99},
                            {"ITL ms", "p99", "%.2f", Figure::itl_p99},
                            {"KV", "use", "%.3f", Figure::kv_use},
                            {"", "waste", "%.3f", Figure::kv_waste},
                            {"tokens", "/step", "%.2f", Figure::tokens_per_step}};
  constexpr std::size_t kNumber = 9;
  std::size_t name = 8;
  for (const PolicyReport& report : reports) name = std::max(name, report.name.size() + 1);
  const auto row = [&](const std::string& first, auto cell, const std::string& last) {
    out << first << std::string(name - first.size(), ' ');
    for (const Column& column : columns) out << right(cell(column), kNumber);
    out << "  " << last << '\n';
  };
  row(
      "policy", [](const Column& column) { return std::string(column.head); }, "throughput");
  row(
      "", [](const Column& column) { return std::string(column.unit); },
      "/ " + reports[0].name + (reports[0].speedup.low ? " (95 % interval)" : ""));
  for (const PolicyReport& report : reports) {
    std::string ratio = text("%.3f", report.speedup.mean);
    if (report.speedup.low && &report != reports.data())
      ratio += " [" + text("%.3f", *report.speedup.low) + ", " + text("%.3f", *report.speedup.high) + "]";
    row(
        report.name, [&](const Column& column) { return text(column.format, report.figure(column.figure).mean); },
        ratio);
  }
  std::int64_t steps = 0;
  double wall_s = 0.0;
  for (const PolicyReport& report : reports) {
    steps += report.sequence_steps;
    wall_s += report.wall_s;
  }
  out << '\n'
      << steps << " sequence-steps in " << text("%.2f", wall_s) << " s, "
      << text("%.1f", static_cast<double>(steps) / wall_s * 1e-6) << " million a second on a core\n";
}

void print_loads(std::ostream& out, const Scenario& scenario, std::span<const LoadPoint> loads) {
  if (loads.empty()) return;
  out << '\n'
      << (scenario.workload.arrivals.kind == ArrivalKind::closed ? "at a time" : "    req/s")
      << "  policy       tokens/s  goodput  TTFT p50  TPOT p50 ms\n";
  for (const LoadPoint& point : loads)
    for (const PolicyReport& report : point.policies)
      out << right(text("%g", point.load), 9) << "  " << report.name
          << std::string(report.name.size() < 12 ? 12 - report.name.size() : 1, ' ')
          << right(text("%.0f", report.figure(Figure::throughput).mean), 9)
          << right(text("%.2f", report.figure(Figure::goodput).mean), 9)
          << right(text("%.1f", report.figure(Figure::ttft_p50).mean), 10)
          << right(text("%.2f", report.figure(Figure::tpot_p50).mean), 13) << '\n';
}

}  // namespace draftproof
