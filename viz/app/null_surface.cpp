#include "viz/app/null_surface.hpp"

#include <imgui.h>
#include <imgui_impl_null.h>

namespace draftproof {

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
