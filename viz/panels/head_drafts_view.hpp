// The drafts of a text, step below step, each at its place in the output: how blocks fill it in; and one step with the
// candidates of every slot.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <optional>

#include "studies/heads/heads.hpp"
#include "viz/panels/controls.hpp"

namespace draftproof {

// In the current window, scrolled to step `shown` (from 1) where `scrolls`. The step that is clicked.
std::optional<std::int64_t> draw_head_drafts(Controls& controls, const HeadsPrompt& prompt, std::int64_t shown,
                                             bool scrolls);

// In the current window, a column for each slot.
void draw_head_step(const HeadStep& step);

}  // namespace draftproof
