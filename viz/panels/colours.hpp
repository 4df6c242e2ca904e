// The palette as Dear ImGui and ImPlot take it.
#pragma once

#include <imgui.h>

#include <cstddef>

#include "studies/palette.hpp"

namespace draftproof {

inline ImVec4 to_vec4(const PaletteColour& colour, float alpha = 1) {
  constexpr float kWhole = 255;
  return {static_cast<float>(colour.red) / kWhole, static_cast<float>(colour.green) / kWhole,
          static_cast<float>(colour.blue) / kWhole, alpha};
}
inline ImU32 to_u32(const PaletteColour& colour, float alpha = 1) {
  return ImGui::ColorConvertFloat4ToU32(to_vec4(colour, alpha));
}
// Colour of the curve with this number.
inline const PaletteColour& series_colour(std::size_t index) {
  return palette::kSeries.at(index % palette::kSeries.size());
}

}  // namespace draftproof
