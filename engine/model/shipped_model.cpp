#include "engine/model/shipped_model.hpp"

#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/files/own_files.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

fs::path shipped_model() {
  return own_file("models/SmolLM2-135M-Instruct.gguf");
}

}  // namespace

bool has_shipped_model() {
  std::error_code ignored;
  return fs::exists(shipped_model(), ignored);
}

std::string model_path(const std::string& name) {
  if (name != kShippedModel) return name;
  if (!has_shipped_model())
    throw input_error(name, shipped_model().filename().string() + " is not in " +
                                shipped_model().parent_path().string() +
                                "; put it there (in a clone './draftproof fetch smollm2' does, 93 MB), or name a "
                                "model's file");
  return shipped_model().string();
}

}  // namespace draftproof
