// Controls in rows that wrap.
#pragma once

#include <imgui.h>

namespace draftproof {

// The next control stands beside the last one where there is room for so many times the font's size.
inline void next_control(float width_em) {
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const float end = ImGui::GetItemRectMax().x + ImGui::GetStyle().ItemSpacing.x + width_em * ImGui::GetFontSize();
  if (end <= right) ImGui::SameLine();
}

}  // namespace draftproof
