#include "viz/app/png_picture.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"

namespace draftproof {
namespace {

constexpr int kBlock_px = 16;

// Mean colour of a block, the last ones smaller.
std::array<int, 3> mean_of(const Picture& picture, int left, int top) {
  std::array<long, 3> sum{};
  const int right = std::min(left + kBlock_px, picture.width_px);
  const int bottom = std::min(top + kBlock_px, picture.height_px);
  for (int y = top; y < bottom; ++y)
    for (int x = left; x < right; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        sum[c] += picture.rgb[3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width_px) +
                                   static_cast<std::size_t>(x)) +
                              c];
  const long count = static_cast<long>(right - left) * (bottom - top);
  return {static_cast<int>(sum[0] / count), static_cast<int>(sum[1] / count), static_cast<int>(sum[2] / count)};
}

}  // namespace

void write_png(const std::string& path, const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width_px);
  image.height = static_cast<png_uint_32>(picture.height_px);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  if (png_image_write_to_memory(&image, nullptr, &size, 0, picture.rgb.data(), 0, nullptr) == 0)
    throw Error(ErrorKind::internal, path, image.message);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.rgb.data(), 0, nullptr) == 0)
    throw Error(ErrorKind::internal, path, image.message);
  bytes.resize(size);
  AtomicFile file(path);
  file.stream() << bytes;
  file.commit();
}

Picture read_png(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0)
    throw input_error(path, std::string("is no picture that can be read: ") + image.message);
  image.format = PNG_FORMAT_RGB;
  Picture picture{static_cast<int>(image.width), static_cast<int>(image.height), {}};
  picture.rgb.resize(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, picture.rgb.data(), 0, nullptr) == 0)
    throw input_error(path, std::string("is no picture that can be read: ") + image.message);
  return picture;
}

bool look_alike(const Picture& a, const Picture& b) {
  constexpr int kSeen = 20;               // of 255
  constexpr double kDifferentMax = 2e-3;  // share of the blocks
  if (a.width_px != b.width_px || a.height_px != b.height_px) return false;
  int blocks = 0, different = 0;
  for (int top = 0; top < a.height_px; top += kBlock_px)
    for (int left = 0; left < a.width_px; left += kBlock_px) {
      const auto x = mean_of(a, left, top), y = mean_of(b, left, top);
      ++blocks;
      different += std::max({std::abs(x[0] - y[0]), std::abs(x[1] - y[1]), std::abs(x[2] - y[2])}) > kSeen ? 1 : 0;
    }
  return different <= kDifferentMax * blocks;
}

}  // namespace draftproof
