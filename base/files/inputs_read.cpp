#include "base/files/inputs_read.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "base/archives/sha256.hpp"
#include "base/error.hpp"

namespace draftproof {
namespace {

struct RecordedInput {
  struct stat status;
  std::string sha256;
};

struct InputsRead {
  std::mutex mutex;
  bool protect = false;
  bool record = false;
  std::set<std::pair<dev_t, ino_t>> files;
  std::map<std::string, RecordedInput> recorded;
};

InputsRead& inputs_read() {
  static InputsRead inputs;
  return inputs;
}

thread_local ContentsRead* innermost = nullptr;

bool is_to_be_recorded(const std::string& path) {
  const std::lock_guard lock(inputs_read().mutex);
  return inputs_read().record && !inputs_read().recorded.contains(path);
}

void record(const std::string& path, const struct stat& status, const std::string& sha256) {
  const std::lock_guard lock(inputs_read().mutex);
  if (inputs_read().record) inputs_read().recorded.insert({path, RecordedInput{status, sha256}});
}

bool same_version_of(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

ContentsRead::ContentsRead(const ContentsRead* before) : before_(before), outer_(std::exchange(innermost, this)) {}

ContentsRead::~ContentsRead() {
  end();
}

void ContentsRead::end() {
  if (!std::exchange(ended_, true)) innermost = outer_;
}

const ContentsRead::File* ContentsRead::find(std::string_view path) const {
  const auto found = std::ranges::find(files_, path, &File::path);
  if (found != files_.end()) return &*found;
  return before_ == nullptr ? nullptr : before_->find(path);
}

std::string ContentsRead::sha256(const std::string& but_below) const {
  Sha256 all;
  bool any = false;
  for (const File& file : files_) {
    if (!but_below.empty() && file.path.starts_with(but_below + "/")) continue;
    all.update(file.sha256);
    any = true;
  }
  return any ? all.hex_digest() : "";
}

void note_contents(const std::string& path, const struct stat& status, std::span<const std::byte> bytes) {
  const ContentsRead::File* const known = innermost == nullptr ? nullptr : innermost->find(path);
  const bool is_noted = innermost == nullptr || (known != nullptr && same_version_of(known->status, status));
  if (is_noted && !is_to_be_recorded(path)) return;
  std::string digest = sha256_hex(bytes);
  record(path, status, digest);
  if (is_noted) return;
  if (known == nullptr) {
    innermost->files_.push_back({path, status, std::move(digest)});
  } else if (known->sha256 != digest) {
    throw input_error(path, "has changed since this command first read it; expected a file that nobody is writing");
  }
}

void record_inputs() {
  const std::lock_guard lock(inputs_read().mutex);
  inputs_read().record = true;
}

std::map<std::string, std::string> inputs_recorded() {
  const std::lock_guard lock(inputs_read().mutex);
  std::map<std::string, std::string> inputs;
  for (const auto& [path, input] : inputs_read().recorded) inputs.emplace(path, input.sha256);
  return inputs;
}

void protect_inputs() {
  const std::lock_guard lock(inputs_read().mutex);
  inputs_read().protect = true;
}

void note_input(const struct stat& status) {
  const std::lock_guard lock(inputs_read().mutex);
  if (inputs_read().protect) inputs_read().files.emplace(status.st_dev, status.st_ino);
}

void allow_replacing(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  const std::lock_guard lock(inputs_read().mutex);
  inputs_read().files.erase({status.st_dev, status.st_ino});
  std::erase_if(inputs_read().recorded, [&](const auto& named) {
    return named.second.status.st_dev == status.st_dev && named.second.status.st_ino == status.st_ino;
  });
}

void require_not_read(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  const std::lock_guard lock(inputs_read().mutex);
  if (inputs_read().files.contains({status.st_dev, status.st_ino}))
    throw input_error(path, "is an input of this command; expected the name of another file to write");
}

}  // namespace draftproof
