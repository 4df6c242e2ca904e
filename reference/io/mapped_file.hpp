// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace draftproof {

class MappedFile {
 public:
  // Input error naming the path when it is missing, unreadable or not a regular file. An empty file maps to no bytes.
  // The mapping keeps the file's size at this moment: a file that another process shortens afterwards faults when it is
  // read (ours never are, AtomicFile replaces them whole).
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace draftproof
