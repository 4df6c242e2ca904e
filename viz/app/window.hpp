// A window of GLFW with OpenGL 3, shown or hidden.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct GLFWwindow;

namespace draftproof {

struct Picture {
  int width_px = 0, height_px = 0;
  std::vector<std::uint8_t> rgb;  // [height, width, 3], from the top
};

class Window {
 public:
  enum class Visibility : std::uint8_t { shown, hidden };

  // Input error where there is no display, or none with OpenGL 3.
  Window(int width_px, int height_px, Visibility visibility);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Called with files that are dropped on the window.
  void on_drop(std::function<void(const std::string&)> open) { open_ = std::move(open); }
  const std::function<void(const std::string&)>& drop() const { return open_; }

  bool is_closing() const;
  // Handles mouse and keys, then begins a frame of Dear ImGui.
  void begin_frame();
  // Draws the frame; waits for the display where the window is shown.
  void end_frame();
  // The last picture drawn into a hidden window.
  Picture picture() const;
  // Scale of the display: 2 on one with twice the usual density.
  float display_scale() const;

 private:
  GLFWwindow* window_ = nullptr;
  Visibility visibility_;
  std::function<void(const std::string&)> open_;
};

}  // namespace draftproof
