// The shipped model, SmolLM2-135M-Instruct, where it has been fetched (./draftproof fetch smollm2).
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/support/this_build.hpp"

namespace draftproof::testing {

// Its file; where it is not there, nothing, and the test says that it is skipped.
inline std::optional<std::string> shipped_model_path() {
  const std::string path = DRAFTPROOF_SOURCE_DIR "/build/models/SmolLM2-135M-Instruct.gguf";
  if (std::filesystem::exists(path)) return path;
  WARN("SKIPPED: the shipped model is not here; ./draftproof fetch smollm2 downloads it");
  return std::nullopt;
}

// The same for tests of many tokens or of time. Under sanitizers, which make them take minutes, they are skipped too:
// shorter ones run the same code there.
inline std::optional<std::string> shipped_model_at_full_speed() {
  if (!kSanitized) return shipped_model_path();
  WARN("SKIPPED: under sanitizers shorter tests run this code");
  return std::nullopt;
}

}  // namespace draftproof::testing
