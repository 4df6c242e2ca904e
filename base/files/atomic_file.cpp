#include "base/files/atomic_file.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/files/inputs_read.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

// Follows a symbolic link, so that the rename replaces the file it points to and leaves the link.
std::string resolve_target(const std::string& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  const bool is_link = fs::is_symlink(fs::symlink_status(path, ignored));
  if (!fs::exists(status)) {
    if (is_link) throw input_error(path, "is a symbolic link that leads nowhere; expected the name of a file to write");
    return path;
  }
  if (!fs::is_regular_file(status))
    throw input_error(path, "exists and is not a regular file, so it cannot be replaced; name a file to write");
  require_not_read(path);
  if (!is_link) return path;
  std::error_code failure;
  const auto resolved = fs::canonical(path, failure);
  if (failure) throw input_error(path, "is a symbolic link that cannot be followed: " + failure.message());
  return resolved.string();
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path)
    : path_(resolve_target(path)),
      temporary_(Temporary::Kind::file, fs::path(path_).parent_path(), path_),
      stream_(temporary_.path(), std::ios::binary) {}

void AtomicFile::commit() {
  if (committed_) return;
  stream_.close();  // Flushes; a failure here or at any earlier write is kept in the stream's state.
  if (!stream_) throw input_error(path_, "writing failed; the disk may be full");
  require_not_read(path_);
  if (std::rename(temporary_.path().c_str(), path_.c_str()) != 0)
    throw input_error(path_, "cannot be replaced: " + std::generic_category().message(errno));
  temporary_.release();
  committed_ = true;
}

}  // namespace draftproof
