// A picture as a PNG file (libpng).
#pragma once

#include <string>

#include "viz/app/window.hpp"

namespace draftproof {

// Complete or not at all. Input error naming the path when it cannot be written.
void write_png(const std::string& path, const Picture& picture);

}  // namespace draftproof
