// The lessons of panel "Speculate". Each holds on every computer in its tokens, trees and acceptance; how much time it
// costs is measured where it runs.
#include <string_view>

#include "base/files/input_file.hpp"
#include "base/files/own_files.hpp"
#include "studies/speculate/speculate.hpp"

namespace draftproof {
namespace {

constexpr const char* kRecipe =
    "Repeat this recipe, with honey instead of sugar:\n"
    "Mix two cups of flour with one cup of sugar. Add two eggs and a cup of milk. Stir the flour, the sugar, the eggs "
    "and the milk until the dough is smooth. Bake the dough for thirty minutes and let it cool for ten minutes.";
constexpr const char* kStory =
    "The lighthouse keeper had two rules. The first was never to let the lamp go out. The second";
constexpr const char* kLicence = "You may copy and distribute the ";

constexpr const char* kWatchCopying =
    "Most of the answer stands in the prompt: runs of green are drafts found there, accepted many at a time, for the "
    "price of one verification each.";
constexpr const char* kWatchBadDrafter =
    "Nearly every draft is rejected at position 1, so each step yields one token as plain decoding does, and the "
    "orange "
    "spans are lost time: the lower lane is slower than the upper one.";
constexpr const char* kWatchLargeK =
    "Drafting takes K passes of the drafter in every step, but few steps get far: compare the width of the orange "
    "spans "
    "with the bars of the last positions, then lower K.";
constexpr const char* kWatchFullBatch =
    "The drafts are as good as for one output, but verification computes up to K + 1 rows for each of eight: a pass is "
    "no "
    "longer limited by reading weights, its span grows, and the speedup is gone; set outputs to 1 and compare.";
constexpr const char* kWatchGuidance =
    "Each token costs two rows, one with the prompt and one without: verification doubles, drafting does not; and "
    "since "
    "guidance pulls the answer towards the prompt, more of what is copied from there is accepted than at scale 1.";
constexpr const char* kWatchTree =
    "Siblings are second chances: where the first child of a node is rejected another may be accepted, so a step gives "
    "more tokens than a chain as deep; each level still costs a pass of the drafter.";
constexpr const char* kWatchCoupled =
    "The coupled verifier draws with the noise of plain decoding, so at temperature 0.8 both lanes write the same "
    "text; "
    "with verifier chain only the distribution of the texts is the same.";

// The toy target that says one text by heart, and so copies it from the prompt.
std::string recipe_file() {
  return own_file("recipe.txt");
}
std::string recipe_model() {
  return "ngram:12:" + recipe_file();
}

}  // namespace

bool is_toy(const std::string& model) {
  return model.starts_with("ngram:");
}

std::vector<SpeculatePreset> speculate_presets(const std::string& model) {
  const bool is_ngram = is_toy(model);
  const bool is_standard_toy = model == kToyModel || model == recipe_model();
  SpeculateSettings base;
  base.model = is_standard_toy ? kToyModel : model;
  base.prompt = is_ngram ? kLicence : kStory;
  base.max_tokens = is_ngram ? 300 : 100;
  base.drafter = is_ngram ? "ngram:3" : "layer_skip:12-14";
  base.num_speculative_tokens = 4;

  SpeculateSettings copying = base;
  copying.drafter = "suffix";
  copying.num_speculative_tokens = 8;
  if (is_standard_toy) {
    constexpr std::string_view kBegin = "Mix";  // with which the recipe begins
    const std::string recipe(InputFile(recipe_file()).text());
    copying.model = recipe_model();
    copying.prompt = "Repeat this recipe:\n" + recipe + "\n" + std::string(kBegin);
    copying.max_tokens = static_cast<std::int64_t>(recipe.size() - kBegin.size());
  } else if (!is_ngram) {
    copying.prompt = kRecipe;
    copying.chat = true;
  }
  SpeculateSettings bad_drafter = base;
  bad_drafter.drafter = is_ngram ? "ngram:1" : "layer_skip:5-25";
  SpeculateSettings large_k = base;
  large_k.num_speculative_tokens = 16;
  SpeculateSettings full_batch = copying;
  full_batch.outputs = 8;
  full_batch.temperature = 0.3;
  full_batch.max_tokens = 48;
  SpeculateSettings guidance = copying;
  guidance.cfg_scale = 1.5;
  SpeculateSettings tree = base;
  tree.temperature = 0.8;
  tree.verifier = "rrs";
  tree.tree = "3x2x1x1";
  SpeculateSettings coupled = base;
  coupled.temperature = 0.8;
  coupled.seed = 1;
  coupled.verifier = "coupled";
  return {{"Copying text", kWatchCopying, copying}, {"A bad drafter", kWatchBadDrafter, bad_drafter},
          {"K too large", kWatchLargeK, large_k},   {"A full batch", kWatchFullBatch, full_batch},
          {"Guidance", kWatchGuidance, guidance},   {"A tree", kWatchTree, tree},
          {"The same text", kWatchCoupled, coupled}};
}

}  // namespace draftproof
