#include "viz/app/vector_picture.hpp"

#include <imgui_internal.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <sstream>
#include <vector>

namespace draftproof {
namespace {

constexpr float kLineOfEm = 1.172f;  // Roboto's height of a line; Dear ImGui's sizes are those of lines

// "12.3" of a place in pixels.
std::string number(float value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", static_cast<double>(value));
  std::string shortest = text.data();
  if (shortest.ends_with(".0")) shortest.resize(shortest.size() - 2);
  return shortest == "-0" ? "0" : shortest;
}

// "#rrggbb", and how much of what is behind is covered.
std::string paint(ImU32 colour) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "fill=\"#%02x%02x%02x\"", (colour >> IM_COL32_R_SHIFT) & 0xff,
                (colour >> IM_COL32_G_SHIFT) & 0xff, (colour >> IM_COL32_B_SHIFT) & 0xff);
  std::string attributes = text.data();
  const unsigned alpha = colour >> IM_COL32_A_SHIFT;
  if (alpha == 0xff) return attributes;
  std::snprintf(text.data(), text.size(), " fill-opacity=\"%.3f\"", alpha / 255.0);
  return attributes + text.data();
}

std::string escaped(unsigned code_point) {
  if (code_point == '&') return "&amp;";
  if (code_point == '<') return "&lt;";
  if (code_point >= 0x20 && code_point < 0x7f) return std::string(1, static_cast<char>(code_point));
  return "&#" + std::to_string(code_point) + ";";
}

// A character at the place of its pen on the baseline; upright ones go up, as the titles of vertical axes do.
struct PlacedCharacter {
  unsigned code_point;
  ImVec2 pen;
  float size_px;     // of its line
  float advance_px;  // to the pen of what follows
  bool upright;
  ImU32 colour;
};

// Which character a rectangle of the font's texture belongs to: the rectangle may be a part of it, where it is cut.
std::optional<PlacedCharacter> character_of(const std::array<ImDrawVert, 4>& quad) {
  const ImVec2 first = quad[0].uv;
  const ImVec2 last = quad[2].uv;
  auto& all = ImGui::GetIO().Fonts->Builder->BakedPool;
  constexpr float kSlack = 1e-6f;
  for (int i = 0; i < all.Size; ++i) {
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
      return PlacedCharacter{glyph.Codepoint, pen, all[i].Size * scale, glyph.AdvanceX * scale, upright, quad[0].col};
    }
  }
  return std::nullopt;
}

// Neighbours of one colour are one path, or one text whose characters each have a place.
class SvgWriter {
 public:
  void add(std::span<const ImDrawVert> corners) {
    const ImU32 colour = corners[0].col;
    if (colour >> IM_COL32_A_SHIFT == 0) return;
    end_text();
    if (colour != colour_) end_path();
    colour_ = colour;
    // All one way round, so that none makes a hole in another.
    float area = 0.0f;
    for (std::size_t i = 0; i < corners.size(); ++i) {
      const ImVec2 p = corners[i].pos;
      const ImVec2 q = corners[(i + 1) % corners.size()].pos;
      area += p.x * q.y - q.x * p.y;
    }
    for (std::size_t i = 0; i < corners.size(); ++i) {
      const ImVec2 p = corners[area < 0 ? corners.size() - 1 - i : i].pos;
      path_ += (i == 0 ? "M" : "L") + number(p.x) + " " + number(p.y);
    }
    path_ += 'Z';
  }

  void add(const PlacedCharacter& character) {
    end_path();
    if (!text_.empty()) {
      PlacedCharacter space = text_.back();
      const bool same_line =
          space.colour == character.colour && space.upright == character.upright &&
          std::abs(space.size_px - character.size_px) < 0.1f &&
          std::abs(space.upright ? space.pen.x - character.pen.x : space.pen.y - character.pen.y) < 0.1f;
      const float gap =
          (space.upright ? space.pen.y - character.pen.y : character.pen.x - space.pen.x) - space.advance_px;
      if (!same_line || gap < -0.5f * space.size_px || gap > 0.6f * space.size_px) {
        end_text();
      } else if (gap > 0.1f * space.size_px) {  // nothing is drawn for a space
        (space.upright ? space.pen.y : space.pen.x) += space.upright ? -space.advance_px : space.advance_px;
        space.code_point = ' ';
        text_.push_back(space);
      }
    }
    text_.push_back(character);
  }

  void begin_part(const ImVec4& clip) {
    end();
    const std::string x = number(clip.x), y = number(clip.y), wide = number(clip.z - clip.x);
    const std::string high = number(clip.w - clip.y);
    out_ << "<svg x=\"" << x << "\" y=\"" << y << "\" width=\"" << wide << "\" height=\"" << high << "\" viewBox=\""
         << x << " " << y << " " << wide << " " << high << "\">\n";
  }
  void end_part() {
    end();
    out_ << "</svg>\n";
  }
  std::string text() const { return out_.str(); }

 private:
  void end() {
    end_path();
    end_text();
  }
  void end_path() {
    if (!path_.empty()) out_ << "<path " << paint(colour_) << " d=\"" << path_ << "\"/>\n";
    path_.clear();
  }
  void end_text() {
    if (text_.empty()) return;
    const PlacedCharacter& first = text_.front();
    out_ << "<text " << paint(first.colour) << " font-size=\"" << number(first.size_px / kLineOfEm) << "\" ";
    if (first.upright)
      out_ << "transform=\"translate(" << number(first.pen.x) << " " << number(first.pen.y)
           << ") rotate(-90)\" y=\"0\" x=\"";
    else
      out_ << "y=\"" << number(first.pen.y) << "\" x=\"";
    for (std::size_t i = 0; i < text_.size(); ++i)
      out_ << (i == 0 ? "" : " ") << number(first.upright ? first.pen.y - text_[i].pen.y : text_[i].pen.x);
    out_ << "\">";
    for (const PlacedCharacter& character : text_) out_ << escaped(character.code_point);
    out_ << "</text>\n";
    text_.clear();
  }

  std::ostringstream out_;
  std::string path_;
  ImU32 colour_ = 0;
  std::vector<PlacedCharacter> text_;
};

void add(SvgWriter& out, const ImDrawList& list, const ImDrawCmd& command) {
  const auto vertex = [&](unsigned place) {
    return list
        .VtxBuffer[static_cast<int>(command.VtxOffset + list.IdxBuffer[static_cast<int>(command.IdxOffset + place)])];
  };
  const auto index = [&](unsigned place) { return list.IdxBuffer[static_cast<int>(command.IdxOffset + place)]; };
  const ImVec2 white = ImGui::GetFontTexUvWhitePixel();
  const auto is_white = [&](const ImDrawVert& v) { return v.uv.x == white.x && v.uv.y == white.y; };
  for (unsigned i = 0; i + 3 <= command.ElemCount;) {
    const bool is_quad = i + 6 <= command.ElemCount && index(i) == index(i + 3) && index(i + 2) == index(i + 4);
    if (!is_quad) {
      const std::array corners{vertex(i), vertex(i + 1), vertex(i + 2)};
      if (is_white(corners[0])) out.add(corners);
      i += 3;
      continue;
    }
    const std::array corners{vertex(i), vertex(i + 1), vertex(i + 2), vertex(i + 5)};
    if (is_white(corners[0]))
      out.add(corners);
    else if (const auto character = character_of(corners))
      out.add(*character);
    i += 6;
  }
}

}  // namespace

void set_hard_edges(bool hard) {
  ImGuiStyle& style = ImGui::GetStyle();
  style.AntiAliasedLines = style.AntiAliasedLinesUseTex = style.AntiAliasedFill = !hard;
}

std::string svg_of(const ImDrawData& drawn, const std::string& window) {
  const ImGuiWindow* const found = ImGui::FindWindowByName(window.c_str());
  if (found == nullptr) return {};
  const ImRect all = found->Rect();
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << number(all.GetWidth()) << "\" height=\""
      << number(all.GetHeight()) << "\" viewBox=\"" << number(all.Min.x) << " " << number(all.Min.y) << " "
      << number(all.GetWidth()) << " " << number(all.GetHeight())
      << "\" font-family=\"Roboto, sans-serif\">\n<rect x=\"" << number(all.Min.x) << "\" y=\"" << number(all.Min.y)
      << "\" width=\"100%\" height=\"100%\" " << paint(ImGui::GetColorU32(ImGuiCol_WindowBg) | IM_COL32_A_MASK)
      << "/>\n";
  SvgWriter writer;
  for (const ImDrawList* const list : drawn.CmdLists) {
    const std::string owner = list->_OwnerName != nullptr ? list->_OwnerName : "";
    if (owner != window && !owner.starts_with(window + "/")) continue;
    for (const ImDrawCmd& command : list->CmdBuffer) {
      if (command.UserCallback != nullptr || command.ElemCount == 0) continue;
      writer.begin_part(command.ClipRect);
      add(writer, *list, command);
      writer.end_part();
    }
  }
  out << writer.text() << "</svg>\n";
  return out.str();
}

}  // namespace draftproof
