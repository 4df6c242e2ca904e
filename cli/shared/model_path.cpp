#include "cli/shared/model_path.hpp"

namespace draftproof {

void add_no_download(Options& options, bool& no_download) {
  options.flag("--no-download", no_download, "Never download the model smollm2");
}

}  // namespace draftproof
