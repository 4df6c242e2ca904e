#include "reference/io/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "reference/error.hpp"

namespace draftproof {
namespace {

// Follows a symbolic link, so that the rename replaces the file it points to and leaves the link.
std::string resolve_target(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) return path;
  if (!std::filesystem::is_regular_file(status)) {
    throw input_error(path, "exists and is not a regular file, so it cannot be replaced; name a file to write");
  }
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, ignored))) return path;
  std::error_code failure;
  const auto resolved = std::filesystem::canonical(path, failure);
  if (failure) throw input_error(path, "is a symbolic link that cannot be followed: " + failure.message());
  return resolved.string();
}

// Creates an empty file beside `path` under a name that nothing else has.
std::string create_beside(const std::string& path) {
  for (unsigned attempt = 0;; ++attempt) {
    const std::string name = path + "." + std::to_string(::getpid()) + "." + std::to_string(attempt) + ".tmp";
    // 0666 and the process's umask, as for any file that a program creates; O_EXCL never opens another's file.
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      ::close(descriptor);
      return name;
    }
    if (errno == EEXIST) continue;
    const int reason = errno;
    throw input_error(path, "cannot be written: " + std::generic_category().message(reason) +
                                "; its folder must exist and be writable");
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path)
    : path_(resolve_target(path)), temporary_path_(create_beside(path_)), stream_(temporary_path_, std::ios::binary) {}

AtomicFile::~AtomicFile() {
  if (!committed_) std::remove(temporary_path_.c_str());
}

void AtomicFile::commit() {
  if (committed_) return;
  stream_.close();  // Flushes; a failure here or at any earlier write is kept in the stream's state.
  if (!stream_) throw input_error(path_, "writing failed; the disk may be full");
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    throw input_error(path_, "cannot be replaced: " + std::generic_category().message(errno));
  }
  committed_ = true;
}

}  // namespace draftproof
