// draftproof generate: text from a language model, plain or with speculation, one request or many.
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "cli/generate/options.hpp"
#include "cli/generate/report.hpp"
#include "cli/generate/run.hpp"
#include "cli/shared/acceptance_terms.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/model_path.hpp"
#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof {
namespace {

void check_outputs(const GenerateOptions& options) {
  std::vector<NamedFile> inputs;
  std::vector<NamedFile> outputs;
  if (!options.prompts.empty()) inputs.push_back({"--prompts", options.prompts});
  if (!options.cost.empty()) inputs.push_back({"--cost", options.cost});
  inputs.push_back({"--model", model_path(options.model)});
  if (!options.trace.empty()) outputs.push_back({"--trace", options.trace});
  if (!options.metrics.empty()) outputs.push_back({"--metrics", options.metrics});
  if (!options.record_drafts.empty()) outputs.push_back({"--record-drafts", options.record_drafts});
  require_no_overwriting(inputs, outputs);
  require_writable(outputs);
}

void run_command(const GenerateOptions& options, ProgramContext& context) {
  validate(options);
  check_outputs(options);
  if (!options.simd.empty()) select_row_kernels(options.simd);
  const GenerateRun run = run_generate(options);
  // A request that could not be served is a misuse; one prompt's error is the command's.
  for (const GeneratedRequest& request : run.requests) {
    if (request.error.empty()) continue;
    if (run.requests.size() == 1 && !options.json) throw Error(ErrorKind::input, "", request.error);
    context.exit_code = ExitCode::misuse;
  }
  if (options.json) {
    print_json(generate_json(options, run, context.arguments));
  } else {
    print_generate(std::cout, options, run, Palette(wants_colour(1)));
  }
}

}  // namespace

void add_generate(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<GenerateOptions>();
  add_generate_options(options, *arguments);
  add_acceptance_terms(options);
  options.examples({"--prompt 'The capital of France is' --max-tokens 32",
                    "--prompt 'Once upon a time' --drafter suffix -k 4 --temperature 0.8",
                    "--prompts prompts.jsonl --json"});
  options.on_run([arguments, &context] { run_command(*arguments, context); });
}

}  // namespace draftproof
