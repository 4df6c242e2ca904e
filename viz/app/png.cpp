#include "viz/app/png.hpp"

#include <png.h>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"

namespace draftproof {

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

}  // namespace draftproof
