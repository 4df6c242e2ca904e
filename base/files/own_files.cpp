#include "base/files/own_files.hpp"

#include <system_error>

namespace draftproof {

namespace fs = std::filesystem;

const fs::path& program_prefix() {
  static const fs::path prefix = [] {
    constexpr int kFoldersMax = 4;  // lib/draftproof/verbs, and the prefix above them
    std::error_code ignored;
    const fs::path own = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    fs::path folder = own;
    for (int i = 0; i < kFoldersMax; ++i, folder = folder.parent_path())
      if (fs::is_directory(folder / "share" / "draftproof", ignored)) return folder;
    return own;
  }();
  return prefix;
}

std::string own_program() {
  for (const fs::path& path : {program_prefix() / "bin" / "draftproof", program_prefix() / "draftproof"})
    if (fs::exists(path)) return path.string();
  return fs::read_symlink("/proc/self/exe").string();
}

std::string own_file(const std::string& name) {
  const fs::path path = program_prefix() / "share" / "draftproof" / name;
  std::error_code failed;
  const fs::path resolved = fs::weakly_canonical(path, failed);
  return (failed || resolved.empty() ? path : resolved).string();  // mounts of a page have no canonical names
}

}  // namespace draftproof
