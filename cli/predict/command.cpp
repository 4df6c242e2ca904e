// draftproof predict: when does speculation pay, with what K or tree, and from which load on not?
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "base/files/run_folder.hpp"
#include "base/printable.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/options.hpp"
#include "cli/shared/terminal.hpp"
#include "sim/predict/prediction_request.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

struct PredictArguments {
  PredictionRequest request;
  bool no_trees = false;
  std::string out;
  Artefacts artefacts;
  bool json = false;
};

void add_predict_options(Options& options, PredictArguments& arguments) {
  PredictionRequest& a = arguments.request;
  constexpr NumberRange kFactorRange{0.01, 100.0};
  options.file(
      "log", a.log,
      "A server's log (vLLM, SGLang), gzip or - for standard input: model, precision, GPUs that share a layer, "
      "drafter, acceptance, load and time of a step are taken from it where no option says them");
  options.text("--model", a.model, "Target: a preset's name, a TOML preset, a config.json or its folder", "MODEL");
  options.text("--gpu", a.gpu, "GPU: a preset's name or a TOML preset", "GPU");
  options.text("--drafter", a.drafter,
               "EAGLE-3, Medusa, MTP, n-gram, ..., a draft model, or the config.json of a head or its folder",
               "DRAFTER");
  options.text("--engine", a.engine, "Engine: a preset's name or a profile written by calibrate", "ENGINE");
  options.integer("--tp", a.tp, {1, 1024}, "GPUs that share every layer; as many as the weights need, if not given");
  options.integer("--dp", a.dp, {1, 1024}, "Groups of them that share the requests");
  options.integer("--pp", a.pp, {1, 1024}, "Stages of them that share the layers");
  options.flag("--expert-parallel", a.expert_parallel, "Experts lie over the GPUs of all groups, each one once");
  options.text("--precision", a.precision, "Weights and KV, as fp8, awq-int4, \"bf16, KV fp8\"; the model's own");
  options.text("--draft-precision", a.draft_precision, "The drafter's; its own, of a head 16 bits");
  options.file(
      "--metrics", a.metrics,
      "What the server says of acceptance: vLLM's or SGLang's log, Prometheus text, BEFORE..AFTER of two dumps, a "
      "CSV of rates, recorded "
      "acceptances, the JSON of demo or generate");
  options.text("--metrics-name", a.metrics_name,
               "Of several in that file: a model_name, a drafter, or a curve (MODEL/MODE)", "NAME");
  options.integer("--metrics-drafts", a.metrics_drafts, {1, 64},
                  "Tokens of a draft there, if the file does not say it");
  options.choice("--metrics-rates", a.metrics_rates, {"as said", "conditional", "unconditional"},
                 "What the rates of a table there are, if it does not say it");
  options.text("--acceptance", a.acceptance, "Instead: an acceptance model, as constant:0.8 (docs/predict.md)",
               "MODEL");
  options.integers("--batch", a.batches, {1, 1 << 20}, "Requests at a time");
  options.integer("--context", a.context, {1, 1 << 24}, "Tokens in the cache of a request, on average");
  options.integer("--prompt", a.prompt, {1, 1 << 24},
                  "With --output: tokens of a request in a closed loop, whose throughput contains the prefills");
  options.integer("--output", a.output, {1, 1 << 24}, "Tokens that it writes; context is prompt and half of them");
  options.used_only({"--context"}, "with --prompt", [&a] { return a.prompt == 0; });
  options.integer("--drafts-max", a.drafts_max, {1, 64}, "Longest chain, and deepest tree");
  options.integers("--tree-nodes", a.trees, {2, 256}, "Sizes of trees");
  options.flag("--no-trees", arguments.no_trees, "Chains alone, for engines that verify no trees");
  options.flag("--guidance", a.guidance, "Classifier-free guidance: two streams for each request");
  options.names("--calibrate-with", a.calibrate_with,
                "Measured steps of this machine, as a,b,...: MS, MS@BATCH or MS@BATCH:K, times in ms (K: with so many "
                "drafts), or a log of vLLM's with its throughput");
  options.number("--acceptance-factor", a.acceptance_factor, kFactorRange,
                 "What if so many times as many drafts of a step were accepted, up to all of them?");
  options.number("--draft-cost-factor", a.draft_cost_factor, kFactorRange,
                 "What if drafting took so many times as long?");
  options.names("--compare-drafters", a.compared_drafters,
                "Besides, the best of these drafters, as a,b,...: each with the acceptance that is typical of it");
  options.flag("--compare-guidance", a.compare_guidance,
               "Besides, the best with guidance, or with --guidance the best without");
  options.file("--measured", a.measured,
               "Speedups to set beside it: a CSV of measured rows, the JSON of validate, or an experiment's TOML of "
               "speedups by batch size");
  options.text("--out", arguments.out, "Folder for the JSON document and the figure", "DIR");
  options.used_only({"--metrics-name", "--metrics-drafts", "--metrics-rates"}, "without --metrics",
                    [&a] { return !a.metrics.empty(); });
  options.used_only({"--tree-nodes"}, "with --no-trees", [&arguments] { return !arguments.no_trees; });
  add_artefacts(options, arguments.artefacts);
  options.json(arguments.json);
}

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

// What to do at a batch size; how likely a loss is with the best draft, also where that is left off.
void print_decision(std::ostream& out, const BatchPrediction& batch) {
  const PredictionRow& best = batch.rows[batch.best];
  const std::string draft = batch.pays() ? short_name(best.form) : "plain (" + short_name(best.form) + ")";
  const std::string band = number("%.2f", best.low) + " to " + number("%.2f", best.high);
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "%6ld  %-18s%8.2f  %-15s%7.2f%11.0f%s\n", static_cast<long>(batch.batch),
                draft.c_str(), best.speedup, band.c_str(), best.band().loss_probability(),
                batch.pays() ? best.tokens_per_second : batch.plain_tokens_per_second,
                batch.pays() && best.band().may_lose() ? "  measure first" : "");
  out << line.data();
  if (batch.prefill_share > 0.0)
    out << "        prefills take " << number("%.0f %%", 100.0 * batch.prefill_share) << " of plain decoding's time\n";
  for (const std::string& note : batch.notes) out << "        " << printable_line(note) << "\n";
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

void print_prediction(std::ostream& out, const PredictionReport& report) {
  const Prediction& prediction = report.prediction;
  const LoopLengths& lengths = report.options.lengths;
  out << printable_line(head_of(report)) << ", context " << report.options.context;
  if (lengths.prompt > 0)
    out << ", prefills of " << lengths.prompt << " tokens for " << lengths.output << " written included";
  out << "\n"
      << "acceptance: " << printable_line(report.acceptance) << "\n";
  for (const std::string& note : report.notes) out << "  " << printable_line(note) << "\n";
  for (std::size_t i = 0; i < report.measured_steps.size(); ++i) {
    const MeasuredStep& step = report.measured_steps[i];
    out << "measured: " << number("%.3g ms", step.ms) << " at batch " << step.batch.batch
        << (step.form.nodes > 0 ? ", " + short_name(step.form) : std::string(", plain"))
        << number(" (%.2f of the preset's", report.residuals_before[i])
        << number(", %.2f after calibration)", report.residuals_after[i]) << "\n";
  }
  out << "\n batch  best               speedup  80 % band      P(loss)   tokens/s\n";
  for (const BatchPrediction& batch : prediction.batches) print_decision(out, batch);
  out << printable_line(prediction.advice) << "\n";
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
  out << std::flush;
}

// A gnuplot script: speedup by batch size. `curve` is a prediction over many batch sizes.
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
         << "set yrange [0:*]\nset grid ytics lc rgb '#dddddd'\nset key below\n"
         << "plot $rows using 1:3:4 with filledcurves lc rgb '#dbe7f5' title '80 % band', "
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

constexpr const char* kResultName = "predict.json";
constexpr const char* kFigureName = "predict.svg";

// Over all batch sizes that were looked at.
Prediction curve_of(const PredictionRequest& asked, const Prediction& prediction) {
  PredictionRequest request = asked;
  request.batches.resize(1);  // at which a measured step was, if it does not say
  request.compared_drafters.clear();
  request.compare_guidance = false;
  request.measured.clear();
  for (int batch = 1; batch <= std::max<std::int64_t>(prediction.looked_up_to, 2); batch += std::max(1, batch / 4))
    request.batches.push_back(batch);
  Prediction curve = answer(request).prediction;
  curve.batches.erase(curve.batches.begin());
  return curve;
}

void write_files(const PredictArguments& arguments, const PredictionReport& report, Json& document) {
  RunFolder folder(arguments.out, {kResultName, kFigureName});
  document["files"] = {{"result", folder.final_path(kResultName)}, {"figure", nullptr}};
  std::string no_figure;
  try {
    write_figure(folder.staged(kFigureName), prediction_figure(report, curve_of(arguments.request, report.prediction)));
    document["files"]["figure"] = folder.final_path(kFigureName);
  } catch (const Error& error) {
    no_figure = folder.with_final_paths(error.what());
  }
  folder.write([&] { write_json_file(folder.staged(kResultName), document); });
  folder.commit();
  if (!no_figure.empty()) print_message("warning", "no figure: " + no_figure);
}

void run(const PredictArguments& given, const ProgramContext& context) {
  PredictArguments arguments = given;
  if (arguments.request.log.empty())
    for (const auto& [option, value] :
         {std::pair("--model", &arguments.request.model), std::pair("--gpu", &arguments.request.gpu),
          std::pair("--drafter", &arguments.request.drafter)})
      if (value->empty()) throw usage_error(option, "is missing; expected it, or a server's log that says it");
  if (arguments.no_trees) arguments.request.trees.clear();
  require_artefacts(arguments.artefacts);
  const PredictionReport report = answer(arguments.request);
  Json document = json_document(context.arguments);
  document.update(prediction_json(report));
  document["files"] = {{"result", nullptr}, {"figure", nullptr}};
  if (!arguments.out.empty()) write_files(arguments, report, document);
  write_table_of(arguments.artefacts, "Predicted speedups of " + head_of(report), context, [&] {
    return table_of(document["rows"], {"batch", "k", "tree/nodes", "tree/depth", "tokens_per_step", "step_ratio",
                                       "speedup", "low", "high", "loss_probability", "tokens_per_second"});
  });
  write_figure_of(arguments.artefacts, context,
                  [&] { return prediction_figure(report, curve_of(arguments.request, report.prediction)); });
  if (arguments.json) return print_json(document);
  print_prediction(std::cout, report);
  if (!arguments.out.empty()) std::cout << "written to " << printable_line(arguments.out) << '\n';
}

}  // namespace

void add_predict(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<PredictArguments>();
  add_predict_options(options, *arguments);
  options.examples(
      {"--model Llama-3.1-8B --gpu H100 --drafter EAGLE-3", "server.log.gz --gpu H100",
       "--model Llama-3.1-8B --gpu H100 --drafter EAGLE-3 --table t.tex --figure f.tex --paper-width single",
       "--model Llama-3.1-8B --gpu A100 --drafter n-gram --acceptance constant:0.6 --batch 1,8,32"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
