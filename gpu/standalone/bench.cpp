// draftproof bench of the program that is built for a bare GPU machine (CMakeLists.txt): the kernels alone.
#include <memory>

#include "cli/bench/device.hpp"
#include "cli/shared/command.hpp"

namespace draftproof {

void add_command(CLI::App& command, ProgramContext& context) {
  const auto options = std::make_shared<DeviceBenchOptions>();
  add_json_flag(command, options->json);
  command.add_option("--device", "cuda, which is all that there is here")->check(CLI::IsMember({"cuda"}));
  command.add_option("--repeat", options->repeat, "Repeats of every measurement")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command.add_option("--filter", options->filter, "Only the measurements that have this in their name");
  command.add_option("--write-inputs", options->write_inputs,
                     "Also write the tensors of the peer's case to this folder");
  command.add_flag("--quick", options->quick, "Tiny sizes: shows that it runs, measures nothing of meaning");
  command.add_option("--out", options->out, "Also write the JSON document to this file");
  command.callback([options, &context] { run_device_bench(*options, context.arguments); });
}

}  // namespace draftproof
