// Names as people, papers and CSV files write them, matched with those of presets: "NVIDIA A100-SXM4-80GB" is
// "A100 SXM 80GB", "meta-llama/Meta-Llama-3.1-8B-Instruct" is "Llama-3.1-8B".
//
// A preset matches if its words are found in the name, in their order. What else the name has is ignored; of models
// not a number of parameters that the preset does not have. The preset with the most letters wins.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace draftproof
