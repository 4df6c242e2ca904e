#include "sim/cost/engine_profile.hpp"

#include <iomanip>
#include <sstream>

#include "reference/error.hpp"
#include "reference/printable.hpp"
#include "sim/cost/preset_folder.hpp"

namespace draftproof {
namespace {

constexpr std::array<const char*, kEngineConstants> kNames{
    "bandwidth_efficiency", "flop_efficiency", "expert_bandwidth_efficiency",
    "expert_exponent",      "layer_launch_ms", "step_floor_ms",
    "pass_floor_ms",        "tree_pass_ms",    "speculation_ms",
    "collective_ms"};

// Efficiencies and exponents are shares; times in milliseconds may be 0.
constexpr bool is_share(std::size_t index) {
  return index < 4;
}

EngineProfile engine_of(const TomlValue& entry) {
  entry.allow_only({"name", "aliases", "source", "eager", "graph_rows", "eager_layer_launch_ms", kNames[0], kNames[1],
                    kNames[2], kNames[3], kNames[4], kNames[5], kNames[6], kNames[7], kNames[8], kNames[9]});
  EngineProfile profile;
  profile.name = entry.at("name").text();
  profile.source = entry.text_or("source", entry.where());
  profile.eager = entry.flag_or("eager", false);
  for (std::size_t i = 0; i < kEngineConstants; ++i) {
    const TomlValue& constant = entry.at(kNames[i]);
    constant.allow_only({"value", "spread"});
    profile.constants[i].value =
        is_share(i) ? constant.at("value").number(0.001, 1.5) : constant.at("value").number(0.0, 1e5);
    profile.constants[i].spread = constant.number_or("spread", 0.0, 0.0, 10.0);
  }
  if (const TomlValue* rows = entry.find("graph_rows"))
    for (const TomlValue& row : rows->items()) {
      profile.graph_rows.push_back(static_cast<int>(row.integer(1, 1 << 24)));
      if (profile.graph_rows.size() > 1 && profile.graph_rows.end()[-2] >= profile.graph_rows.back())
        throw input_error(row.where(), "it is not above the one before; expected sizes that rise");
    }
  profile.eager_layer_launch_ms = entry.number_or("eager_layer_launch_ms", 0.0, 0.0, 1e4);
  return profile;
}

const PresetFolder<EngineProfile>& presets() {
  static const PresetFolder<EngineProfile> read = read_presets<EngineProfile>("engines", "engine", engine_of);
  return read;
}

}  // namespace

const char* name_of(EngineConstant constant) {
  return kNames[static_cast<std::size_t>(constant)];
}

std::optional<EngineProfile> match_engine(const std::string& name) {
  const EngineProfile* profile = presets().match(name);
  return profile ? std::optional(*profile) : std::nullopt;
}

EngineProfile find_engine(const std::string& name_or_path) {
  if (name_or_path.ends_with(".toml")) return engine_of(read_one_preset(name_or_path, "engine"));
  if (const auto profile = match_engine(name_or_path)) return *profile;
  throw input_error(
      "engine " + in_quotes(name_or_path),
      "unknown; expected a preset (nearest: " + near_names(name_or_path, presets().names) + ") or a TOML file");
}

std::vector<EngineProfile> engine_presets() {
  return presets().presets;
}

std::string toml_of(const EngineProfile& profile) {
  std::ostringstream out;
  out << "[engine]\nname = " << toml_quoted(profile.name) << "\nsource = " << toml_quoted(profile.source)
      << "\neager = " << (profile.eager ? "true" : "false") << "\n"
      << std::setprecision(17);
  for (std::size_t i = 0; i < kEngineConstants; ++i)
    out << kNames[i] << " = { value = " << profile.constants[i].value << ", spread = " << profile.constants[i].spread
        << " }\n";
  if (!profile.graph_rows.empty()) {
    out << "graph_rows = [";
    for (std::size_t i = 0; i < profile.graph_rows.size(); ++i) out << (i ? ", " : "") << profile.graph_rows[i];
    out << "]\n";
  }
  out << "eager_layer_launch_ms = " << profile.eager_layer_launch_ms << "\n";
  return out.str();
}

}  // namespace draftproof
