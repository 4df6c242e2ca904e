// draftproof predict: when does speculation pay, with what K or tree, and from which load on not?
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <tuple>

#include "base/error.hpp"
#include "base/files/run_folder.hpp"
#include "base/printable.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/options.hpp"
#include "cli/shared/terminal.hpp"
#include "sim/predict/engine_config.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

constexpr double kResidualToAsk = 1.5;  // from which a step is out of the ordinary for its GPU

struct PredictArguments {
  PredictionRequest request;
  bool no_trees = false;
  std::string write_config;
  double loss_max = 0.25;
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
  options.integer("--tp", a.tp, {1, 1024},
                  "GPUs that share every layer; as many as the weights and the least load need, if not given");
  options.integer("--dp", a.dp, {1, 1024}, "Groups of them that share the requests");
  options.integer("--pp", a.pp, {1, 1024}, "Stages of them that share the layers");
  options.flag("--expert-parallel", a.expert_parallel, "Experts lie over the GPUs of all groups, each one once");
  options.text("--precision", a.precision, "Weights and KV, as fp8, awq-int4, \"bf16, KV fp8\" (default: the model's)");
  options.text("--draft-precision", a.draft_precision, "The drafter's (default: its own, of a head 16 bits)");
  options.integer("--draft-tp", a.draft_tp, {1, 1024},
                  "GPUs that share the drafter's layers (vLLM's draft_tensor_parallel_size; default: as --tp)");
  options.text("--draft-gpu", a.draft_gpu, "Devices of its own for the drafter (default: the target's)", "GPU");
  options.text("--ahead", a.ahead,
               "It drafts there while the target verifies: outcomes=24,hit=0.9 or outcomes=24,exponent=1,rate=0.8, "
               "either with backup=none (docs/simulator.md)",
               "PARAMETERS");
  options.file("--metrics", a.metrics,
               "Acceptance of the server: vLLM's or SGLang's log, Prometheus text, BEFORE..AFTER of two dumps, a "
               "CSV of rates, recorded "
               "acceptances, the JSON of demo or generate");
  options.text("--metrics-name", a.metrics_name,
               "Which of several in that file: a model_name, a drafter, or a curve (MODEL/MODE)", "NAME");
  options.integer("--metrics-drafts", a.metrics_drafts, {1, 64},
                  "Tokens of a draft there, if the file does not say it");
  options.choice("--metrics-rates", a.metrics_rates, {"as said", "conditional", "unconditional"},
                 "Whether the table's rates are conditional or unconditional");
  options.text("--acceptance", a.acceptance,
               "Instead: an acceptance model, as constant:0.8 (docs/predict.md), or typical: the median of published "
               "rates of such drafters",
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
                "drafts), or a server's log with its throughput");
  options.flag("--calibrate-anyway", a.calibrate_anyway,
               "Take also a step of more than 3 times the preset's time, or less than a third");
  options.number("--acceptance-factor", a.acceptance_factor, kFactorRange,
                 "What if so many times as many drafts of a step were accepted, up to all of them?");
  options.number("--draft-cost-factor", a.draft_cost_factor, kFactorRange,
                 "What if drafting took so many times as long?");
  options.names(
      "--compare-drafters", a.compared_drafters,
      "Besides, the best of these drafters, as a,b,...: each with the acceptance that is typical of it, on the "
      "devices said and ahead as said, but n-gram on the CPU");
  options.flag("--compare-guidance", a.compare_guidance,
               "Besides, the best with guidance, or with --guidance the best without");
  options.file("--measured", a.measured,
               "Speedups to set beside it: a CSV of measured rows, the JSON of validate, or an experiment's TOML of "
               "speedups by batch size");
  options.choice(
      "--write-config", arguments.write_config, {std::begin(kConfigEngines), std::end(kConfigEngines)},
      "Instead of tables: a script with the engine's own configuration, drafts by load, and the command that "
      "starts it");
  options.number("--loss-max", arguments.loss_max, kShareRange,
                 "There, speculation is off where a loss is likelier than this");
  options.used_only({"--loss-max"}, "without --write-config", [&arguments] { return !arguments.write_config.empty(); });
  options.text("--out", arguments.out, "Folder for the JSON document and the figure", "DIR");
  options.used_only({"--metrics-name", "--metrics-drafts", "--metrics-rates"}, "without --metrics or a log",
                    [&a] { return !a.metrics.empty() || !a.log.empty(); });
  options.used_only({"--tree-nodes"}, "with --no-trees", [&arguments] { return !arguments.no_trees; });
  add_artefacts(options, arguments.artefacts);
  options.json(arguments.json);
}

std::string short_name(const DraftSize& form) {
  return form.is_tree() ? "tree " + std::to_string(form.nodes) + ", depth " + std::to_string(form.depth)
                        : "K = " + std::to_string(form.depth);
}

// With a star where the acceptance is extrapolated.
std::string marked_name(const PredictionRow& row) {
  return short_name(row.form) + (row.extrapolated ? "*" : "");
}

void print_row(std::ostream& out, const std::string& batch, const std::string& draft, double tokens, double ratio,
               double speedup, const std::string& band, double per_second, const char* mark) {
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "%6s  %-18s%11.2f%12.2f%9.2f  %-15s%10.0f %s\n", batch.c_str(), draft.c_str(),
                tokens, ratio, speedup, band.c_str(), per_second, mark);
  out << line.data();
}

// The advice for a batch size, and how likely a loss is with the best draft, even where none is advised.
void print_decision(std::ostream& out, const BatchPrediction& batch) {
  const PredictionRow& best = batch.rows[batch.best];
  if (!batch.fits) {
    out << number("%6.0f", static_cast<double>(batch.batch)) << "  does not fit\n";
    return;
  }
  const std::string draft = batch.pays() ? marked_name(best) : "plain (" + marked_name(best) + ")";
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

void print_steps(std::ostream& out, const PredictionReport& report) {
  for (const CheckedStep& checked : report.steps) {
    out << "Your step takes " << checked.text() << ".";
    if (!checked.refusal.empty()) {
      out << " It is not used: " << printable_line(checked.refusal) << ". --calibrate-anyway takes it.\n";
      continue;
    }
    if (checked.over_preset > kResidualToAsk) out << " Prefill, or another GPU?";
    if (checked.prefill_share > 0.0)
      out << number(" Prefills, %.0f %% of the measured time", 100.0 * checked.prefill_share)
          << " by the model's own prefill cost, are taken out.";
    out << " The answer below assumes your step.\n";
  }
}

// The log's own rows: what it runs, and what is best.
const char* mark_of(const PredictionReport& report, const BatchPrediction& batch, std::size_t row) {
  if (!batch.fits) return "";
  if (row == batch.best && batch.pays()) return "<- best";
  const DraftSize& form = batch.rows[row].form;
  return !form.is_tree() && form.depth == report.options.running_drafts ? "<- you run" : "";
}

void print_prediction(std::ostream& out, const PredictionReport& report) {
  const Prediction& prediction = report.prediction;
  const LoopLengths& lengths = report.options.lengths;
  if (report.seen) out << printable_line(report.seen->text()) << "\n";
  out << printable_line(head_of(report)) << ", context " << report.options.context;
  if (lengths.prompt > 0)
    out << ", prefills of " << lengths.prompt << " tokens for " << lengths.output << " written included"
        << (report.prefills_of_log ? ", as the log has them" : "");
  out << "\n"
      << "acceptance: " << printable_line(report.acceptance) << "\n";
  for (const std::string& note : report.notes) out << "  " << printable_line(note) << "\n";
  print_steps(out, report);
  out << "\n batch  best               speedup  80 % band      P(loss)   tokens/s\n";
  for (const BatchPrediction& batch : prediction.batches) print_decision(out, batch);
  out << printable_line(prediction.advice) << "\n";
  out << "\n batch  draft             tokens/step  step ratio  speedup  80 % band        tokens/s\n";
  bool extrapolated = false;
  for (const BatchPrediction& batch : prediction.batches) {
    const std::string size = std::to_string(batch.batch);
    print_row(out, size, "plain", 1.0, 1.0, 1.0, "", batch.plain_tokens_per_second,
              batch.pays() || !batch.fits ? "" : "<- best");
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      const PredictionRow& row = batch.rows[i];
      extrapolated = extrapolated || row.extrapolated;
      print_row(out, size, marked_name(row), row.tokens_per_step, row.step_ratio, row.speedup,
                number("%.2f", row.low) + " to " + number("%.2f", row.high), row.tokens_per_second,
                mark_of(report, batch, i));
    }
    out << "\n";
  }
  if (extrapolated) out << "* by extrapolation\n";
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
Prediction curve_of(const PredictionInputs& inputs, const Prediction& prediction) {
  std::vector<std::int64_t> batches;
  const std::int64_t most = std::max<std::int64_t>(prediction.looked_up_to, 2);
  for (std::int64_t batch = 1; batch <= most; batch += std::max<std::int64_t>(1, batch / 4)) batches.push_back(batch);
  return prediction_at(inputs, batches);
}

std::string config_script(const PredictArguments& arguments, const PredictionInputs& inputs,
                          const PredictionReport& report) {
  std::string script;
  if (report.seen) script += "# " + printable_line(report.seen->text()) + "\n";
  script += "# " + printable_line(head_of(report)) + ", context " + std::to_string(report.options.context) +
            "; acceptance: " + printable_line(report.acceptance) + "\n";
  return script + engine_config(arguments.write_config, inputs, arguments.loss_max);
}

void write_files(const PredictArguments& arguments, const PredictionInputs& inputs, const PredictionReport& report,
                 Json& document) {
  RunFolder folder(arguments.out, {kResultName, kFigureName});
  document["files"] = {{"result", folder.final_path(kResultName)}, {"figure", nullptr}};
  std::string no_figure;
  try {
    write_figure(folder.staged(kFigureName), prediction_figure(report, curve_of(inputs, report.prediction)));
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
    for (const auto& [option, value, expected] :
         {std::tuple("--model", &arguments.request.model, "the model's name, or a server's log that says it"),
          std::tuple("--gpu", &arguments.request.gpu, "the GPU's name"),
          std::tuple("--drafter", &arguments.request.drafter, kDrafterExpected)})
      if (value->empty()) throw usage_error(option, std::string("is missing; expected ") + expected);
  if (arguments.no_trees) arguments.request.trees.clear();
  require_artefacts(arguments.artefacts);
  const PredictionInputs inputs = inputs_of(arguments.request);
  const PredictionReport report = answer(inputs);
  Json document = json_document(context.arguments);
  document.update(prediction_json(report));
  document["files"] = {{"result", nullptr}, {"figure", nullptr}};
  if (!arguments.out.empty()) write_files(arguments, inputs, report, document);
  write_table_of(arguments.artefacts, "Predicted speedups of " + head_of(report), context, [&] {
    return table_of(document["rows"], {"batch", "k", "tree/nodes", "tree/depth", "tokens_per_step", "step_ratio",
                                       "speedup", "low", "high", "loss_probability", "tokens_per_second"});
  });
  write_figure_of(arguments.artefacts, context,
                  [&] { return prediction_figure(report, curve_of(inputs, report.prediction)); });
  if (!arguments.write_config.empty()) {
    const std::string script = config_script(arguments, inputs, report);
    document["config"] = script;
    if (!arguments.json) {
      std::cout << script;
      return;
    }
  }
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
       "--model Llama-3.1-8B --gpu A100 --drafter n-gram --acceptance constant:0.6 --batch 1,8,32",
       "server.log --gpu H100 --write-config vllm"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
