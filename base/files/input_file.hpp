// A whole file, read once into memory of our own.
//
// Why not a mapping: a mapped file that another process shortens ends the reader with SIGBUS, and one that is rewritten
// changes under it, so that a digest taken later may be of other bytes than those that were used. Here the bytes are
// private: what is verified is what is hashed. The price is a copy and memory of the file's size, which a mapping only
// borrows. On 1 GiB in the page cache it is 280 ms with huge pages (850 to 1100 ms without) where touching a mapping
// takes 170 ms; SHA-256 of the same bytes takes 810 ms, and may now run beside the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

class InputFile {
 public:
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  // Input error naming the path when it is missing, unreadable, not a regular file (a folder, a device, a pipe), longer
  // than `limit_bytes` or than this machine's memory, or when another process changes it while it is read.
  explicit InputFile(const std::string& path, std::uint64_t limit_bytes = kNoLimit);
  // Bytes made from a file's, read as if they were the file.
  explicit InputFile(std::vector<std::byte> made);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }  // the first one is aligned to a page
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::vector<std::byte> made_;
  std::span<const std::byte> bytes_;  // mapped where nothing was made
};

// As the constructor of InputFile refuses it, without reading: input error naming the path. Returns the size in bytes.
std::uint64_t require_regular_file(const std::string& path, std::uint64_t limit_bytes = InputFile::kNoLimit);

// "1500 bytes", from 10 KiB on with the size in a readable unit: "1073741824 bytes (1 GiB)".
std::string bytes_text(std::uint64_t bytes);

}  // namespace draftproof
