#include "viz/panels/lesson_choice.hpp"

#include <algorithm>

namespace draftproof {

std::optional<std::string> draw_lesson_choice(Controls& controls, const std::vector<std::string>& names,
                                              const std::string& current, const std::string& watch) {
  std::vector<std::string> items = names;
  if (std::ranges::find(items, current) == items.end()) items.push_back(current);
  std::string chosen = current;
  const bool has_chosen =
      controls.choice("lesson", chosen, items, "Settings that each show one thing; choosing one computes it.");
  if (!watch.empty()) {
    ImGui::SameLine();
    ImGui::PushTextWrapPos(0.0f);
    ImGui::TextUnformatted(("Watch: " + watch).c_str());
    ImGui::PopTextWrapPos();
  }
  return has_chosen ? std::optional(chosen) : std::nullopt;
}

}  // namespace draftproof
