#include "cli/predict/report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "base/printable.hpp"
#include "sim/predict/prediction_json.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

std::string short_name(const DraftSize& form) {
  return form.is_tree() ? "tree " + std::to_string(form.nodes) + ", depth " + std::to_string(form.depth)
                        : "K = " + std::to_string(form.depth);
}

void print_row(std::ostream& out, const std::string& batch, const std::string& draft, double tokens, double ratio,
               double speedup, const std::string& band, double per_second, const char* mark) {
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "%6s  %-18s%11.2f%12.2f%9.2f  %-15s%10.0f %s\n", batch.c_str(), draft.c_str(),
                tokens, ratio, speedup, band.c_str(), per_second, mark);
  out << line.data();
}

void print_compared(std::ostream& out, const PredictionReport& report) {
  for (const ComparedPrediction& compared : report.compared) {
    out << printable_line(compared.drafter) << (compared.guidance ? " with" : " without")
        << " guidance, the best of each batch:";
    for (const BatchPrediction& batch : compared.prediction.batches) {
      const PredictionRow& best = batch.rows[batch.best];
      out << "  " << batch.batch << ": " << number("%.2f", best.speedup) << " (" << short_name(best.form) << ")";
    }
    out << "\n";
  }
  if (!report.points) return;
  for (const SpeedupPoint& point : report.points->points)
    out << "measured: " << number("%.2f", point.speedup) << " at batch " << point.batch << "  "
        << printable_line(point.drafter + " " + point.draft + ", " + point.source) << "\n";
  out << report.points->points.size() << " points of this model and GPU in " << printable_line(report.points->path)
      << ", " << report.points->others << " of others\n";
}

}  // namespace

void print_prediction(std::ostream& out, const PredictionReport& report) {
  const Prediction& prediction = report.prediction;
  out << printable_line(head_of(report)) << ", context " << report.options.context << "\n"
      << "acceptance: " << printable_line(report.acceptance) << "\n";
  for (const std::string& note : report.notes) out << "  " << printable_line(note) << "\n";
  for (std::size_t i = 0; i < report.measured_steps.size(); ++i) {
    const MeasuredStep& step = report.measured_steps[i];
    out << "measured: " << number("%.3g ms", step.ms) << " at batch " << step.batch.batch
        << (step.form.nodes > 0 ? ", " + short_name(step.form) : std::string(", plain"))
        << number(" (%.2f of the preset's", report.residuals_before[i])
        << number(", %.2f after calibration)", report.residuals_after[i]) << "\n";
  }
  out << "\n batch  draft             tokens/step  step ratio  speedup  80 % band        tokens/s\n";
  for (const BatchPrediction& batch : prediction.batches) {
    const std::string size = std::to_string(batch.batch);
    print_row(out, size, "plain", 1.0, 1.0, 1.0, "", batch.plain_tokens_per_second, batch.pays() ? "" : "<- best");
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      const PredictionRow& row = batch.rows[i];
      print_row(out, size, short_name(row.form), row.tokens_per_step, row.step_ratio, row.speedup,
                number("%.2f", row.low) + " to " + number("%.2f", row.high), row.tokens_per_second,
                i == batch.best && batch.pays() ? "<- best" : "");
    }
    out << "\n";
  }
  print_compared(out, report);
  if (prediction.batch_of_memory < prediction.batches.back().batch)
    out << "The memory holds about " << prediction.batch_of_memory << " requests of this context.\n";
  out << printable_line(prediction.advice) << "\n" << std::flush;
}

std::string prediction_figure(const PredictionReport& report, const Prediction& curve) {
  // Columns: batch, best with its band, then K = 1, 3, 5 and the best tree.
  constexpr std::array<std::int32_t, 3> kShown{1, 3, 5};
  std::ostringstream script;
  script << "$rows << EOD\n";
  bool trees = false;
  for (const BatchPrediction& batch : curve.batches) {
    const PredictionRow& best = batch.rows[batch.best];
    script << batch.batch << ' ' << best.speedup << ' ' << best.low << ' ' << best.high;
    for (const std::int32_t k : kShown) {
      const auto row = std::ranges::find_if(
          batch.rows, [&](const PredictionRow& r) { return !r.form.is_tree() && r.form.depth == k; });
      script << ' ' << (row == batch.rows.end() ? std::string("NaN") : std::to_string(row->speedup));
    }
    script << ' ' << (batch.best_tree ? std::to_string(batch.rows[*batch.best_tree].speedup) : std::string("NaN"))
           << '\n';
    trees |= batch.best_tree.has_value();
  }
  script << "EOD\n"
         << "set title " << gnuplot_quoted(printable_line(head_of(report))) << "\n"
         << "set logscale x 2\nset xlabel 'requests at a time'\nset ylabel 'speedup over plain decoding'\n"
         << "set yrange [0:*]\nset grid ytics lc rgb '#dddddd'\nset key top right\n"
         << "plot $rows using 1:3:4 with filledcurves lc rgb '#dbe7f5' title '80 % band of the best', "
         << "1 with lines lc rgb '#999999' dt 2 notitle, "
         << "$rows using 1:2 with lines lw 3 lc rgb '#1f5fa8' title 'best'";
  constexpr std::array<const char*, 3> kColours{"#d98c3f", "#4f9a5b", "#a6517c"};
  for (std::size_t i = 0; i < kShown.size(); ++i)
    if (report.options.drafts_max >= kShown[i])
      script << ", $rows using 1:" << 5 + i << " with lines lw 1.5 lc rgb '" << kColours[i]
             << "' title 'K = " << kShown[i] << "'";
  if (trees) script << ", $rows using 1:8 with lines lw 1.5 dt 3 lc rgb '#555555' title 'best tree'";
  script << "\n";
  return script.str();
}

}  // namespace draftproof
