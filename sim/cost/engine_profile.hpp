// Overheads that an engine adds to a roofline: efficiencies, launches, floors. Each constant carries its relative
// uncertainty.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace draftproof {

enum class EngineConstant {
  bandwidth_efficiency,         // share of the memory bandwidth that a dense pass reaches
  flop_efficiency,              // share of the peak rate
  expert_bandwidth_efficiency,  // share of the bandwidth for weights of experts
  expert_exponent,              // n rows of a sequence choose experts like n^exponent independent ones
  layer_launch_ms,              // of every layer of a target pass: kernels and gaps between them
  draft_layer_launch_ms,        // of every layer of a draft pass
  step_floor_ms,                // of every step: scheduling, sampling, what the GPU waits for
  pass_floor_ms,                // of every draft pass beside its roofline and launches
  tree_pass_ms,                 // more for a draft pass that grows a tree
  speculation_ms,               // of a step that verifies drafts, beside all passes
  collective_ms,                // of one all-reduce beside its bytes; two a layer where tp > 1
};
inline constexpr std::size_t kEngineConstants = 11;
const char* name_of(EngineConstant constant);  // as in TOML and JSON

struct UncertainConstant {
  double value = 0.0;
  double spread = 0.0;  // standard deviation of its logarithm: 0.1 is about 10 %
  double prior = 0.0;   // the value before any published speedup was seen
};

struct EngineProfile {
  std::string name;
  std::vector<std::string> aliases;
  std::string source;
  // Launches come from the host while the GPU works: a pass takes the longer of both. Else a captured graph launches.
  bool eager = false;
  bool eager_drafts = false;  // the same of draft passes
  bool generic = false;       // stands for engines of which no constants are known
  std::array<UncertainConstant, kEngineConstants> constants;
  // Rows are padded to the next size for which a graph was captured; past the largest one a pass runs eagerly, at
  // eager_layer_launch_ms a layer. Empty: no graphs. Some engines capture by requests, whatever the drafts of each.
  std::vector<int> graph_rows;
  bool graphs_by_request = false;
  double eager_layer_launch_ms = 0.0;

  // Versions before this one, as "0.11", draft without captured graphs, which takes so much longer a draft pass. Empty:
  // none. `match_engine` takes the version from the name, as of "vLLM 0.8.5"; without one it is today's.
  std::string drafts_captured_from;
  double eager_draft_pass_ms = 0.0;
  bool captures_drafts = true;

  // The size of a pass as graph_rows counts it. A prefill, with more rows a request than any draft, counts by rows.
  double captured_by(double rows, double streams) const {
    constexpr double kDraftRowsMost = 256.0;
    return graphs_by_request && rows <= kDraftRowsMost * streams ? streams : rows;
  }
  double value(EngineConstant constant) const { return constants[static_cast<std::size_t>(constant)].value; }
};

// A preset by a name as people write it ("vLLM 0.24.0", "HF transformers (Spec-Bench)"); FILE.toml that has one engine;
// or FILE.toml:NAME of one that has several, as `calibrate --out` writes it. Input error for an unknown name, with the
// nearest ones.
EngineProfile find_engine(const std::string& name_or_path);
// The preset alone; nothing where none matches.
std::optional<EngineProfile> match_engine(const std::string& name);
const std::vector<EngineProfile>& engine_presets();

// The [[engine]] table of a profile, which is read back to the same values.
std::string toml_of(const EngineProfile& profile);

}  // namespace draftproof
