// Frames that nobody sees: for tests, replays and the measurement of frames. Needs no display.
#pragma once

namespace draftproof {

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
