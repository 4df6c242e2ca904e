// The panel of kernels with times of `bench` beside it.
#pragma once

#include "tests/support/test.hpp"
#include "viz/panels/kernels.hpp"

namespace draftproof::testing {

// `results`: the document's, JSON one after the other.
inline KernelsSettings kernels_with_times(const TemporaryFolder& folder, const std::string& results) {
  KernelsSettings settings;
  settings.filter = "tree_mask/no_nodes";
  settings.bench = folder.file("times.json");
  write_whole_file(settings.bench, R"({"command": "draftproof bench", "gpu": {"name": "a GPU"},
      "copy_bandwidth_bytes_per_s": 4e12, "results": [)" +
                                       results + "]}");
  return settings;
}

}  // namespace draftproof::testing
