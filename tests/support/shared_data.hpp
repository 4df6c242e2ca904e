// Published measurements that tests compare with where they are: files of ../shared/data beside the source folder, or
// of the folder that DRAFTPROOF_DATA names.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace draftproof::testing {

// The file; where it is not there, nothing, and the test says that it is skipped.
inline std::optional<std::string> shared_data(const std::string& name) {
  const char* const folder = std::getenv("DRAFTPROOF_DATA");
  const auto path = std::filesystem::path(folder != nullptr ? folder : DRAFTPROOF_SOURCE_DIR "/../shared/data") / name;
  if (std::filesystem::exists(path)) return path.string();
  WARN("SKIPPED: no " << name << " in ../shared/data, or where DRAFTPROOF_DATA says");
  return std::nullopt;
}

}  // namespace draftproof::testing
