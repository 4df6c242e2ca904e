// Dear ImGui and ImPlot with our fonts and theme, without a window.
#pragma once

namespace draftproof {

struct UiOptions {
  float scale = 1;  // 2: everything twice as large
  bool dark = true;
};

// One at a time. Reads and writes no settings of its own: every start looks alike.
class UiContext {
 public:
  explicit UiContext(UiOptions options = {});
  ~UiContext();
  UiContext(const UiContext&) = delete;
  UiContext& operator=(const UiContext&) = delete;
};

// Colours of a theme, and sizes for a scale; may be called between frames.
void set_theme(const UiOptions& options);

}  // namespace draftproof
