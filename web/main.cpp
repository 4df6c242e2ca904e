// The dashboard in a page: a canvas with WebGL 2, a frame when the browser asks for one. In a Web Worker, where there
// is no canvas, the same program has the panels' computations alone (studies/page_worker.hpp).
#define GLFW_INCLUDE_ES3
#include <GLFW/glfw3.h>
#include <emscripten.h>
#include <emscripten/html5.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>

#include "viz/app/dashboard.hpp"
#include "viz/app/ui_context.hpp"
#include "viz/panels/all_panels.hpp"

// clang-format off
EM_JS(void, draftproof_copy, (const char* text), { Module.draftproof.copy(UTF8ToString(text)); });
EM_JS(void, draftproof_save, (const char* name, const char* contents), {
  Module.draftproof.save(UTF8ToString(name), UTF8ToString(contents));
});
EM_JS(void, draftproof_frame_done, (double build_ms), { Module.draftproof.frameDone(build_ms); });
EM_JS(bool, draftproof_is_second, (), { return typeof importScripts === 'function'; });
EM_JS(void, draftproof_load_model, (), { Module.draftproof.loadModel(); });
EM_JS(void, draftproof_failed, (const char* text), { Module.draftproof.fail(UTF8ToString(text)); });
// clang-format on

namespace draftproof {
namespace {

constexpr const char* kAbout =
    "Exactness and Kernels are not here: they take proofs, hunts and an executor of kernels with them; ./draftproof "
    "dash has them. 'SmolLM2' loads the language model for Speculate, Heads and the tree explorer: 98 MB, from beside "
    "this page or from your own file. Each panel computes in a Web Worker, in one thread and with vectors of 128 bits, "
    "several times slower than the program; the numbers are the same to the last bit. The address of this page holds "
    "what the controls show.";

struct Page {
  std::unique_ptr<UiContext> context;
  std::vector<std::unique_ptr<Panel>> panels;  // of a second instance
  DashboardOptions options;
  std::unique_ptr<Dashboard> dashboard;
  GLFWwindow* window = nullptr;
};
Page the_page;

void copy(ImGuiContext*, const char* text) {
  draftproof_copy(text);
}

// The canvas has the size of the page, in pixels of the screen.
void fit_canvas() {
  double width = 0, height = 0;
  emscripten_get_element_css_size("#canvas", &width, &height);
  int had_width = 0, had_height = 0;
  glfwGetWindowSize(the_page.window, &had_width, &had_height);
  const double density = emscripten_get_device_pixel_ratio();
  const int width_px = std::max(1, static_cast<int>(width * density));
  const int height_px = std::max(1, static_cast<int>(height * density));
  if (width_px != had_width || height_px != had_height) glfwSetWindowSize(the_page.window, width_px, height_px);
}

void draw() {
  fit_canvas();
  glfwPollEvents();
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  const double begin_ms = emscripten_get_now();
  ImGui::NewFrame();
  the_page.dashboard->draw();
  ImGui::Render();
  the_page.dashboard->take_picture(*ImGui::GetDrawData());
  const double build_ms = emscripten_get_now() - begin_ms;
  int width_px = 0, height_px = 0;
  glfwGetFramebufferSize(the_page.window, &width_px, &height_px);
  glViewport(0, 0, width_px, height_px);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  draftproof_frame_done(build_ms);
}

void draw_or_fail() {
  try {
    draw();
  } catch (const std::exception& error) {
    emscripten_cancel_main_loop();
    draftproof_failed(error.what());
  }
}

void open_window(bool dark, float scale, const std::string& only_panel) {
  glfwInit();
  glfwWindowHint(GLFW_CLIENT_API, GLFW_OPENGL_ES_API);
  the_page.window = glfwCreateWindow(800, 600, "draftproof", nullptr, nullptr);
  glfwMakeContextCurrent(the_page.window);
  DashboardOptions& options = the_page.options;
  options.ui = {scale, dark};
  options.only_panel = only_panel;
  options.about = kAbout;
  options.save = [](const std::string& name, const std::string& contents) {
    draftproof_save(name.c_str(), contents.c_str());
  };
  options.actions = {{"SmolLM2", "Loads the language model, 98 MB: from beside this page, or from your own file.",
                      [] { draftproof_load_model(); }}};
  the_page.context = std::make_unique<UiContext>(options.ui);
  ImGui::GetIO().IniFilename = nullptr;
  ImGui_ImplGlfw_InitForOpenGL(the_page.window, true);
  ImGui_ImplOpenGL3_Init("#version 300 es");
  ImGui::GetPlatformIO().Platform_SetClipboardTextFn = copy;
  the_page.dashboard = std::make_unique<Dashboard>(all_panels(), options);
  emscripten_set_main_loop(draw_or_fail, 0, false);
}

// Lives until the next call.
const char* kept(std::string text) {
  static std::string last;
  last = std::move(text);
  return last.c_str();
}

}  // namespace
}  // namespace draftproof

// Called by web/page.js and the tests.
extern "C" {

// A negative result: what is wrong was reported.
EMSCRIPTEN_KEEPALIVE int draftproof_begin(int dark, float scale, const char* only_panel) {
  try {
    draftproof::open_window(dark != 0, scale, only_panel);
    return 0;
  } catch (const std::exception& error) {
    draftproof_failed(error.what());
    return -1;
  }
}
EMSCRIPTEN_KEEPALIVE const char* draftproof_address() {
  return draftproof::kept(draftproof::the_page.dashboard->address());
}
EMSCRIPTEN_KEEPALIVE void draftproof_go_to(const char* address) {
  draftproof::the_page.dashboard->go_to(address);
}
EMSCRIPTEN_KEEPALIVE void draftproof_open(const char* path) {
  draftproof::the_page.dashboard->open(path);
}
// After files of the language model came: panels that ask for it have it.
EMSCRIPTEN_KEEPALIVE void draftproof_begin_again() {
  using namespace draftproof;
  const std::string address = the_page.dashboard->address();
  the_page.options.ui = the_page.dashboard->ui();
  the_page.dashboard.reset();
  the_page.dashboard = std::make_unique<Dashboard>(all_panels(), the_page.options);
  the_page.dashboard->go_to(address);
}
EMSCRIPTEN_KEEPALIVE void draftproof_tell(const char* text) {
  draftproof::the_page.dashboard->tell(text);
}
EMSCRIPTEN_KEEPALIVE void draftproof_paste(const char* text) {
  ImGui::GetIO().AddInputCharactersUTF8(text);
}
// Does a text field have the keyboard?
EMSCRIPTEN_KEEPALIVE int draftproof_wants_text() {
  return ImGui::GetIO().WantTextInput ? 1 : 0;
}
EMSCRIPTEN_KEEPALIVE const char* draftproof_snapshot(const char* panel) {
  return draftproof::kept(draftproof::the_page.dashboard->panel(panel).snapshot().dump());
}
EMSCRIPTEN_KEEPALIVE const char* draftproof_command(const char* panel) {
  return draftproof::kept(draftproof::shell_command(draftproof::the_page.dashboard->panel(panel).command()));
}
// "busy", "idle", or "error: ..." of a panel.
EMSCRIPTEN_KEEPALIVE const char* draftproof_state(const char* panel) {
  const draftproof::WorkerState state = draftproof::the_page.dashboard->panel(panel).state();
  return draftproof::kept(!state.error.empty() ? "error: " + state.error : state.busy ? "busy" : "idle");
}
// Where the controls stand: {"panel/label": [x, y, x, y], ...} in pixels of the canvas.
EMSCRIPTEN_KEEPALIVE const char* draftproof_controls() {
  nlohmann::json rects = nlohmann::json::object();
  for (const auto& [name, rect] : draftproof::the_page.dashboard->controls().all())
    rects[name] = {rect.min.x, rect.min.y, rect.max.x, rect.max.y};
  return draftproof::kept(rects.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}
}

int main() {
  if (draftproof_is_second()) draftproof::the_page.panels = draftproof::all_panels();
  return 0;
}
