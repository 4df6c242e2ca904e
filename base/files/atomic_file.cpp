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

namespace fs = std::filesystem;

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  // Two files that do not exist yet are compared by the names that they will have.
  std::error_code failure_a;
  std::error_code failure_b;
  const fs::path canonical_a = fs::weakly_canonical(a, failure_a);
  const fs::path canonical_b = fs::weakly_canonical(b, failure_b);
  return !failure_a && !failure_b && canonical_a == canonical_b;
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

void require_no_overwriting(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (output.path.empty()) continue;
    const auto refuse_where_same = [&](const NamedFile& other, const char* role) {
      if (!other.path.empty() && is_same_file(output.path, other.path))
        throw usage_error(output.option, "'" + output.path + "' is " + role + " " + other.option +
                                             "; expected the name of another file");
    };
    for (const NamedFile& input : inputs) refuse_where_same(input, "the same file as the input");
    for (std::size_t j = 0; j < i; ++j) refuse_where_same(outputs[j], "the same file as the output");
  }
}

void require_writable(const std::vector<NamedFile>& outputs) {
  for (const NamedFile& output : outputs) {
    if (output.path.empty()) continue;
    const AtomicFile made_and_removed(output.path);
  }
}

}  // namespace draftproof
