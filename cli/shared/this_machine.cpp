#include "cli/shared/this_machine.hpp"

#include <cstdio>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/machine_description.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/progress.hpp"
#include "engine/transformer/transformer_kernels.hpp"
#include "sim/machine/time_machine.hpp"

namespace draftproof {

TimedModel time_this_machine(const std::string& model, const TextModelOptions& options) {
  TextModel text = open_text_model(model, model_path(model), options, "--model");
  if (text.transformer == nullptr)
    throw usage_error("--model", "is " + model + ", which counts and computes no passes; expected a transformer");
  const MachineTiming timing;
  Progress progress("timing this machine", static_cast<std::uint64_t>(timing.repeats), "rounds");
  MachineProfile profile = time_machine(*text.model, timing, [&] { progress.advance(); });
  profile.cpu = processor_name();
  profile.simd = transformer_kernels().target;
  profile.model = text.name;
  profile.arithmetic = text.arithmetic;
  profile.threads = options.threads;
  check(profile, "timing this machine");
  return {std::move(text), std::move(profile)};
}

std::shared_ptr<const StepCost> read_step_cost(const std::string& path, double draft_share) {
  if (path.empty()) return std::make_shared<DefaultStepCost>();
  return std::make_shared<MachineStepCost>(read_machine_profile(path), draft_share);
}

std::string processor_name() {
  const nlohmann::ordered_json cpu = describe_machine("").at("cpu");
  return cpu.is_string() ? cpu.get<std::string>() : "unknown";
}

Json machine_profile_json(const MachineProfile& profile) {
  Json passes = Json::array();
  for (const TimedPass& pass : profile.passes)
    passes.push_back({{"rows", pass.rows}, {"context_len", pass.context_len}, {"ms", pass.ms}});
  return {{"cpu", profile.cpu},         {"simd", profile.simd},
          {"model", profile.model},     {"arithmetic", profile.arithmetic},
          {"threads", profile.threads}, {"timed_configurations", passes},
          {"step_ms", profile.step_ms}};
}

void print_machine_profile(const MachineProfile& profile, std::ostream& out) {
  out << printable_line(profile.cpu + ", " + profile.simd + ": " + profile.model + ", " + profile.arithmetic) << ", "
      << profile.threads << (profile.threads == 1 ? " thread\n" : " threads\n");
  char line[120];
  for (const TimedPass& pass : profile.passes) {
    std::snprintf(line, sizeof line, "  %2lld rows behind %4lld tokens  %8.3f ms\n", static_cast<long long>(pass.rows),
                  static_cast<long long>(pass.context_len), pass.ms);
    out << line;
  }
  std::snprintf(line, sizeof line, "  a plain step beside its pass %9.3f ms\n", profile.step_ms);
  out << line;
}

}  // namespace draftproof
