#include "base/files/temporary.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/error.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = ".draftproof-";
constexpr std::string_view kSuffix = ".tmp";

std::string temporary_name() {
  static std::atomic<unsigned> made{0};
  return std::string(kPrefix) + std::to_string(::getpid()) + "-" + std::to_string(made++) + std::string(kSuffix);
}

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() < kPrefix.size() + kSuffix.size())
    return false;
  name = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  return std::count(name.begin(), name.end(), '-') == 1 && name.front() != '-' && name.back() != '-' &&
         name.find_first_not_of("0123456789-") == name.npos;
}

// Opens it without following a link, and takes its lock; not open where that fails.
Descriptor locked(const std::string& path, int operation) {
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!descriptor.is_open() || ::flock(descriptor.value(), operation) != 0) return {};
  return descriptor;
}

// Whether the name still belongs to what was opened: between open() and flock() another process may have removed it.
bool is_at(const Descriptor& descriptor, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor.value(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// True when `path` was made; false when the name is taken.
bool make(Temporary::Kind kind, const std::string& path, const std::string& where) {
  // 0666 and 0777 with the process's umask, as for anything that a program creates; O_EXCL never opens another's file.
  const int result = kind == Temporary::Kind::folder
                         ? ::mkdir(path.c_str(), 0777)
                         : ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (result >= 0) {
    if (kind == Temporary::Kind::file) ::close(result);
    return true;
  }
  if (errno == EEXIST) return false;
  const int reason = errno;
  throw input_error(where, "cannot be written: " + std::generic_category().message(reason) +
                               "; its folder must exist and be writable");
}

}  // namespace

Temporary::Temporary(Kind kind, const fs::path& folder, const std::string& where) {
  remove_ownerless_temporaries(folder);
  for (;;) {
    path_ = (folder / temporary_name()).string();
    cleanup_ = std::make_unique<SignalCleanup>(path_);  // before there is anything that a signal could leave
    if (!make(kind, path_, where)) continue;
    // Another run that is cleaning up may have taken the lock first: it removes this one, and a new one is made. Where
    // the file system has no locks, nothing is ever found to be without an owner.
    lock_ = locked(path_, LOCK_EX);
    if (lock_.is_open() ? is_at(lock_, path_) : fs::exists(path_)) return;
  }
}

void Temporary::release() {
  released_ = true;
  cleanup_.reset();
}

void Temporary::remove() {
  if (released_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  release();
}

int remove_ownerless_temporaries(const fs::path& folder) {
  int removed = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    struct stat status {};
    if (!is_temporary_name(entry->path().filename().string()) || ::lstat(path.c_str(), &status) != 0) continue;
    if (status.st_uid != ::geteuid() || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) continue;
    const Descriptor lock = locked(path, LOCK_EX | LOCK_NB);
    std::error_code failure;
    if (lock.is_open() && is_at(lock, path) && fs::remove_all(path, failure) > 0 && !failure) ++removed;
  }
  return removed;
}

}  // namespace draftproof
