#include "viz/panels/all_panels.hpp"

#include "viz/panels/speculate.hpp"

namespace draftproof {

std::vector<std::unique_ptr<Panel>> all_panels() {
  std::vector<std::unique_ptr<Panel>> panels;
  panels.push_back(std::make_unique<SpeculatePanel>());
  return panels;
}

}  // namespace draftproof
