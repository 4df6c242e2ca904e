#include "viz/app/vector_picture.hpp"

#include <imgui_internal.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <sstream>
#include <vector>

#include "viz/app/drawn_shapes.hpp"

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

// Neighbours of one colour are one path, or one text whose characters each have a place.
class SvgWriter {
 public:
  void add(std::span<const ImDrawVert> corners) {
    const ImU32 colour = corners[0].col;
    const ImVec2 white = ImGui::GetFontTexUvWhitePixel();
    const bool is_plain = corners[0].uv.x == white.x && corners[0].uv.y == white.y;
    if (!is_plain || colour >> IM_COL32_A_SHIFT == 0) return;
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
      for_each_shape(
          *list, command, [&](std::span<const ImDrawVert> corners) { writer.add(corners); },
          [&](const PlacedCharacter& character) { writer.add(character); });
      writer.end_part();
    }
  }
  out << writer.text() << "</svg>\n";
  return out.str();
}

}  // namespace draftproof
