// Part of the program for a bare GPU machine without Boost's headers (CMakeLists.txt): compares bits alone.
#include "base/error.hpp"
#include "cli/regress/library_statistics.hpp"

namespace draftproof {

regress::LibraryJudge statistical_judge(const StatisticsOptions&) {
  throw usage_error("--within",
                    "this build has no statistics, for which the folder of headers needs boost/; expected bits");
}

}  // namespace draftproof
