// Recording of a person's actions in the dashboard, frame by frame, to be done again: the mouse, keys, text and opened
// files. A replay waits for all panels after each frame, so that it ends with the snapshots that the person saw once
// all had settled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace draftproof {

struct RecordedEvent {
  enum class Kind : std::uint8_t { mouse_position, mouse_button, mouse_wheel, key, text, open };
  Kind kind;
  double x = 0, y = 0;    // position or wheel, in pixels or notches
  std::int64_t code = 0;  // the button, the key of Dear ImGui, or the character
  bool down = false;
  std::string path;  // that is opened
};

struct RecordedFrame {
  double delta_s = 0;  // since the frame before
  std::vector<RecordedEvent> events;
};

struct Recording {
  int width_px = 0, height_px = 0;
  double scale = 1;
  std::string only_panel;
  std::vector<RecordedFrame> frames;
};

// JSON lines: a header, then a frame a line; complete or not at all. Input error naming the path.
void write_recording(const std::string& path, const Recording& recording);
// Input error naming file and line where it is not a recording.
Recording read_recording(const std::string& path);

// The events that Dear ImGui took over in the frame that has just begun.
std::vector<RecordedEvent> events_of_frame();
// Before a frame begins: the events come in again. Opened files are the caller's.
void repeat_events(const RecordedFrame& frame);

}  // namespace draftproof
