// The line above every panel's controls: which lesson is shown, and what to watch for in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "viz/panels/controls.hpp"

namespace draftproof {

inline constexpr const char* kOwnSettings = "own settings";

// `current`: a lesson's name, or kOwnSettings. The name of the lesson that was chosen in this frame.
std::optional<std::string> draw_lesson_choice(Controls& controls, const std::vector<std::string>& names,
                                              const std::string& current, const std::string& watch);

}  // namespace draftproof
