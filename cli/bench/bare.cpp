// draftproof bench of the program that is built for a bare GPU machine (CMakeLists.txt): the kernels alone.
#include <memory>

#include "cli/bench/device.hpp"
#include "cli/shared/command.hpp"

namespace draftproof {

void add_bench(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<DeviceBenchOptions>();
  const auto device = std::make_shared<std::string>("cuda");
  options.json(arguments->json);
  options.choice("--device", *device, {"cuda"}, "cuda, which is all that there is here");
  options.integer("--repeat", arguments->repeat, {1, 100'000}, "Repeats of every measurement");
  options.text("--filter", arguments->filter, "Only the measurements that have this in their name");
  options.text("--write-inputs", arguments->write_inputs, "Also write the tensors of the peer's case to this folder",
               "FOLDER");
  options.flag("--quick", arguments->quick, "Tiny sizes: shows that it runs, measures nothing of meaning");
  options.file("--out", arguments->out, "Also write the JSON document to this file");
  options.on_run([arguments, device, &context] { run_device_bench(*arguments, context.arguments); });
}

}  // namespace draftproof
