#include "base/files/input_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/files/descriptor.hpp"
#include "base/files/inputs_read.hpp"
#include "base/words.hpp"

namespace draftproof {
namespace {

Error system_failure(const std::string& path, const std::string& what, int error_number) {
  return input_error(path, what + ": " + std::generic_category().message(error_number));
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

struct OpenFile {
  Descriptor descriptor;
  struct stat status {};
  std::uint64_t size_bytes() const { return static_cast<std::uint64_t>(status.st_size); }
};

OpenFile open_regular(const std::string& path, std::uint64_t limit_bytes) {
  // O_NONBLOCK: a named pipe must not hang here before it is found not to be a regular file.
  OpenFile file{Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)), {}};
  if (!file.descriptor.is_open()) throw system_failure(path, "cannot be opened", errno);
  if (::fstat(file.descriptor.value(), &file.status) != 0) throw system_failure(path, "cannot be examined", errno);
  if (!S_ISREG(file.status.st_mode))
    throw input_error(path, std::string("is ") + kind_of(file.status.st_mode) + "; expected a regular file");
  if (file.size_bytes() > limit_bytes)
    throw input_error(path, "has " + bytes_text(file.size_bytes()) + "; expected at most " + bytes_text(limit_bytes));
  return file;
}

std::uint64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return InputFile::kNoLimit;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

bool same_version(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

void read_all(const OpenFile& file, const std::string& path, std::byte* out) {
  const std::uint64_t size = file.size_bytes();
  // Linux reads at most 2 GiB at once, and a piece of the size of the cache is read no slower.
  constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 23;
  for (std::uint64_t done = 0; done < size;) {
    const auto piece = static_cast<std::size_t>(std::min(kPieceBytes, size - done));
    const ssize_t count = ::pread(file.descriptor.value(), out + done, piece, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_failure(path, "cannot be read", errno);
    if (count == 0)
      throw input_error(path, "was shortened while it was read, from " + bytes_text(size) + " to " + bytes_text(done) +
                                  "; expected a file that nobody is writing");
    done += static_cast<std::uint64_t>(count);
  }
  struct stat now {};
  if (::fstat(file.descriptor.value(), &now) == 0 && !same_version(now, file.status))
    throw input_error(path, "was changed while it was read; expected a file that nobody is writing");
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 7> kUnits = {"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  std::uint64_t whole = bytes;
  for (; whole >= 10240 || (whole >= 1024 && whole % 1024 == 0); whole /= 1024) ++unit;
  const std::string text = counted_noun(bytes, "byte");
  return unit == 0 ? text : text + " (" + std::to_string(whole) + " " + kUnits.at(unit) + ")";
}

std::uint64_t require_regular_file(const std::string& path, std::uint64_t limit_bytes) {
  return open_regular(path, limit_bytes).size_bytes();
}

InputFile::InputFile(const std::string& path, std::uint64_t limit_bytes) {
  const OpenFile file = open_regular(path, limit_bytes);
  note_input(file.status);
  const std::uint64_t size_bytes = file.size_bytes();
  if (size_bytes == 0) {  // mmap refuses a length of 0
    note_contents(path, file.status, {});
    return;
  }
  if (size_bytes > memory_bytes())
    throw input_error(path, "has " + bytes_text(size_bytes) + " and this machine a memory of " +
                                bytes_text(memory_bytes()) + "; expected a file that fits into it");
  void* const address = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw system_failure(path, "there is no memory for its " + bytes_text(size_bytes), errno);
  bytes_ = {static_cast<const std::byte*>(address), static_cast<std::size_t>(size_bytes)};
  // Advice: a failure changes nothing but speed.
  ::madvise(address, size_bytes, MADV_HUGEPAGE);
  try {
    read_all(file, path, static_cast<std::byte*>(address));
    note_contents(path, file.status, bytes_);
  } catch (...) {
    ::munmap(address, size_bytes);  // a constructor that throws has no destructor
    throw;
  }
  ::mprotect(address, size_bytes, PROT_READ);
}

InputFile::InputFile(std::vector<std::byte> made) : made_(std::move(made)), bytes_(made_) {}

InputFile::~InputFile() {
  if (!bytes_.empty() && made_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace draftproof
