// Pictures as PNG files (libpng).
#pragma once

#include <string>

#include "viz/app/window.hpp"

namespace draftproof {

// Complete or not at all. Input error naming the path when it cannot be written.
void write_png(const std::string& path, const Picture& picture);
// Input error naming the path.
Picture read_png(const std::string& path);

// Same size, and hardly a block of 16 x 16 pixels has another mean colour: a driver may smooth edges otherwise, and a
// measured time be other digits, but a curve, a text or an axis may not stand elsewhere.
bool look_alike(const Picture& a, const Picture& b);

}  // namespace draftproof
