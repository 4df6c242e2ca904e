// The drawings of the tree explorer: the tree, its mask, and the curves by node budget.
#pragma once

#include <cstdint>

#include "studies/tree/tree_explorer.hpp"
#include "viz/panels/controls.hpp"

namespace draftproof {

// The tree after `step` decisions of the walk. It can be panned and zoomed; refit: the whole of it is shown again.
void draw_tree(Controls& controls, const TreeExplorerSnapshot& snapshot, std::int64_t step, bool refit);
// Who attends to whom.
void draw_mask(Controls& controls, const TreeExplorerSnapshot& snapshot, bool refit);
void draw_budgets(Controls& controls, const TreeExplorerSnapshot& snapshot);

}  // namespace draftproof
