// Names as people, papers and CSV files write them, matched with those of presets: "NVIDIA A100-SXM4-80GB" is
// "A100 SXM 80GB", "meta-llama/Meta-Llama-3.1-8B-Instruct" is "Llama-3.1-8B".
//
// A preset matches if its words are found in the name, in their order. What else the name has is ignored; of models
// not a number of parameters that the preset does not have. The preset with the most letters wins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/own_files.hpp"
#include "sim/toml.hpp"

namespace draftproof {

// Lower case, split at everything but letters, digits and points between digits, and where letters turn into digits:
// "LLaMA3.1-8B" is llama 3.1 8b. An organisation before a slash and a count ("8x H100", "x4") are left out.
std::vector<std::string> name_words(std::string_view name);

struct NamedEntry {
  std::vector<std::string> names;  // the first one is the preset's own
};

// The index of the entry that matches best; nothing where none does. `any_size`: a name may have a number of parameters
// beside what matches.
std::optional<std::size_t> match_name(std::string_view name, const std::vector<NamedEntry>& entries, bool any_size);

// At most five names of entries, the nearest first, as "A, B, C".
std::string near_names(std::string_view name, const std::vector<NamedEntry>& entries);

// The presets of one kind: every [[table]] of every file in one folder of sim/presets.

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

// Reads presets/`folder`, files in the order of their names; `read` turns an entry into a preset.
template <class Preset>
PresetFolder<Preset> read_presets(const std::string& folder, const char* table,
                                  Preset (*read)(const TomlValue& entry)) {
  PresetFolder<Preset> all;
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(own_file("presets/" + folder)))
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
