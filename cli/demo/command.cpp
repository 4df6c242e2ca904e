// draftproof demo: speculative decoding of real text, its acceptance, and a verdict on its distribution.
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/demo/files.hpp"
#include "cli/demo/language_model.hpp"
#include "cli/demo/options.hpp"
#include "cli/demo/report.hpp"
#include "cli/demo/run.hpp"
#include "cli/shared/acceptance_terms.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/terminal.hpp"
#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof {
namespace {

void warn(const std::string& text) {
  print_message("warning", text);
}

// Is there a first part? Without the shipped model, where nobody named another, the n-gram models serve alone.
bool shows_language_model(const DemoOptions& options) {
  if (options.model == "none") return false;
  // Who brings a text of their own is interested in that.
  if (options.model_named) return true;
  if (!options.corpus.empty()) return false;
  if (has_shipped_model()) return true;
  print_message("note", "the language model smollm2 is not here; the demo goes on with n-gram models");
  return false;
}

void run_command(const DemoOptions& options, ProgramContext& context) {
  validate(options);
  if (!options.simd.empty()) select_row_kernels(options.simd);
  RunFolder folder = open_demo_folder(options);
  std::optional<LanguageModelRun> language_model;
  if (shows_language_model(options)) {
    language_model.emplace(run_language_model(options));
    if (!options.json) print_language_model(std::cout, *language_model, Palette(wants_colour(1)));
    if (language_model->is_finding()) context.exit_code = ExitCode::finding;
  }
  const std::unique_ptr<DemoRun> run = run_demo(options);
  const DemoFiles files = write_demo_files(options, *run, folder);
  const Json document = demo_json(options, *run, language_model ? language_model_json(*language_model) : Json(nullptr),
                                  files, context.arguments);
  finish_demo_files(document, folder);
  if (options.json) {
    print_json(document);
  } else {
    print_demo(std::cout, options, *run, Palette(wants_colour(1)));
    const std::string figure = files.figure.empty() ? "no figure" : files.figure;
    std::cout << "\nwritten: "
              << printable_line(files.result + ", " + files.acceptance_csv + ", " + figure + ", " + files.trace)
              << "\nreplay:  draftproof verify " << printable_line(shell_command({files.trace})) << '\n'
              << std::flush;
  }
  if (files.figure.empty()) warn("no figure: " + files.figure_error);
  if (language_model && language_model->is_finding())
    warn("at temperature 0 the language model's text with speculation differs from that without");
  if (!run->consistency.differences.empty() || run->consistency.distribution_changes) warn(run->consistency.sentence);
  if (run->distribution.is_failure()) warn(run->distribution.sentence());
  if (run->is_failure()) context.exit_code = ExitCode::finding;
}

}  // namespace

void add_demo(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<DemoOptions>();
  add_demo_options(options, *arguments);
  add_acceptance_terms(options);
  options.examples({"", "--draft ngram-lookup -k 4 --temperature 0.8", "--verifier block --seed 7 --out out/demo"});
  options.on_run([arguments, &context] { run_command(*arguments, context); });
}

}  // namespace draftproof
