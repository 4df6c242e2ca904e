#include "sim/cost/engine_profile.hpp"

#include <iomanip>
#include <limits>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "sim/cost/presets.hpp"

namespace draftproof {
namespace {

constexpr std::array<const char*, kEngineConstants> kNames{
    "bandwidth_efficiency", "flop_efficiency", "expert_bandwidth_efficiency",
    "expert_exponent",      "layer_launch_ms", "draft_layer_launch_ms",
    "step_floor_ms",        "pass_floor_ms",   "tree_pass_ms",
    "speculation_ms",       "collective_ms"};

// Efficiencies and exponents are shares; times in milliseconds may be 0.
constexpr bool is_share(std::size_t index) {
  return index < 4;
}

double constant_of(const TomlValue& value, std::size_t index) {
  return is_share(index) ? value.number(0.001, 1.5) : value.number(0.0, 1e5);
}

// The first "A.B" in a name as people write it.
std::optional<std::pair<int, int>> version_in(const std::string& name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    std::size_t begin = dot, end = dot + 1;
    while (begin > 0 && is_digit(name[begin - 1])) --begin;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (begin == dot || end == dot + 1 || dot - begin > 6 || end - dot > 7) continue;
    return std::pair(std::stoi(name.substr(begin, dot - begin)), std::stoi(name.substr(dot + 1, end - dot - 1)));
  }
  return std::nullopt;
}

EngineProfile engine_of(const TomlValue& entry) {
  entry.allow_only({"name",
                    "aliases",
                    "source",
                    "eager",
                    "eager_drafts",
                    "generic",
                    "graph_rows",
                    "graphs_by_request",
                    "eager_layer_launch_ms",
                    "drafts_captured_from",
                    "eager_draft_pass_ms",
                    kNames[0],
                    kNames[1],
                    kNames[2],
                    kNames[3],
                    kNames[4],
                    kNames[5],
                    kNames[6],
                    kNames[7],
                    kNames[8],
                    kNames[9],
                    kNames[10]});
  EngineProfile profile;
  profile.name = entry.at("name").text();
  profile.aliases = entry.texts_or_none("aliases");
  profile.source = entry.text_or("source", entry.where());
  profile.eager = entry.flag_or("eager", false);
  profile.eager_drafts = entry.flag_or("eager_drafts", profile.eager);
  profile.generic = entry.flag_or("generic", false);
  for (std::size_t i = 0; i < kEngineConstants; ++i) {
    const TomlValue& constant = entry.at(kNames[i]);
    constant.allow_only({"value", "spread", "prior"});
    profile.constants[i].value = constant_of(constant.at("value"), i);
    profile.constants[i].spread = constant.number_or("spread", 0.0, 0.0, 10.0);
    const TomlValue* prior = constant.find("prior");
    profile.constants[i].prior = prior ? constant_of(*prior, i) : profile.constants[i].value;
  }
  if (const TomlValue* rows = entry.find("graph_rows"))
    for (const TomlValue& row : rows->items()) {
      profile.graph_rows.push_back(static_cast<int>(row.integer(1, 1 << 24)));
      if (profile.graph_rows.size() > 1 && profile.graph_rows.end()[-2] >= profile.graph_rows.back())
        throw input_error(row.where(), "it is not above the one before; expected sizes that rise");
    }
  profile.graphs_by_request = entry.flag_or("graphs_by_request", false);
  profile.drafts_captured_from = entry.text_or("drafts_captured_from", "");
  if (!profile.drafts_captured_from.empty() && !version_in(profile.drafts_captured_from))
    throw input_error(entry.at("drafts_captured_from").where(),
                      "it is " + in_quotes(profile.drafts_captured_from) + "; expected a version, as '0.11'");
  profile.eager_draft_pass_ms = entry.number_or("eager_draft_pass_ms", 0.0, 0.0, 1e4);
  profile.eager_layer_launch_ms = entry.number_or("eager_layer_launch_ms", 0.0, 0.0, 1e4);
  return profile;
}

const PresetFolder<EngineProfile>& engine_folder() {
  static const PresetFolder<EngineProfile> read = read_presets<EngineProfile>("engines", "engine", engine_of);
  return read;
}

[[noreturn]] void refuse(const std::string& name, const std::vector<NamedEntry>& names) {
  throw input_error("engine " + in_quotes(name),
                    "unknown; expected a preset (nearest: " + near_names(name, names) + ") or a TOML file");
}

// FILE.toml, or FILE.toml:NAME.
EngineProfile engine_of_file(const std::string& path, const std::string& name) {
  const TomlValue file = read_toml(path);
  file.allow_only({"engine", "fit"});
  const TomlValue& engines = file.at("engine");
  if (engines.kind() == TomlValue::Kind::table) return engine_of(engines);
  PresetFolder<EngineProfile> all;
  for (const TomlValue& entry : engines.items()) add_preset(all, entry, engine_of);
  if (name.empty() && all.presets.size() == 1) return all.presets.front();
  if (name.empty())
    throw input_error(path, "it has several engines; expected " + path + ":NAME, one of " + near_names("", all.names));
  if (const EngineProfile* profile = all.match(name)) return *profile;
  refuse(name, all.names);
}

}  // namespace

const char* name_of(EngineConstant constant) {
  return kNames[static_cast<std::size_t>(constant)];
}

std::optional<EngineProfile> match_engine(const std::string& name) {
  const EngineProfile* preset = engine_folder().match(name);
  if (!preset) return std::nullopt;
  EngineProfile profile = *preset;
  const auto version = version_in(name), captured_from = version_in(profile.drafts_captured_from);
  profile.captures_drafts = !version || !captured_from || *version >= *captured_from;
  return profile;
}

EngineProfile find_engine(const std::string& name_or_path) {
  const std::size_t suffix = name_or_path.rfind(".toml");
  if (suffix != std::string::npos) {
    const std::size_t end = suffix + 5;
    if (end == name_or_path.size()) return engine_of_file(name_or_path, "");
    if (name_or_path[end] == ':') return engine_of_file(name_or_path.substr(0, end), name_or_path.substr(end + 1));
  }
  if (const auto profile = match_engine(name_or_path)) return *profile;
  refuse(name_or_path, engine_folder().names);
}

const std::vector<EngineProfile>& engine_presets() {
  return engine_folder().presets;
}

std::string toml_of(const EngineProfile& profile) {
  std::ostringstream out;
  out << "[[engine]]\nname = " << toml_quoted(profile.name) << "\naliases = [";
  for (std::size_t i = 0; i < profile.aliases.size(); ++i) out << (i ? ", " : "") << toml_quoted(profile.aliases[i]);
  out << "]\nsource = " << toml_quoted(profile.source) << "\neager = " << (profile.eager ? "true" : "false")
      << "\neager_drafts = " << (profile.eager_drafts ? "true" : "false") << "\n"
      << (profile.generic ? "generic = true\n" : "") << std::setprecision(6);
  for (std::size_t i = 0; i < kEngineConstants; ++i)
    out << kNames[i] << " = { value = " << profile.constants[i].value << ", spread = " << profile.constants[i].spread
        << ", prior = " << profile.constants[i].prior << " }\n";
  if (!profile.graph_rows.empty()) {
    out << "graph_rows = [";
    for (std::size_t i = 0; i < profile.graph_rows.size(); ++i) out << (i ? ", " : "") << profile.graph_rows[i];
    out << "]\n" << (profile.graphs_by_request ? "graphs_by_request = true\n" : "");
  }
  if (!profile.drafts_captured_from.empty())
    out << "drafts_captured_from = " << toml_quoted(profile.drafts_captured_from)
        << "\neager_draft_pass_ms = " << profile.eager_draft_pass_ms << "\n";
  out << "eager_layer_launch_ms = " << profile.eager_layer_launch_ms << "\n";
  return out.str();
}

}  // namespace draftproof
