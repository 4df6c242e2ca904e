// draftproof presets: what the simulator knows by name.
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/split.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "sim/cost/drafter.hpp"
#include "sim/cost/engine_profile.hpp"
#include "sim/cost/gpu.hpp"
#include "sim/cost/model_shape.hpp"

namespace draftproof {
namespace {

struct PresetsArguments {
  std::string kind = "all";
  Artefacts artefacts;
  bool json = false;
};

Json gpus_json() {
  return json_list(gpu_preset_names(), [](const std::string& name) -> Json {
    const Gpu gpu = find_gpu(name);
    return {{"name", gpu.name},
            {"memory_gb", gpu.memory_bytes / 1e9},
            {"bandwidth_gb_s", gpu.bandwidth / 1e9},
            {"bf16_tflops", gpu.bf16_flops / 1e12}};
  });
}

Json models_json() {
  return json_list(model_preset_names(), [](const std::string& name) -> Json {
    const ModelShape model = find_model(name);
    return {{"name", model.name},
            {"layers", model.layers},
            {"parameters_b", model.total_parameters() / 1e9},
            {"active_parameters_b", model.active_parameters() / 1e9},
            {"kv_mb_at_32k", 2.0 * model.cached_values(32768.0) / 1e6}};  // in 16 bits
  });
}

Json engines_json() {
  return json_list(engine_presets(), [](const EngineProfile& engine) -> Json {
    return {{"name", engine.name}, {"eager", engine.eager}, {"generic", engine.generic}};
  });
}

Json drafters_json() {
  return json_list(drafter_preset_names(), [](const std::string& name) -> Json { return {{"name", name}}; });
}

struct PresetKind {
  const char* name;
  Json (*rows)();
};

constexpr PresetKind kPresetKinds[] = {
    {"gpus", gpus_json}, {"models", models_json}, {"engines", engines_json}, {"drafters", drafters_json}};

std::string kinds_text() {
  return joined(kPresetKinds, " or ", [](const PresetKind& kind) { return std::string(kind.name); });
}

void print_presets(const std::string& kind, const Json& rows) {
  std::cout << kind << '\n';
  for (const Json& row : rows) {
    std::cout << "  " << std::left << std::setw(30) << row.at("name").get<std::string>();
    for (const auto& [key, value] : row.items()) {
      if (value.is_number()) std::cout << "  " << key << ' ' << std::setprecision(5) << value.get<double>();
      if (value.is_boolean() && value.get<bool>()) std::cout << "  " << key;
    }
    std::cout << '\n';
  }
}

}  // namespace

void add_presets(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<PresetsArguments>();
  std::vector<std::string> kinds{"all"};
  for (const PresetKind& kind : kPresetKinds) kinds.emplace_back(kind.name);
  options.choice("kind", arguments->kind, kinds, "Which of them");
  add_table(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples({"gpus", "models --json", "gpus --table gpus.tex"});
  options.on_run([arguments, &context] {
    require_artefacts(arguments->artefacts);
    if (!arguments->artefacts.table.empty() && arguments->kind == "all")
      throw usage_error("--table", "is of one kind; expected " + kinds_text() + " before it");
    Json document = json_document(context.arguments);
    for (const PresetKind& kind : kPresetKinds) {
      if (arguments->kind != "all" && arguments->kind != kind.name) continue;
      document[kind.name] = kind.rows();
      if (!arguments->json) print_presets(kind.name, document[kind.name]);
    }
    write_table_of(arguments->artefacts, "Presets: " + arguments->kind, context, [&] {
      std::vector<std::string> keys;
      for (const auto& [key, value] : document[arguments->kind].front().items()) keys.push_back(key);
      return table_of(document[arguments->kind], keys);
    });
    if (arguments->json) print_json(document);
  });
}

}  // namespace draftproof
