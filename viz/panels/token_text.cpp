#include "viz/panels/token_text.hpp"

#include <algorithm>

#include "viz/panels/colours.hpp"

namespace draftproof {
namespace {

constexpr float kTint = 0.42f;

float width_of(const std::string& text) {
  return ImGui::CalcTextSize(text.data(), text.data() + text.size()).x;
}

// Bytes of the longest beginning that is no wider, at least one character.
std::size_t fitting(const std::string& text, float width_px) {
  std::size_t fits = 0;
  for (std::size_t end = 1; end <= text.size(); ++end) {
    if (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) continue;  // within a character
    if (fits > 0 && width_of(text.substr(0, end)) > width_px) break;
    fits = end;
  }
  return fits;
}

}  // namespace

std::string fitted(const std::string& text, float width_px) {
  constexpr const char* kEllipsis = "..";
  if (width_of(text) <= width_px) return text;
  return text.substr(0, fitting(text, width_px - width_of(kEllipsis))) + kEllipsis;
}

const PaletteColour* origin_colour(TokenOrigin origin) {
  switch (origin) {
    case TokenOrigin::accepted:
      return &palette::kAccepted;
    case TokenOrigin::recovered:
      return &palette::kRecovered;
    case TokenOrigin::bonus:
      return &palette::kBonus;
    case TokenOrigin::sampled:
      break;
  }
  return nullptr;
}

// A word goes to the next line where it does not fit; one longer than a line is broken.
void TokenText::end_word(float width_px) {
  const auto break_line = [&](float width) {
    if (cursor_.x > 0.0f && cursor_.x + width > width_px)
      cursor_ = {0.0f, cursor_.y + ImGui::GetTextLineHeight() * 1.2f};
  };
  float width = 0.0f;
  for (const Run& run : word_) width += run.width;
  break_line(width);
  for (Run& run : word_) {
    if (width > width_px) break_line(run.width);
    run.position = cursor_;
    cursor_.x += run.width;
    runs_.push_back(std::move(run));
  }
  word_.clear();
}

void TokenText::add(const std::string& text, std::int32_t step, TokenOrigin origin, float width_px) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n\t", begin), text.size() - 1) + 1;
    std::string part = text.substr(begin, end - begin);
    begin = end;
    const char last = part.back();
    if (last == '\n' || last == '\t') part.back() = ' ';
    while (width_of(part) > width_px) {
      const std::string piece = part.substr(0, fitting(part, width_px));
      if (piece.size() == part.size()) break;
      word_.push_back({{}, width_of(piece), step, origin, piece});
      part.erase(0, piece.size());
    }
    const float width = width_of(part);
    word_.push_back({{}, width, step, origin, std::move(part)});
    if (last == ' ' || last == '\n' || last == '\t') end_word(width_px);
    if (last == '\n') cursor_ = {0.0f, cursor_.y + ImGui::GetTextLineHeight() * 1.2f};
  }
}

void TokenText::lay_out(const std::string& lead, const SpeculateLane& lane, float width_px) {
  last_step_ = lane.steps.empty() ? nullptr : lane.steps.back();
  lead_ = lead;
  width_px_ = width_px;
  font_size_ = ImGui::GetFontSize();
  runs_.clear();
  cursor_ = {0.0f, 0.0f};
  add(lead, -1, TokenOrigin::sampled, width_px);
  for (const TextPiece& piece : lane.text) add(piece.text, piece.step, piece.origin, width_px);
  end_word(width_px);
}

std::optional<std::int32_t> TokenText::draw(const std::string& lead, const SpeculateLane& lane, std::size_t steps) {
  const float width_px = ImGui::GetContentRegionAvail().x;
  const bool is_same_lane = lane.steps.empty() ? last_step_ == nullptr : last_step_ == lane.steps.back();
  if (!is_same_lane || lead_ != lead || width_px_ != width_px || font_size_ != ImGui::GetFontSize())
    lay_out(lead, lane, width_px);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const ImVec2 mouse = ImGui::GetMousePos();
  const bool is_over = ImGui::IsWindowHovered();
  const float line = ImGui::GetTextLineHeight();
  std::optional<std::int32_t> hovered;
  float height = 0.0f;
  for (const Run& run : runs_) {
    if (run.step >= static_cast<std::int32_t>(steps)) break;
    height = run.position.y + line;
    const ImVec2 min{origin.x + run.position.x, origin.y + run.position.y};
    const ImVec2 max{min.x + run.width, min.y + line};
    if (!ImGui::IsRectVisible(min, max)) continue;
    if (run.step >= 0) {
      if (const PaletteColour* const colour = origin_colour(run.origin))
        list.AddRectFilled(min, max, to_u32(*colour, kTint));
      if (is_over && mouse.x >= min.x && mouse.x < max.x && mouse.y >= min.y && mouse.y < max.y) hovered = run.step;
    }
    const ImU32 ink = ImGui::GetColorU32(run.step < 0 ? ImGuiCol_TextDisabled : ImGuiCol_Text);
    list.AddText(min, ink, run.text.data(), run.text.data() + run.text.size());
  }
  ImGui::Dummy({1.0f, height});
  if (height > shown_height_) ImGui::SetScrollHereY(1.0f);  // what is new is seen
  shown_height_ = height;
  return hovered;
}

}  // namespace draftproof
