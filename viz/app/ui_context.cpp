#include "viz/app/ui_context.hpp"

#include <imgui.h>
#include <imgui_impl_null.h>
#include <implot.h>
#include <string>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "viz/app/imgui_config.hpp"
#include "viz/panels/colours.hpp"

namespace draftproof {
namespace {

constexpr float kFontSize_px = 16;

void add_fonts() {
  ImGuiIO& io = ImGui::GetIO();
  ImFontConfig config;
  config.OversampleH = 2;
  const std::string font = own_file("fonts/Roboto-Regular.ttf");
  if (io.Fonts->AddFontFromFileTTF(font.c_str(), kFontSize_px, &config) == nullptr)
    throw input_error(font, "is no font that can be read; ./draftproof dash fetches it");
}

}  // namespace

void imgui_assertion_failed(const char* expression, const char* file, int line) {
  throw Error(ErrorKind::internal, std::string(file) + ":" + std::to_string(line),
              std::string("Dear ImGui expects ") + expression);
}

void set_theme(const UiOptions& options) {
  ImGuiStyle& style = ImGui::GetStyle();
  style = ImGuiStyle();
  options.dark ? ImGui::StyleColorsDark() : ImGui::StyleColorsLight();
  options.dark ? ImPlot::StyleColorsDark() : ImPlot::StyleColorsLight();
  // Grey texts that are still read from the last row: Dear ImGui's own have a contrast of 2.5 on light.
  const float grey = options.dark ? 0.62f : 0.40f;
  style.Colors[ImGuiCol_TextDisabled] = {grey, grey, grey, 1.0f};
  style.FontSizeBase = kFontSize_px;
  style.FrameRounding = 3;
  style.WindowRounding = 0;
  style.TabRounding = 3;
  style.ScaleAllSizes(options.scale);
  style.FontScaleMain = options.scale;
  ImPlotStyle& plot = ImPlot::GetStyle();
  plot = ImPlotStyle();
  options.dark ? ImPlot::StyleColorsDark() : ImPlot::StyleColorsLight();
  plot.UseLocalTime = false;
  plot.PlotPadding.x = 1.5f * kFontSize_px * options.scale;  // half of the last tick's number stands beyond the plot
  plot.PlotDefaultSize = {24 * kFontSize_px * options.scale, 16 * kFontSize_px * options.scale};
}

UiContext::UiContext(UiOptions options) {
  ImGui::CreateContext();
  ImPlot::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard | ImGuiConfigFlags_DockingEnable;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  add_fonts();
  set_theme(options);
}

UiContext::~UiContext() {
  ImPlot::DestroyContext();
  ImGui::DestroyContext();
}

NullSurface::NullSurface(int width_px, int height_px)
    : width_px_(static_cast<float>(width_px)), height_px_(static_cast<float>(height_px)) {
  ImGui_ImplNull_Init();
}

NullSurface::~NullSurface() {
  for (ImTextureData* const texture : ImGui::GetPlatformIO().Textures)
    if (texture->RefCount == 1) texture->SetStatus(ImTextureStatus_Destroyed);
  ImGui_ImplNull_Shutdown();
}

void NullSurface::begin_frame() {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {width_px_, height_px_};
  io.DeltaTime = 1.0f / 60.0f;
  ImGui::NewFrame();
}

void NullSurface::end_frame() {
  ImGui::Render();
  ImGui_ImplNullRender_RenderDrawData(ImGui::GetDrawData());
}

}  // namespace draftproof
