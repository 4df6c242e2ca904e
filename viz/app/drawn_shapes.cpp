#include "viz/app/drawn_shapes.hpp"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace draftproof {
namespace {

// Which character a rectangle of the font's texture belongs to: the rectangle may be a part of it, where it is cut.
std::optional<PlacedCharacter> character_of(const std::array<ImDrawVert, 4>& quad) {
  const ImVec2 first = quad[0].uv;
  const ImVec2 last = quad[2].uv;
  auto& all = ImGui::GetIO().Fonts->Builder->BakedPool;
  constexpr float kSlack = 1e-6f;
  for (int i = 0; i < all.Size; ++i) {
    if (all[i].LastUsedFrame + 1 < ImGui::GetFrameCount()) continue;  // of another size of text, which is gone
    for (const ImFontGlyph& glyph : all[i].Glyphs) {
      if (!glyph.Visible || first.x < glyph.U0 - kSlack || last.x > glyph.U1 + kSlack || first.y < glyph.V0 - kSlack ||
          last.y > glyph.V1 + kSlack || first.x >= last.x || first.y >= last.y)
        continue;
      // Its own coordinates of the rectangle's corners.
      const auto own = [](float uv, float uv0, float uv1, float from, float to) {
        return from + (uv - uv0) / (uv1 - uv0) * (to - from);
      };
      const ImVec2 a{own(first.x, glyph.U0, glyph.U1, glyph.X0, glyph.X1),
                     own(first.y, glyph.V0, glyph.V1, glyph.Y0, glyph.Y1)};
      const ImVec2 c{own(last.x, glyph.U0, glyph.U1, glyph.X0, glyph.X1),
                     own(last.y, glyph.V0, glyph.V1, glyph.Y0, glyph.Y1)};
      const bool upright = std::abs(quad[1].pos.x - quad[0].pos.x) < std::abs(quad[1].pos.y - quad[0].pos.y);
      const float wide = upright ? quad[0].pos.y - quad[2].pos.y : quad[2].pos.x - quad[0].pos.x;
      const float scale = wide / (c.x - a.x);
      const float down = all[i].Ascent - a.y;
      const ImVec2 at = quad[0].pos;
      const ImVec2 pen =
          upright ? ImVec2{at.x + down * scale, at.y + a.x * scale} : ImVec2{at.x - a.x * scale, at.y + down * scale};
      constexpr float kSeen_px = 0.5f;  // less than this is no cut
      const bool is_whole = std::max({a.x - glyph.X0, glyph.X1 - c.x, a.y - glyph.Y0, glyph.Y1 - c.y}) < kSeen_px;
      const auto [left, right] = std::minmax(quad[0].pos.x, quad[2].pos.x);
      const auto [top, bottom] = std::minmax(quad[0].pos.y, quad[2].pos.y);
      return PlacedCharacter{glyph.Codepoint, pen,         all[i].Size * scale, glyph.AdvanceX * scale,
                             upright,         quad[0].col, {left, top},         {right, bottom},
                             is_whole};
    }
  }
  return std::nullopt;
}

}  // namespace

void for_each_shape(const ImDrawList& list, const ImDrawCmd& command,
                    const std::function<void(std::span<const ImDrawVert>)>& area,
                    const std::function<void(const PlacedCharacter&)>& character) {
  const auto index = [&](unsigned place) { return list.IdxBuffer[static_cast<int>(command.IdxOffset + place)]; };
  const auto vertex = [&](unsigned place) {
    return list.VtxBuffer[static_cast<int>(command.VtxOffset + index(place))];
  };
  const ImVec2 white = ImGui::GetFontTexUvWhitePixel();
  for (unsigned i = 0; i + 3 <= command.ElemCount;) {
    const bool is_quad = i + 6 <= command.ElemCount && index(i) == index(i + 3) && index(i + 2) == index(i + 4);
    if (!is_quad) {
      area(std::array{vertex(i), vertex(i + 1), vertex(i + 2)});
      i += 3;
      continue;
    }
    const std::array corners{vertex(i), vertex(i + 1), vertex(i + 2), vertex(i + 5)};
    const bool is_plain = corners[0].uv.x == white.x && corners[0].uv.y == white.y;
    if (const auto found = is_plain ? std::nullopt : character_of(corners))
      character(*found);
    else
      area(corners);
    i += 6;
  }
}

}  // namespace draftproof
