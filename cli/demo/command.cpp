// draftproof demo: speculative decoding of real text, its acceptance, and a verdict on its distribution.
#include <iostream>
#include <memory>

#include "cli/demo/files.hpp"
#include "cli/demo/options.hpp"
#include "cli/demo/report.hpp"
#include "cli/demo/run.hpp"
#include "cli/shared/command.hpp"
#include "reference/error.hpp"
#include "reference/numerics/row_kernels.hpp"

namespace draftproof {
namespace {

void warn(const std::string& text) {
  std::cerr << "draftproof: warning: " << text << '\n';
}

void run_command(const DemoOptions& options, ProgramContext& context) {
  validate(options);
  if (!options.simd.empty()) select_row_kernels(options.simd);
  create_output_folder(options.out);
  const std::unique_ptr<DemoRun> run = run_demo(options);
  const DemoFiles files = write_demo_files(options, *run);
  const Json document = demo_json(options, *run, files, context.arguments);
  write_json_file(files.result, document);
  if (options.json) {
    print_json(document);
  } else {
    print_demo(std::cout, options, *run, Palette(wants_colour(1)));
    std::cout << "\nwritten: " << files.result << ", " << files.acceptance_csv << ", "
              << (files.figure.empty() ? "no figure" : files.figure) << ", " << files.trace
              << "\nreplay:  draftproof verify " << shell_command({files.trace}) << '\n'
              << std::flush;
  }
  if (files.figure.empty()) warn("no figure: " + files.figure_error);
  if (!run->consistency.differences.empty() || run->consistency.distribution_changes) warn(run->consistency.sentence);
  if (run->distribution.is_finding()) warn(run->distribution.sentence());
  if (run->distribution.is_finding() || run->consistency.distribution_changes) context.exit_code = ExitCode::finding;
}

}  // namespace

void add_command(CLI::App& command, ProgramContext& context) {
  const auto options = std::make_shared<DemoOptions>();
  add_demo_options(command, *options);
  command.callback([options, &context] { run_command(*options, context); });
}

}  // namespace draftproof
