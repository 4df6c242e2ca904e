// The palette as Dear ImGui and ImPlot take it.
#pragma once

#include <imgui.h>

#include <algorithm>
#include <cmath>
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
// Colour of a text on the window: this colour, mixed with that of texts until the contrast
// of WCAG 2.1 (1.4.3) is 4.5, so that a projector shows it in light and dark.
inline ImVec4 text_colour_of(const PaletteColour& colour) {
  constexpr float kContrast = 4.5f;
  const auto luminance = [](const ImVec4& c) {
    const auto linear = [](float x) { return x <= 0.04045f ? x / 12.92f : std::pow((x + 0.055f) / 1.055f, 2.4f); };
    return 0.2126f * linear(c.x) + 0.7152f * linear(c.y) + 0.0722f * linear(c.z);
  };
  const float behind = luminance(ImGui::GetStyleColorVec4(ImGuiCol_WindowBg));
  const ImVec4 pure = to_vec4(colour);
  const ImVec4 text = ImGui::GetStyleColorVec4(ImGuiCol_Text);
  ImVec4 mixed = pure;
  for (float share = 0; share <= 1; share += 0.05f) {  // NOLINT(clang-analyzer-security.FloatLoopCounter)
    const auto mix = [&](float a, float b) { return a + share * (b - a); };
    mixed = {mix(pure.x, text.x), mix(pure.y, text.y), mix(pure.z, text.z), 1.0f};
    const float here = luminance(mixed);
    if ((std::max(here, behind) + 0.05f) / (std::min(here, behind) + 0.05f) >= kContrast) break;
  }
  return mixed;
}
// Colour of the curve with this number.
inline const PaletteColour& series_colour(std::size_t index) {
  return palette::kSeries.at(index % palette::kSeries.size());
}

}  // namespace draftproof
