// The subcommands of the program that is built for a bare GPU machine (CMakeLists.txt).
#include <memory>

#include "cli/bench_device.hpp"
#include "cli/commands.hpp"

namespace draftproof {
namespace {

void add_kernel_bench_command(CLI::App& app, ProgramContext& context) {
  CLI::App* command = app.add_subcommand("bench", "Measure the kernels against the GPU's memory bandwidth");
  const auto options = std::make_shared<DeviceBenchOptions>();
  add_json_flag(*command, options->json);
  command->add_option("--device", "cuda, which is all that there is here")->check(CLI::IsMember({"cuda"}));
  command->add_option("--repeat", options->repeat, "Repeats of every measurement")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--filter", options->filter, "Only the measurements that have this in their name");
  command->add_option("--write-inputs", options->write_inputs,
                      "Also write the tensors of the peer's case to this folder");
  command->add_flag("--quick", options->quick, "Tiny sizes: shows that it runs, measures nothing of meaning");
  command->add_option("--out", options->out, "Also write the JSON document to this file");
  command->callback([options, &context] { run_device_bench(*options, context.arguments); });
}

}  // namespace

void add_commands(CLI::App& app, ProgramContext& context) {
  add_kernel_bench_command(app, context);
  add_regress_command(app, context);
}

}  // namespace draftproof
