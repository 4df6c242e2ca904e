// The draft of one step as a tree that grows downwards, with what became of it.
#pragma once

#include "studies/speculate/speculate.hpp"

namespace draftproof {

// In the current window, as large as it comes out; what does not fit is scrolled to.
void draw_draft_tree(const SpeculateStep& step);

}  // namespace draftproof
