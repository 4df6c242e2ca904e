// The shipped model, SmolLM2-135M-Instruct, where it has been fetched (./draftproof fetch smollm2).
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>

namespace draftproof::testing {

// Its file; where it is not there, nothing, and the test says that it is skipped.
inline std::optional<std::string> shipped_model_path() {
  const std::string path = DRAFTPROOF_SOURCE_DIR "/build/models/SmolLM2-135M-Instruct.gguf";
  if (std::filesystem::exists(path)) return path;
  WARN("SKIPPED: the shipped model is not here; ./draftproof fetch smollm2 downloads it");
  return std::nullopt;
}

}  // namespace draftproof::testing
