#include "base/files/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/files/descriptor.hpp"
#include "base/files/inputs_read.hpp"
#include "base/files/signal_cleanup.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

// Before the run: a file is not renamed over a folder.
std::vector<std::string> names_of_files(const fs::path& target, std::vector<std::string> names) {
  std::error_code error;
  for (const std::string& name : names)
    if (fs::is_directory(target / name, error))
      throw input_error((target / name).string(), "is a folder, where a file is to be written; expected another --out");
  return names;
}

Error cannot_be_created(const std::string& path, const std::error_code& error) {
  return input_error(path, "the output folder cannot be created" + (error ? ": " + error.message() : std::string()) +
                               "; expected a folder or a name for one");
}

// Which of the folders above `target` are missing, the deepest first.
std::vector<fs::path> missing_parents(const fs::path& target) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path folder = target.parent_path(); folder.has_relative_path() && !fs::exists(folder, error);
       folder = folder.parent_path())
    missing.push_back(folder);
  return missing;
}

fs::path resolved_target(const std::string& path) {
  std::error_code error;
  // A relative path of which nothing exists would stay relative. A final slash would make the folder look like its
  // parent.
  fs::path target = fs::absolute(path, error);
  if (!error) target = fs::weakly_canonical(target, error);
  if (!error && !target.has_filename()) target = target.parent_path();
  if (error) throw cannot_be_created(path, error);
  const fs::file_status status = fs::status(target, error);
  if (fs::exists(status) && !fs::is_directory(status))
    throw cannot_be_created(path, std::make_error_code(std::errc::not_a_directory));
  return target;
}

std::vector<fs::path> create_parents(const fs::path& target, const std::string& path) {
  std::vector<fs::path> missing = missing_parents(target);
  std::error_code error;
  if (target.has_relative_path()) fs::create_directories(target.parent_path(), error);
  if (error) throw cannot_be_created(path, error);
  return missing;
}

bool is_mount_or_root(const fs::path& folder) {
  struct stat own {};
  struct stat parent {};
  return ::stat(folder.c_str(), &own) != 0 || ::stat((folder / "..").c_str(), &parent) != 0 ||
         own.st_dev != parent.st_dev || own.st_ino == parent.st_ino;
}

bool is_above_current_folder(const fs::path& folder) {
  std::error_code error;
  const fs::path current = fs::current_path(error);
  return error || std::mismatch(folder.begin(), folder.end(), current.begin(), current.end()).first == folder.end();
}

// Whether `folder` may be exchanged as a whole: it is ours, and holds nothing but files of these names.
bool is_replaceable(const fs::path& folder, const std::vector<std::string>& names) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  if (is_mount_or_root(folder) || is_above_current_folder(folder)) return false;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const bool is_plain_file = fs::is_regular_file(entry->symlink_status());
    if (!is_plain_file || std::find(names.begin(), names.end(), entry->path().filename()) == names.end()) return false;
  }
  return !error;
}

// Beside the target where it can be renamed into its place; inside it where only its files can.
fs::path staging_parent(const fs::path& target, const std::vector<std::string>& names) {
  if (!fs::exists(target)) return target.parent_path();
  remove_ownerless_temporaries(target);
  const fs::path parent = target.parent_path();
  const bool beside = is_replaceable(target, names) && ::access(parent.c_str(), W_OK | X_OK) == 0;
  return beside ? parent : target;
}

}  // namespace

RunFolder::RunFolder(std::string path, std::vector<std::string> names)
    : path_(std::move(path)),
      target_(resolved_target(path_)),
      parents_{create_parents(target_, path_)},
      names_(names_of_files(target_, std::move(names))),
      staging_(Temporary::Kind::folder, staging_parent(target_, names_), path_) {}

RunFolder::NewParents::~NewParents() {
  std::error_code not_empty;
  for (const fs::path& folder : folders) fs::remove(folder, not_empty);
}

std::string RunFolder::with_final_paths(std::string text) const {
  for (std::size_t at = 0; (at = text.find(staging_.path(), at)) != std::string::npos; at += path_.size())
    text.replace(at, staging_.path().size(), path_);
  return text;
}

void RunFolder::commit() {
  for (const std::string& name : names_of_files(target_, names_)) require_not_read((target_ / name).string());
  const SignalsHeld held;
  // Renaming over a folder that has come to hold something since fails, and then it is treated as one that was there.
  if (!fs::exists(target_) && std::rename(staging_.path().c_str(), target_.c_str()) == 0) return staging_.release();
  if (!exchange()) rename_each();
  staging_.remove();
}

bool RunFolder::exchange() {
  if (fs::path(staging_.path()).parent_path() == target_ || !is_replaceable(target_, names_)) return false;
  struct stat status {};
  if (::stat(target_.c_str(), &status) != 0 || ::chmod(staging_.path().c_str(), status.st_mode & 07777U) != 0)
    return false;
  // After this the former run lies under the temporary name, and goes away with it.
  return ::renameat2(AT_FDCWD, staging_.path().c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0;
}

void RunFolder::rename_each() {
  if (!fs::exists(staging_.path())) throw input_error(path_, "the output folder was removed during the run");
  const Descriptor folder(::open(target_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.is_open()) ::flock(folder.value(), LOCK_EX);
  for (const std::string& name : names_) {
    const fs::path final_name = target_ / name;
    if (std::rename(staged(name).c_str(), final_name.c_str()) == 0) continue;
    if (errno != ENOENT)
      throw input_error(final_path(name), "cannot be replaced: " + std::generic_category().message(errno));
    std::error_code ignored;
    if (fs::is_regular_file(fs::symlink_status(final_name, ignored))) fs::remove(final_name, ignored);
  }
}

}  // namespace draftproof
