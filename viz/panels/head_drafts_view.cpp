#include "viz/panels/head_drafts_view.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "viz/panels/colours.hpp"
#include "viz/panels/series.hpp"
#include "viz/panels/token_text.hpp"

namespace draftproof {
namespace {

// In multiples of the font's size.
constexpr float kCellWidth = 5.2f;
constexpr float kRowHeight = 2.5f;
constexpr float kSlotWidth = 13.0f;
constexpr float kTextWidth = 6.0f;  // of a candidate's token
constexpr float kCellTint = 0.45f;

const PaletteColour& colour_of(const HeadSlot& slot) {
  return slot.accepted ? palette::kAccepted : slot.reached ? palette::kRecovered : palette::kRejected;
}

const char* outcome_of(const HeadSlot& slot) {
  return slot.accepted ? "accepted" : slot.reached ? "rejected" : "not reached";
}

bool has_bonus(const HeadStep& step) {
  return step.num_accepted == step.slots.size();
}

void explain_slot(const HeadStep& step, std::size_t index) {
  if (!ImGui::BeginTooltip()) return;
  if (index < step.slots.size()) {
    const HeadSlot& slot = step.slots[index];
    ImGui::Text("slot %zu: \"%s\", %s", index + 1, slot.draft.text.c_str(), outcome_of(slot));
    ImGui::Text("q = %.4f, confidence %.4f", static_cast<double>(slot.draft.probability),
                static_cast<double>(slot.confidence));
    if (slot.reached && !slot.accepted) ImGui::Text("the target's token: \"%s\"", slot.emitted->text.c_str());
  } else {
    ImGui::Text("\"%s\": the bonus token behind a draft accepted whole", step.next.text.c_str());
  }
  ImGui::EndTooltip();
}

}  // namespace

std::optional<std::int64_t> draw_head_drafts(Controls& controls, const HeadsPrompt& prompt, std::int64_t shown,
                                             bool scrolls) {
  const float em = ImGui::GetFontSize();
  const ImVec2 cell{kCellWidth * em, kRowHeight * em};
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImU32 text_colour = ImGui::GetColorU32(ImGuiCol_Text);
  const ImU32 faint = ImGui::GetColorU32(ImGuiCol_TextDisabled);
  std::int64_t columns = 0;
  for (const HeadStep& step : prompt.steps)
    columns = std::max(columns, step.output_len + std::ssize(step.slots) + (has_bonus(step) ? 1 : 0));
  std::optional<std::int64_t> clicked;
  const auto row_of = [&](std::size_t i) { return origin.y + static_cast<float>(i) * cell.y; };
  for (std::size_t i = 0; i < prompt.steps.size(); ++i) {
    const HeadStep& step = prompt.steps[i];
    const auto number = static_cast<std::int64_t>(i) + 1;
    const std::size_t count = step.slots.size() + (has_bonus(step) ? 1 : 0);
    const ImVec2 begin{origin.x + static_cast<float>(step.output_len) * cell.x, row_of(i)};
    const ImVec2 end{begin.x + static_cast<float>(count) * cell.x, begin.y + cell.y - 0.2f * em};
    if (number == shown && scrolls) {
      ImGui::SetScrollFromPosX(begin.x - ImGui::GetWindowPos().x, 0.25f);
      ImGui::SetScrollFromPosY(begin.y - ImGui::GetWindowPos().y, 0.5f);
    }
    if (!ImGui::IsRectVisible(begin, end)) continue;
    controls.mark("draft " + std::to_string(number), {begin, end});
    for (std::size_t j = 0; j < count; ++j) {
      const bool is_bonus = j == step.slots.size();
      const ImVec2 from{begin.x + static_cast<float>(j) * cell.x, begin.y};
      const ImVec2 to{from.x + cell.x - 0.15f * em, end.y};
      const PaletteColour& colour = is_bonus ? palette::kBonus : colour_of(step.slots[j]);
      list.AddRectFilled(from, to, to_u32(colour, kCellTint), 0.2f * em);
      const bool replaced = !is_bonus && step.slots[j].reached && !step.slots[j].accepted;
      const std::string& text = is_bonus ? step.next.text : step.slots[j].draft.text;
      list.AddText({from.x + 0.2f * em, from.y}, is_bonus || step.slots[j].reached ? text_colour : faint,
                   fitted(text, cell.x - 0.5f * em).c_str());
      if (replaced)
        list.AddText({from.x + 0.2f * em, from.y + 1.1f * em}, text_colour,
                     fitted("> " + step.slots[j].emitted->text, cell.x - 0.5f * em).c_str());
      if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(from, to)) {
        explain_slot(step, j);
        if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) clicked = number;
      }
    }
    if (number == shown) list.AddRect(begin, end, text_colour, 0.2f * em, 0, 0.12f * em);
  }
  ImGui::Dummy({static_cast<float>(columns) * cell.x, static_cast<float>(prompt.steps.size()) * cell.y});
  return clicked;
}

void draw_head_step(const HeadStep& step) {
  const float em = ImGui::GetFontSize();
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_ScrollX | ImGuiTableFlags_SizingFixedFit;
  const auto columns = static_cast<int>(step.slots.size()) + 1;
  if (!ImGui::BeginTable("slots", columns, kFlags)) return;
  for (std::size_t i = 0; i < step.slots.size(); ++i)
    ImGui::TableSetupColumn(("slot " + std::to_string(i + 1)).c_str(), ImGuiTableColumnFlags_WidthFixed,
                            kSlotWidth * em);
  ImGui::TableSetupColumn(has_bonus(step) ? "bonus" : "recovered", ImGuiTableColumnFlags_WidthFixed, kTextWidth * em);
  ImGui::TableHeadersRow();
  ImGui::TableNextRow();
  for (const HeadSlot& slot : step.slots) {
    ImGui::TableNextColumn();
    ImGui::TextColored(text_colour_of(colour_of(slot)), "%s", slot.draft.text.c_str());
    ImGui::SameLine();
    ImGui::TextDisabled("%s", outcome_of(slot));
    ImGui::TextDisabled("confidence %.3f", static_cast<double>(slot.confidence));
    for (const HeadCandidate& candidate : slot.candidates) {
      const bool drafted = candidate.token == slot.draft.token;
      char share[16];
      std::snprintf(share, sizeof share, "%.3f", static_cast<double>(candidate.probability));
      ImDrawList& list = *ImGui::GetWindowDrawList();
      const ImVec2 at = ImGui::GetCursorScreenPos();
      list.AddText(at, ImGui::GetColorU32(drafted ? ImGuiCol_Text : ImGuiCol_TextDisabled),
                   fitted(candidate.text, (kTextWidth - 0.4f) * em).c_str());
      const float left = at.x + kTextWidth * em;
      const float width = (kSlotWidth - kTextWidth - 0.5f) * em;
      fill_share("candidates", {left, at.y}, {width, 1.05f * em}, candidate.probability,
                 to_u32(drafted ? colour_of(slot) : palette::kGrey, 0.6f));
      list.AddText({left + 0.3f * em, at.y}, ImGui::GetColorU32(ImGuiCol_Text), share);
      ImGui::Dummy({kSlotWidth * em, 1.2f * em});
    }
  }
  ImGui::TableNextColumn();
  ImGui::TextColored(text_colour_of(has_bonus(step) ? palette::kBonus : palette::kRecovered), "%s",
                     step.next.text.c_str());
  ImGui::EndTable();
}

}  // namespace draftproof
