// draftproof demo: speculative decoding of real text, its acceptance, and a verdict on its distribution.
#include <iostream>
#include <memory>

#include "cli/demo/files.hpp"
#include "cli/demo/options.hpp"
#include "cli/demo/report.hpp"
#include "cli/demo/run.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/terminal.hpp"
#include "reference/error.hpp"
#include "reference/printable.hpp"
#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof {
namespace {

void warn(const std::string& text) {
  print_message("warning", text);
}

void run_command(const DemoOptions& options, ProgramContext& context) {
  validate(options);
  if (!options.simd.empty()) select_row_kernels(options.simd);
  RunFolder folder = open_demo_folder(options);
  const std::unique_ptr<DemoRun> run = run_demo(options);
  const DemoFiles files = write_demo_files(options, *run, folder);
  const Json document = demo_json(options, *run, files, context.arguments);
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
  if (!run->consistency.differences.empty() || run->consistency.distribution_changes) warn(run->consistency.sentence);
  if (run->distribution.is_failure()) warn(run->distribution.sentence());
  if (run->is_failure()) context.exit_code = ExitCode::finding;
}

}  // namespace

void add_command(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<DemoOptions>();
  add_demo_options(options, *arguments);
  options.on_run([arguments, &context] { run_command(*arguments, context); });
}

}  // namespace draftproof
