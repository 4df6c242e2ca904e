// The panels of the dashboard, in the order of its menu; the first is what opens.
#pragma once

#include <memory>
#include <vector>

#include "viz/panels/panel.hpp"

namespace draftproof {

std::vector<std::unique_ptr<Panel>> all_panels();

}  // namespace draftproof
