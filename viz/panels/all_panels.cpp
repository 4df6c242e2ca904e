#include "viz/panels/all_panels.hpp"

namespace draftproof {

std::vector<std::unique_ptr<Panel>> all_panels() {
  std::vector<std::unique_ptr<Panel>> panels;
  return panels;
}

}  // namespace draftproof
