#include "cli/demo/files.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/painted_text.hpp"
#include "engine/metrics/acceptance_json.hpp"
#include "reference/trace/trace_writer.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

constexpr const char* kResult = "result.json";
constexpr const char* kAcceptanceCsv = "acceptance.csv";
constexpr const char* kTrace = "trace.safetensors";
constexpr const char* kFigure = "acceptance.svg";
constexpr std::array kNames = {kResult, kAcceptanceCsv, kTrace, kFigure};

std::string csv_cell(const std::optional<double>& value) {
  return value ? Json(*value).dump() : "";
}

std::optional<double> rate_of(const std::optional<RateEstimate>& estimate) {
  if (!estimate) return std::nullopt;
  return estimate->rate;
}
std::optional<double> error_of(const std::optional<RateEstimate>& estimate) {
  return estimate ? estimate->standard_error : std::nullopt;
}

void write_acceptance_csv(const std::string& path, const AcceptanceMetrics& metrics) {
  AtomicFile file(path);
  file.stream() << "position,reached,accepted,conditional,conditional_standard_error,steps,accepted_all_steps,"
                   "unconditional,unconditional_standard_error\n";
  for (std::size_t j = 0; j < metrics.conditional.size(); ++j) {
    file.stream() << j + 1 << ',' << metrics.counts.reached[j] << ',' << metrics.counts.accepted[j] << ','
                  << csv_cell(rate_of(metrics.conditional[j])) << ',' << csv_cell(error_of(metrics.conditional[j]))
                  << ',' << metrics.counts.steps << ',' << metrics.counts.accepted[j] << ','
                  << csv_cell(rate_of(metrics.unconditional[j])) << ',' << csv_cell(error_of(metrics.unconditional[j]))
                  << '\n';
  }
  file.commit();
}

// Columns: position, conditional rate, its error, unconditional rate, its error, product of the conditional rates.
std::string figure_script(const DemoOptions& options, const AcceptanceMetrics& metrics) {
  std::ostringstream script;
  script << "$rates << EOD\n";
  double product = 1.0;
  for (std::size_t j = 0; j < metrics.conditional.size(); ++j) {
    const auto& conditional = metrics.conditional[j];
    const auto& unconditional = metrics.unconditional[j];
    product *= rate_of(conditional).value_or(0.0);
    script << j + 1 << ' ';
    if (conditional) {
      script << conditional->rate << ' ' << conditional->standard_error.value_or(0.0);
    } else {
      script << "NaN NaN";
    }
    script << ' ' << rate_of(unconditional).value_or(0.0) << ' ' << error_of(unconditional).value_or(0.0) << ' '
           << product << '\n';
  }
  script << "EOD\n";
  std::ostringstream title;
  title.precision(3);
  title << "Acceptance by draft position, K = " << options.num_speculative_tokens << ": " << metrics.tokens_per_step
        << " tokens per target step";
  script
      << "set title " << gnuplot_quoted(title.str()) << "\n"
      << "set xlabel 'draft position'\nset ylabel 'acceptance rate'\n"
      << "set xrange [0.4:" << metrics.conditional.size() << " + 0.6]\nset yrange [0:1.05]\nset xtics 1\n"
      << "set grid ytics lc rgb '#dddddd'\nset key top right\nset style fill solid 0.8\nset boxwidth 0.34\n"
      << "plot $rates using ($1-0.18):2 with boxes lc rgb '#2a9d5c' title 'given those before it',"
         " '' using ($1+0.18):4 with boxes lc rgb '#3b6fb6' title 'of all steps',"
         " '' using ($1-0.18):2:3 with yerrorbars lc rgb '#222222' pt 0 title 'standard error',"
         " '' using ($1+0.18):4:5 with yerrorbars lc rgb '#222222' pt 0 notitle,"
         " '' using 1:6 with linespoints lc rgb '#c8553d' lw 2 pt 7 ps 0.6 title 'product of the conditional rates'\n";
  return script.str();
}

Json test_json(std::int64_t n, const ChiSquaredTest& test, double detectable_tv) {
  return {{"n", n},
          {"df", test.df},
          {"statistic", test.statistic},
          {"p_value", six_digits(test.p_value)},
          {"cells", test.cells},
          {"detectable_tv", six_digits(detectable_tv)}};
}

Json distribution_json(const DistributionCheck& distribution) {
  Json json = test_json(distribution.samples, distribution.two_sample, distribution.detectable_tv);
  json.update(
      {{"exact_distribution", test_json(distribution.samples, distribution.exact, distribution.detectable_tv_exact)},
       {"impossible_strings", distribution.impossible_count},
       {"tokens", DistributionString{}.size()},
       {"alpha", kDistributionAlpha},
       {"power", kDistributionPower},
       {"verdict", distribution.is_finding() ? "biased" : "consistent"},
       {"sentence", distribution.sentence()}});
  return json;
}

Json counts_json(const AcceptanceCounts& counts) {
  return {{"steps", counts.steps},
          {"drafts", counts.drafts},
          {"draft_tokens", counts.draft_tokens},
          {"accepted", counts.accepted_tokens},
          {"tokens", counts.received_tokens}};
}

Json shown_json(const Generation& generation) {
  Json json = counts_json(generation.acceptance);
  json["discarded"] = generation.acceptance.discarded_tokens;
  json.update(origin_counts_json(generation));
  return json;
}

Json options_json(const DemoOptions& options) {
  const RowParameters drafter = draft_parameters(options);
  const bool has_model = options.draft_kind() == DemoDraft::ngram;
  const auto of_model = [&](const auto& value) { return has_model ? Json(value) : Json(nullptr); };
  return {{"corpus", options.corpus.empty() ? Json(kDefaultCorpusFolder) : Json(options.corpus)},
          {"order", options.order},
          {"draft", options.draft},
          {"verifier", options.verifier},
          {"tree", or_null(options.tree)},
          {"draft_order", of_model(options.draft_order_or_default())},
          {"num_speculative_tokens", options.num_speculative_tokens},
          {"tokens", options.tokens},
          {"temperature", options.temperature},
          {"top_p", options.top_p},
          {"top_k", options.top_k},
          {"min_p", options.min_p},
          {"draft_temperature", of_model(options.draft_temperature.value_or(options.temperature))},
          {"draft_top_p", of_model(options.draft_top_p.value_or(options.top_p))},
          {"draft_top_k", of_model(drafter.filters.top_k)},
          {"guidance_scale", options.guidance_scale},
          {"negative_prompt", or_null(options.negative_prompt)},
          {"prompt", options.prompt},
          {"sampler", options.sampler},
          {"samples", options.samples},
          {"continuations", options.continuations},
          {"threads", options.threads}};
}

Json timing_json(const DemoRun& run) {
  const auto per_second = [](std::size_t tokens, double ms) {
    return ms > 0.0 ? Json(1e3 * static_cast<double>(tokens) / ms) : Json(nullptr);
  };
  return {{"training_ms", run.training_ms},
          {"speculative_ms", run.speculative_ms},
          {"speculative_tokens_per_second", per_second(run.speculative.tokens.size(), run.speculative_ms)},
          {"plain_ms", run.plain_ms},
          {"plain_tokens_per_second", per_second(run.plain.tokens.size(), run.plain_ms)},
          {"acceptance_ms", run.acceptance_ms},
          {"chi_squared_ms", run.distribution_ms}};
}

}  // namespace

double six_digits(double value) {
  std::ostringstream text;
  text.precision(6);
  text << value;
  return std::strtod(text.str().c_str(), nullptr);  // std::stod throws where the number is subnormal
}

Json origin_counts_json(const Generation& generation) {
  Json json;
  for (const auto& [name, origin] : kDraftedOrigins) json[std::string(name) + "_shown"] = generation.count(origin);
  return json;
}

RunFolder open_demo_folder(const DemoOptions& options) {
  std::vector<NamedFile> corpus;
  std::vector<NamedFile> outputs;
  for (const std::string& path : options.corpus) corpus.push_back({"--corpus", path});
  for (const char* const name : kNames)
    outputs.push_back({"--out", (std::filesystem::path(options.out) / name).string()});
  require_no_overwriting(corpus, outputs);
  return RunFolder(options.out, {kNames.begin(), kNames.end()});
}

DemoFiles write_demo_files(const DemoOptions& options, const DemoRun& run, const RunFolder& folder) {
  DemoFiles files;
  files.result = folder.final_path(kResult);
  files.acceptance_csv = folder.final_path(kAcceptanceCsv);
  files.trace = folder.final_path(kTrace);
  files.figure = folder.final_path(kFigure);
  folder.write([&] {
    write_acceptance_csv(folder.staged(kAcceptanceCsv), run.acceptance);
    write_trace(folder.staged(kTrace), run.requests, run.decoding.verify);
  });
  if (run.acceptance.conditional.empty()) {
    files.figure.clear();
    files.figure_error = "there is no draft position to draw";
    return files;
  }
  try {
    write_figure(folder.staged(kFigure), figure_script(options, run.acceptance), {900, 520});
  } catch (const Error& error) {
    files.figure.clear();
    files.figure_error = folder.with_final_paths(error.what());
  }
  return files;
}

void finish_demo_files(const Json& document, RunFolder& folder) {
  folder.write([&] { write_json_file(folder.staged(kResult), document); });
  folder.commit();
}

Json demo_json(const DemoOptions& options, const DemoRun& run, const Json& language_model, const DemoFiles& files,
               const std::vector<std::string>& arguments) {
  const AcceptanceMetrics& metrics = run.acceptance;
  const VerifierChoice& verifier = run.decoding.verify.verifier;
  Json document = json_document(arguments);
  document.update({{"seed", options.seed},
                   {"verifier", text_of(verifier)},
                   {"lossless", verifier.info().lossless},
                   {"tree", or_null(tree_of(options))},
                   {"language_model", language_model},
                   {"text", bytes_of(run.speculative.tokens)},
                   {"plain_text", bytes_of(run.plain.tokens)},
                   {"acceptance_length", metrics.acceptance_length},
                   {"acceptance_by_position", acceptance_by_position_json(metrics)},
                   {"tokens_per_step", metrics.tokens_per_step},
                   {"tokens_per_step_standard_error", or_null(metrics.tokens_per_step_standard_error)},
                   {"tokens_per_step_formula", or_null(metrics.tokens_per_step_formula)}});
  document.update(counts_json(metrics.counts));
  document.update({{"shown", shown_json(run.speculative)},
                   {"chi_squared", distribution_json(run.distribution)},
                   {"consistency", consistency_json(run.consistency)},
                   {"options", options_json(options)},
                   {"timing", timing_json(run)},
                   {"files",
                    {{"result", files.result},
                     {"acceptance_csv", files.acceptance_csv},
                     {"figure", text_or_null(files.figure)},
                     {"trace", files.trace}}}});
  return document;
}

}  // namespace draftproof
