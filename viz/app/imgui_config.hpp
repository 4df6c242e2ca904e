// Dear ImGui's settings at compile time (IMGUI_USER_CONFIG): its assertions are exceptions, so that a test sees them
// and the dashboard ends with a message and not with a core file.
#pragma once

namespace draftproof {
// Throws Error (internal).
[[noreturn]] void imgui_assertion_failed(const char* expression, const char* file, int line);
}  // namespace draftproof

#define IM_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::draftproof::imgui_assertion_failed(#expression, __FILE__, __LINE__))
#define IMGUI_DISABLE_DEMO_WINDOWS
#define IMGUI_DISABLE_DEBUG_TOOLS
