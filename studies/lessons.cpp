#include "studies/lessons.hpp"

#include "exactness/bugs/run_bugs.hpp"
#include "studies/acceptance/acceptance_decay.hpp"
#include "studies/heads/heads.hpp"
#include "studies/lab/distribution_lab.hpp"
#include "studies/serving/serving_timeline.hpp"
#include "studies/serving/speedup_by_batch.hpp"
#include "studies/speculate/speculate.hpp"
#include "studies/tree/tree_explorer.hpp"

namespace draftproof {

std::vector<Lesson<DistributionLabSettings>> lessons(const DistributionLabSettings&) {
  DistributionLabSettings filters;
  filters.target = {8, 4, 2, 1, 1};
  filters.draft = {1, 1, 1, 1, 1};
  filters.top_p = 0.8f;
  filters.filters_first = true;
  DistributionLabSettings rejection;
  rejection.target = {0.5, 0.3, 0.2};
  rejection.draft = {0.2, 0.5, 0.3};
  DistributionLabSettings bug = rejection;
  bug.bug = "B38";
  DistributionLabSettings honest;
  honest.bug = "B04";
  honest.samples = 1000;
  std::vector<Lesson<DistributionLabSettings>> all{
      {"filters",
       "Pull temperature: every bar changes and none goes. Pull top-p: whole bars go, the others grow by one factor.",
       filters},
      {"rejection",
       "Drag the bars of p and q: green and orange together always end at p, and grey weighs as much as orange.",
       rejection}};
  static const bool has_bugs = !all_bugs().empty();  // a page has none
  if (!has_bugs) return all;
  all.push_back({"a wrong residual",
                 "Bug B38 subtracts q at the rejected token only: token 0 comes out at 0.405, not 0.5.", bug});
  all.push_back(
      {"honest",
       "Bug B04 passes with 1,000 samples: its distance of 0.02 is below the detectable one. Choose 100000 samples.",
       honest});
  return all;
}

std::vector<Lesson<AcceptanceDecaySettings>> lessons(const AcceptanceDecaySettings&) {
  AcceptanceDecaySettings cheap;
  cheap.draft_cost = 0.01;
  cheap.drafts_max = 16;
  return {
      {"decay", "Pull draft cost: the rings, at the best K, move left as drafts get dearer.", {}},
      {"cheap drafts", "Where a draft costs next to nothing the curve stays flat: K too large loses little.", cheap}};
}

std::vector<Lesson<HeadsSettings>> lessons(const HeadsSettings& current) {
  HeadsSettings heads;
  heads.model = current.model;
  heads.head = current.head;
  heads.per_work = 1;
  return {{"heads", "Acceptance falls with the slot as the cosine does: the head feeds on its own guesses.", heads}};
}

std::vector<Lesson<TreeExplorerSettings>> lessons(const TreeExplorerSettings&) {
  TreeExplorerSettings chain;
  chain.builder = "chain";
  chain.verifier = "chain";
  return {
      {"trees", "Play the verification: a rejected child costs nothing where a sibling is accepted.", {}},
      {"a chain", "All behind the first rejection is lost: nodes behind the fourth are hardly ever reached.", chain}};
}

std::vector<Lesson<SpeedupByBatchSettings>> lessons(const SpeedupByBatchSettings&) {
  return speedup_presets();
}

std::vector<Lesson<ServingTimelineSettings>> lessons(const ServingTimelineSettings&) {
  return {{"load",
           "Up to 16 requests a second speculation halves the time per token. At 32 goodput holds with it and is lost "
           "without; at 64 prompts fill the steps, and every policy loses.",
           {}}};
}

std::vector<Lesson<SpeculateSettings>> lessons(const SpeculateSettings& current) {
  return speculate_presets(current.model);
}

}  // namespace draftproof
