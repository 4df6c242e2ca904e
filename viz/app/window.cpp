#include "viz/app/window.hpp"

#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#define GLFW_INCLUDE_NONE
#include <GL/gl.h>
#include <GLFW/glfw3.h>

#include <algorithm>

#include "base/error.hpp"

namespace draftproof {
namespace {

Error window_error() {
  const char* description = nullptr;
  glfwGetError(&description);
  return input_error("display", std::string("no window can be opened: ") +
                                    (description == nullptr ? "no reason is known" : description) +
                                    "; set DISPLAY, or use --screenshot through the launcher, which starts Xvfb");
}

void opened_by_drop(GLFWwindow* window, int count, const char** paths) {
  const auto* const self = static_cast<const Window*>(glfwGetWindowUserPointer(window));
  for (int i = 0; i < count && self->drop(); ++i) self->drop()(paths[i]);
}

}  // namespace

Window::Window(int width_px, int height_px, Visibility visibility) : visibility_(visibility) {
  if (glfwInit() != GLFW_TRUE) throw window_error();
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 0);
  glfwWindowHint(GLFW_VISIBLE, visibility == Visibility::shown ? GLFW_TRUE : GLFW_FALSE);
  window_ = glfwCreateWindow(width_px, height_px, "draftproof", nullptr, nullptr);
  if (window_ == nullptr) {
    const Error error = window_error();
    glfwTerminate();
    throw error;
  }
  glfwMakeContextCurrent(window_);
  glfwSwapInterval(visibility == Visibility::shown ? 1 : 0);
  glfwSetWindowUserPointer(window_, this);
  glfwSetDropCallback(window_, opened_by_drop);
  ImGui_ImplGlfw_InitForOpenGL(window_, true);
  ImGui_ImplOpenGL3_Init("#version 130");
}

Window::~Window() {
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  glfwDestroyWindow(window_);
  glfwTerminate();
}

bool Window::is_closing() const {
  return glfwWindowShouldClose(window_) == GLFW_TRUE;
}

void Window::begin_frame() {
  glfwPollEvents();
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
}

void Window::end_frame() {
  ImGui::Render();
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  glViewport(0, 0, width, height);
  const ImVec4 background = ImGui::GetStyleColorVec4(ImGuiCol_WindowBg);
  glClearColor(background.x, background.y, background.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  if (visibility_ == Visibility::shown) glfwSwapBuffers(window_);
}

Picture Window::picture() const {
  Picture picture;
  glfwGetFramebufferSize(window_, &picture.width_px, &picture.height_px);
  const auto row = static_cast<std::size_t>(picture.width_px) * 3;
  std::vector<std::uint8_t> from_below(row * static_cast<std::size_t>(picture.height_px));
  glReadBuffer(GL_BACK);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, picture.width_px, picture.height_px, GL_RGB, GL_UNSIGNED_BYTE, from_below.data());
  picture.rgb.resize(from_below.size());
  for (std::size_t y = 0; y < static_cast<std::size_t>(picture.height_px); ++y) {
    const auto from = from_below.end() - static_cast<std::ptrdiff_t>((y + 1) * row);
    std::copy(from, from + static_cast<std::ptrdiff_t>(row),
              picture.rgb.begin() + static_cast<std::ptrdiff_t>(y * row));
  }
  return picture;
}

float Window::display_scale() const {
  float x = 1, y = 1;
  glfwGetWindowContentScale(window_, &x, &y);
  return std::max(1.0f, x);
}

}  // namespace draftproof
