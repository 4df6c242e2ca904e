#include "cli/shared/model_path.hpp"

#include <filesystem>
#include <system_error>

#include "reference/error.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

// Programs of verbs are build/PRESET/verbs/NAME.
fs::path shipped_model() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  return program.parent_path().parent_path().parent_path() / "models" / "SmolLM2-135M-Instruct.gguf";
}

}  // namespace

bool has_shipped_model() {
  std::error_code ignored;
  return fs::exists(shipped_model(), ignored);
}

std::string model_path(const std::string& name) {
  if (name != kShippedModel) return name;
  if (!has_shipped_model())
    throw input_error(name, "the model is not in " + shipped_model().parent_path().string() +
                                "; './draftproof fetch smollm2' downloads it (93 MB)");
  return shipped_model().string();
}

void add_no_download(Options& options, bool& no_download) {
  options.flag("--no-download", no_download, "Never download the model smollm2");
}

}  // namespace draftproof
