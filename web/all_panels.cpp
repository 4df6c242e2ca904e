// The panels of a page: all but Exactness and Kernels, whose studies take proofs, hunts or the CPU executor with them.
#include "viz/panels/all_panels.hpp"

#include "viz/panels/acceptance_decay.hpp"
#include "viz/panels/distribution_lab.hpp"
#include "viz/panels/heads.hpp"
#include "viz/panels/serving_timeline.hpp"
#include "viz/panels/speculate.hpp"
#include "viz/panels/speedup_by_batch.hpp"
#include "viz/panels/tree_explorer.hpp"

namespace draftproof {

std::vector<std::unique_ptr<Panel>> all_panels() {
  std::vector<std::unique_ptr<Panel>> panels;
  panels.push_back(std::make_unique<SpeculatePanel>());
  panels.push_back(std::make_unique<DistributionLabPanel>());
  panels.push_back(std::make_unique<AcceptanceDecayPanel>());
  panels.push_back(std::make_unique<HeadsPanel>());
  panels.push_back(std::make_unique<TreeExplorerPanel>());
  panels.push_back(std::make_unique<SpeedupByBatchPanel>());
  panels.push_back(std::make_unique<ServingTimelinePanel>());
  return panels;
}

}  // namespace draftproof
