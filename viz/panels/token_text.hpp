// A generated text with a tint behind every token that says how it came about.
#pragma once

#include <imgui.h>

#include <optional>
#include <string>
#include <vector>

#include "studies/palette.hpp"
#include "studies/speculate/speculate.hpp"

namespace draftproof {

// As much of a text as fits into a width, with two points in place of the rest.
std::string fitted(const std::string& text, float width_px);

// Plain decoding's tokens have none.
const PaletteColour* origin_colour(TokenOrigin origin);

class TokenText {
 public:
  // `lead`, then the text of the lane's first `steps` steps, wrapped to the window's width. Returns the step whose text
  // the mouse is over.
  std::optional<std::int32_t> draw(const std::string& lead, const SpeculateLane& lane, std::size_t steps);

 private:
  struct Run {  // of one piece on one line
    ImVec2 position;
    float width;
    std::int32_t step;  // negative: of the lead
    TokenOrigin origin;
    std::string text;
  };
  void lay_out(const std::string& lead, const SpeculateLane& lane, float width_px);
  void add(const std::string& text, std::int32_t step, TokenOrigin origin, float width_px);
  void end_word(float width_px);

  // The step that runs_ were made of. While it is held no other has its address.
  std::shared_ptr<const SpeculateStep> last_step_;
  std::string lead_;
  float width_px_ = 0.0f;
  float font_size_ = 0.0f;
  std::vector<Run> runs_;
  std::vector<Run> word_;  // the one being put together; positions are set when it ends
  ImVec2 cursor_{0.0f, 0.0f};
  float shown_height_ = 0.0f;
};

}  // namespace draftproof
