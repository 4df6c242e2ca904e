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

// Frames that nobody sees: for tests, replays and the measurement of frames. Needs no display.

class NullSurface {
 public:
  NullSurface(int width_px, int height_px);
  ~NullSurface();
  NullSurface(const NullSurface&) = delete;
  NullSurface& operator=(const NullSurface&) = delete;

  // Begins a frame of Dear ImGui, 1/60 s after the one before.
  void begin_frame();
  // Ends it, up to the lists of what would be drawn.
  void end_frame();

 private:
  float width_px_, height_px_;
};

}  // namespace draftproof
