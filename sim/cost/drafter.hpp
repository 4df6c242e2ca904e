// The drafter, as far as its cost goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/model_shape.hpp"

namespace draftproof {

// Conditional acceptance by slot, as published for one domain of texts.
struct SlotRates {
  std::string domain;               // mathematics, code, chat
  std::vector<double> conditional;  // P(slot i accepted | those before it)
};

// Draft length for which a head was trained, and its acceptance as far as that is published.
struct DraftTraining {
  std::int32_t drafts = 0;  // 0: not known, or no limit
  // Each draft beyond these multiplies the conditional rates of all slots by it (block_decay.hpp); 1: the rate of the
  // last slot holds.
  double beyond = 1.0;
  std::vector<SlotRates> published;  // empty: none
  bool confidences = false;          // it says of each draft how likely it is accepted, before it is drawn
};

// The drafts of a head by its own files: its heads, its block, its layers.
struct DraftCount {
  std::int32_t drafts = 0;  // 0: not said
  std::string said;         // "medusa_num_heads is 3"
  bool repeats = false;     // longer drafts run the last layer again (MTP); else there are none
};

enum class DraftingKind {
  head,      // one small layer on the target's features, run once for every depth (EAGLE, Hydra, MTP)
  parallel,  // all depths in one pass (Medusa, block-parallel heads)
  model,     // a model of its own, run once for every depth
  ngram,     // looked up on the CPU: n-grams, suffixes
};
const char* name_of(DraftingKind kind);

struct DrafterShape {
  std::string name;
  DraftingKind kind = DraftingKind::head;
  // Shape of one pass, for what it reads and computes. A head: from the target's shape; n-grams: nothing.
  ModelShape shape;
  double first_pass_parameters = 0.0;  // read once a step: features of several layers are joined
  // Read once for every level behind the pass that proposes all: a Markov head adds the bias of the token before.
  double level_parameters = 0.0;
  // Nodes of a draft where nothing else is said; 0: none.
  int default_nodes = 0;
  int default_depth = 0;
  DraftTraining training;
  DraftCount count;

  bool one_pass() const { return kind == DraftingKind::parallel || kind == DraftingKind::ngram; }
};

// A preset of sim/presets/drafters by a name as people write it ("EAGLE-3 dynamic tree", "n-gram k=3"), the config.json
// of a head (drafter_config.hpp) or its folder, else a model (find_model) that drafts. Input error for an unknown name,
// and for a head of another target.
DrafterShape find_drafter(const std::string& name, const ModelShape& target);
std::vector<std::string> drafter_preset_names();
// Training of the preset with this name. Errors (usage) at `where`: there is none.
const DraftTraining& find_draft_training(const std::string& name, const std::string& where);
// Names of the presets whose acceptance by slot is published, as "EAGLE-3, DFlash".
std::string published_drafters();
// Finds a drafter by its method and, where a model drafts, that model's name; nothing for an unknown method, or for a
// draft model of unknown shape.
std::optional<DrafterShape> match_drafter(const std::string& method, const std::string& draft_model,
                                          const ModelShape& target);

}  // namespace draftproof
