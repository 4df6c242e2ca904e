#include "viz/panels/speedup_by_batch.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "base/strict_number.hpp"
#include "sim/cost/engine_profile.hpp"
#include "sim/csv.hpp"
#include "sim/toml.hpp"
#include "viz/panels/colours.hpp"
#include "viz/panels/speedup_plots.hpp"

namespace draftproof {
namespace {

const std::string kTypical = "typical of the drafter";
const std::string kOneRate = "one rate";
const std::string kNone = "none";

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineProfile& engine : engine_presets()) names.push_back(engine.name);
  return names;
}

// Presets, and draft models of the usual families.
std::vector<std::string> drafter_names() {
  std::vector<std::string> names;
  for (const std::string& name : drafter_preset_names())
    if (name != "draft model") names.push_back(name);
  for (const char* const model : {"Llama-3.1-8B", "Llama-3.2-1B", "Qwen3-0.6B", "Qwen2.5-0.5B", "Gemma-3-1B"})
    names.emplace_back(model);
  return names;
}

// The rate of "constant:0.8"; nothing for other acceptances.
std::optional<double> rate_of(const std::string& acceptance) {
  const std::string prefix = "constant:";
  return acceptance.starts_with(prefix) ? read_number(acceptance.substr(prefix.size())) : std::nullopt;
}

std::string constant_rate(double rate) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "constant:%.2f", rate);
  return text.data();
}

std::string file_name(const std::string& path) {
  const std::filesystem::path file(path);
  return (file.parent_path().filename() / file.filename()).string();
}

bool is_measured_csv(const std::string& path) {
  const CsvTable table = read_csv(path);
  return table.column("hardware") >= 0 && table.column("target_model") >= 0 && table.column("draft_method") >= 0;
}

}  // namespace

bool SpeedupByBatchPanel::open(const OpenedResult& result) {
  if (result.verb == "predict") {
    set(settings_of_prediction(result.document, result.file));
    return true;
  }
  if (result.extension() == ".toml") {
    const TomlValue file = read_toml(result.file);
    if (file.find("claim") == nullptr || file.text_or("x", "") != "batch size") return false;
    set(settings_of_experiment(result.file));
    return true;
  }
  if (result.verb != "validate" && !(result.extension() == ".csv" && is_measured_csv(result.file))) return false;
  SpeedupByBatchSettings with = settings();
  with.request.measured = result.file;
  set(with);
  return true;
}

void SpeedupByBatchPanel::draw_choices(Controls& controls, PredictionRequest& request) {
  static const std::vector<std::string> kModels = model_preset_names();
  static const std::vector<std::string> kGpus = gpu_preset_names();
  static const std::vector<std::string> kEngines = engine_names();
  static const std::vector<std::string> kDrafters = drafter_names();
  if (controls.choice("model", request.model, kModels, "The target: its weights and KV are what a pass reads."))
    request.tp.reset();
  if (controls.choice("GPU", request.gpu, kGpus, "Bytes and operations a second: the two slopes of the roofline."))
    request.tp.reset();
  std::int64_t gpus = request.tp.value_or(0);
  if (controls.slider("GPUs", gpus, 0, 16, "TP: GPUs that share every layer; 0: as few as hold the weights."))
    request.tp = gpus == 0 ? std::nullopt : std::optional(static_cast<int>(gpus));
  controls.choice("engine", request.engine, kEngines, "Whose launches, floors and efficiencies a step has.");
  controls.choice("drafter", request.drafter, kDrafters, "What drafts: its passes are c in step ratio = 1 + K c + ...");
  controls.slider("context", request.context, 16, 32768,
                  "Tokens in the cache of a request: their KV is read in every step.");
}

void SpeedupByBatchPanel::draw_what_if(Controls& controls, SpeedupByBatchSettings& settings) {
  PredictionRequest& request = settings.request;
  const auto rate = rate_of(request.acceptance);
  std::vector<std::string> kinds{kTypical, kOneRate};
  std::string kind = rate ? kOneRate : kTypical;
  if (!request.metrics.empty()) kind = file_name(request.metrics);
  if (request.metrics.empty() && !rate && !request.acceptance.empty()) kind = request.acceptance;
  if (kind != kTypical && kind != kOneRate) kinds.push_back(kind);
  if (controls.choice("acceptance", kind, kinds, "Medians of published rates, or a rate a at every position.")) {
    request.metrics.clear();
    request.acceptance = kind == kOneRate ? constant_rate(0.7) : "";
  }
  if (double a = rate.value_or(0.0);
      rate && controls.slider("rate a", a, {0.05, 0.99},
                              "a: P(a draft is accepted, those before it accepted); 1 + a + ... + a^K tokens a step."))
    request.acceptance = constant_rate(a);
  controls.slider("accepted drafts x", request.acceptance_factor, {0.25, 2, true, "%.2f"},
                  "What if: so many times as many accepted drafts, tau = 1 + x (tau - 1), at most K + 1.");
  controls.slider("draft cost x", request.draft_cost_factor, {0.05, 20, true, "%.2f"},
                  "What if: drafting takes x times as long; the step ratio changes by K c (x - 1).");
  controls.toggle("guidance", request.guidance,
                  "Classifier-free guidance: two streams a request, twice the rows verified.");
  controls.toggle("compare guidance", request.compare_guidance,
                  "Adds the best draft with guidance, or without where it is on.");
}

void SpeedupByBatchPanel::draw_curves_shown(Controls& controls, SpeedupByBatchSettings& settings) {
  static const std::vector<std::string> kCompared = [] {
    std::vector<std::string> names = drafter_names();
    names.insert(names.begin(), kNone);
    return names;
  }();
  PredictionRequest& request = settings.request;
  std::string compared = request.compared_drafters.empty() ? kNone : request.compared_drafters.front();
  if (controls.choice("compare with", compared, kCompared,
                      "Adds the best of another drafter, with acceptances typical of it.")) {
    request.compared_drafters.clear();
    if (compared != kNone) request.compared_drafters.push_back(compared);
  }
  for (const int k : {1, 2, 3, 5, 8}) {
    if (k != 1) ImGui::SameLine();
    const auto found = std::ranges::find(settings.shown_drafts, k);
    bool shown = found != settings.shown_drafts.end();
    if (!controls.toggle(("K=" + std::to_string(k)).c_str(), shown, "A curve for chains of K drafts.")) continue;
    if (shown) {
      settings.shown_drafts.push_back(k);
      std::ranges::sort(settings.shown_drafts);
    } else {
      settings.shown_drafts.erase(found);
    }
  }
  controls.toggle("trees", settings.show_trees, "Curves for trees, the best depth of each size.");
  controls.slider("batches to", settings.batch_max, 2, 2048, "B: the largest batch of the curves.");
  ImGui::TextWrapped("points: %s", request.measured.empty()
                                       ? "none; drop a CSV, a validate document or an experiment here"
                                       : printable_line(file_name(request.measured)).c_str());
  if (!request.measured.empty() && controls.button("no points", "Takes the measured or quoted points away."))
    request.measured.clear();
}

void SpeedupByBatchPanel::draw_controls(Controls& controls, SpeedupByBatchSettings& settings) {
  static const std::vector<std::string> kPresets = [] {
    std::vector<std::string> names;
    for (const SpeedupPreset& preset : speedup_presets()) names.push_back(preset.name);
    return names;
  }();
  if (preset_.empty()) preset_ = kPresets.front();
  if (controls.choice("lesson", preset_, kPresets, "Settings that show one thing each."))
    settings = std::ranges::find(speedup_presets(), preset_, &SpeedupPreset::name)->settings;
  ImGui::PushStyleColor(ImGuiCol_Text, to_vec4(palette::kVermilion));
  ImGui::TextWrapped("%s", std::ranges::find(speedup_presets(), preset_, &SpeedupPreset::name)->lesson.c_str());
  ImGui::PopStyleColor();
  ImGui::SeparatorText("Machine");
  draw_choices(controls, settings.request);
  ImGui::SeparatorText("What if");
  draw_what_if(controls, settings);
  ImGui::SeparatorText("Curves");
  draw_curves_shown(controls, settings);
}

void SpeedupByBatchPanel::draw_body(Controls& controls, SpeedupByBatchSettings& settings,
                                    const SpeedupByBatchSnapshot* snapshot) {
  const float em = ImGui::GetFontSize();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool wide = room.x > 56 * em;
  if (ImGui::BeginChild("controls", wide ? ImVec2{21 * em, 0} : ImVec2{0, std::min(0.35f * room.y, 16 * em)}))
    draw_controls(controls, settings);
  ImGui::EndChild();
  if (wide) ImGui::SameLine();
  if (ImGui::BeginChild("plots") && snapshot != nullptr) draw_speedup_plots(controls, *snapshot);
  ImGui::EndChild();
}

}  // namespace draftproof
