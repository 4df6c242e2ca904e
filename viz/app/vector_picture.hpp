// The contents of a window as SVG: areas and lines as they were drawn, texts as texts.
#pragma once

#include <imgui.h>

#include <string>

namespace draftproof {

// Lines and areas have hard edges in the frame that is drawn next, as an SVG draws their edges itself.
void set_hard_edges(bool hard);

// The window of this name with all in it, of a frame that was drawn with hard edges. Empty: there is no such window.
std::string svg_of(const ImDrawData& drawn, const std::string& window);

}  // namespace draftproof
