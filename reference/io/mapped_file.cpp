#include "reference/io/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "reference/error.hpp"

namespace draftproof {
namespace {

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

Error system_failure(const std::string& path, const std::string& what, int error_number) {
  return input_error(path, what + ": " + std::generic_category().message(error_number));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // O_NONBLOCK: a named pipe must not hang here before it is found not to be a regular file.
  const Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (descriptor.value < 0) throw system_failure(path, "cannot be opened", errno);
  struct stat status {};
  if (::fstat(descriptor.value, &status) != 0) throw system_failure(path, "cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) throw input_error(path, "is not a regular file; a file on a disk would be right");
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (size_bytes == 0) return;  // mmap refuses a length of 0
  void* const address = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, descriptor.value, 0);
  if (address == MAP_FAILED) throw system_failure(path, "cannot be mapped into memory", errno);
  // Rows are read once, in order. It is advice: a failure changes nothing but speed.
  ::madvise(address, size_bytes, MADV_SEQUENTIAL);
  bytes_ = {static_cast<const std::byte*>(address), size_bytes};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace draftproof
