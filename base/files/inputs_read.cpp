#include "base/files/inputs_read.hpp"

#include <mutex>
#include <set>
#include <utility>

#include "base/error.hpp"

namespace draftproof {
namespace {

struct InputsRead {
  std::mutex mutex;
  bool protect = false;
  std::set<std::pair<dev_t, ino_t>> files;
};

InputsRead& inputs_read() {
  static InputsRead inputs;
  return inputs;
}

}  // namespace

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
}

void require_not_read(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  const std::lock_guard lock(inputs_read().mutex);
  if (inputs_read().files.contains({status.st_dev, status.st_ino}))
    throw input_error(path, "is an input of this command; expected the name of another file to write");
}

}  // namespace draftproof
