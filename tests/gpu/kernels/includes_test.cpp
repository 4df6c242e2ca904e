// A floor sees no header of a floor above it: the build holds that. What it cannot see is that the text of kernels,
// which nvcc compiles for a bare GPU machine, uses the host/device leaves of the reference alone.
#include <regex>

#include "tests/support/test.hpp"

namespace fs = std::filesystem;

namespace {

bool may_be_included_by_kernels(const std::string& include) {
  return include.starts_with("gpu/") || include.starts_with("reference/numerics/") ||
         include.starts_with("reference/random/") || include == "reference/verify/convention.hpp" ||
         include == "base/dtype.hpp" || include == "base/error.hpp" || include == "base/token.hpp" ||
         include == "base/host_device.hpp";
}

}  // namespace

TEST_CASE("kernels and operations include the host/device leaves alone") {
  int includes = 0;
  for (const char* folder : {"kernels", "operations"})
    for (const auto& entry : fs::directory_iterator(fs::path(DRAFTPROOF_SOURCE_DIR) / "gpu" / folder)) {
      const std::string source = read_whole_file(entry.path());
      const std::regex include("#include \"([^\"]+)\"");
      for (auto at = std::sregex_iterator(source.begin(), source.end(), include); at != std::sregex_iterator(); ++at) {
        INFO(entry.path().filename().string() << " includes " << (*at)[1]);
        CHECK(may_be_included_by_kernels((*at)[1]));
        ++includes;
      }
    }
  CHECK(includes > 80);
  CHECK_FALSE(may_be_included_by_kernels("reference/step/request.hpp"));
  CHECK_FALSE(may_be_included_by_kernels("reference/verify/chain.hpp"));
}
