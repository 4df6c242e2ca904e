// The presets of one kind: every [[table]] of every file in one folder of sim/presets.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/cost/names.hpp"
#include "sim/toml.hpp"

namespace draftproof {

template <class Preset>
struct PresetFolder {
  std::vector<Preset> presets;
  std::vector<NamedEntry> names;  // of each

  const Preset* match(const std::string& name, bool any_size = true) const {
    const auto index = match_name(name, names, any_size);
    return index ? &presets[*index] : nullptr;
  }
  // The presets' own, in the files' order.
  std::vector<std::string> preset_names() const {
    std::vector<std::string> own;
    for (const NamedEntry& entry : names) own.push_back(entry.names.front());
    return own;
  }
};

template <class Preset>
void add_preset(PresetFolder<Preset>& all, const TomlValue& entry, Preset (*read)(const TomlValue& entry)) {
  all.presets.push_back(read(entry));
  all.names.push_back({{entry.at("name").text()}});
  for (const std::string& alias : entry.texts_or_none("aliases")) all.names.back().names.push_back(alias);
}

// Reads DRAFTPROOF_PRESETS/`folder`, files in the order of their names; `read` turns an entry into a preset.
template <class Preset>
PresetFolder<Preset> read_presets(const std::string& folder, const char* table,
                                  Preset (*read)(const TomlValue& entry)) {
  PresetFolder<Preset> all;
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(DRAFTPROOF_PRESETS "/" + folder))
    if (file.path().extension() == ".toml") paths.push_back(file.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const TomlValue file = read_toml(path);
    file.allow_only({table, "fit"});  // what is known of a fit stands before the engines it gave
    for (const TomlValue& entry : file.at(table).items()) add_preset(all, entry, read);
  }
  return all;
}

// The one [table] of a file of the user's.
inline TomlValue read_one_preset(const std::string& path, const char* table) {
  const TomlValue file = read_toml(path);
  file.allow_only({table});
  return file.at(table);
}

}  // namespace draftproof
