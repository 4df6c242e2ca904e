// The commit that the program was built from: a file beside it, share/draftproof/commit, which every build renews
// (cmake/draftproof_commit.cmake).
#pragma once

#include <fstream>
#include <string>

#include "base/files/own_files.hpp"

namespace draftproof {

// "f3e2a1b4c5d6", with "-dirty" where the sources were changed since; "unknown" without the file.
inline std::string build_commit() {
  std::ifstream file(own_file("commit"));
  std::string commit;
  return std::getline(file, commit) && !commit.empty() ? commit : "unknown";
}

// "draftproof 0.1.0 (f3e2a1b4c5d6)", as tables and figures state it.
inline std::string program_and_commit() {
  std::string text = "draftproof " DRAFTPROOF_VERSION " (";
  text += build_commit();
  text += ')';
  return text;
}

}  // namespace draftproof
