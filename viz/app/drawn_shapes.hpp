// The contents of draw lists: areas, and characters of the font.
#pragma once

#include <imgui.h>

#include <functional>
#include <span>

namespace draftproof {

// A character at the place of its pen on the baseline; upright ones go up, as the titles of vertical axes do.
struct PlacedCharacter {
  unsigned code_point;
  ImVec2 pen;
  float size_px;     // of its line
  float advance_px;  // to the pen of what follows
  bool upright;
  ImU32 colour;
  ImVec2 min, max;  // what is drawn of it, in pixels
  bool is_whole;    // false: a part was cut off before it was drawn
};

// The shapes of one command in their order: triangles and rectangles with their corners, or a character.
void for_each_shape(const ImDrawList& list, const ImDrawCmd& command,
                    const std::function<void(std::span<const ImDrawVert>)>& area,
                    const std::function<void(const PlacedCharacter&)>& character);

}  // namespace draftproof
