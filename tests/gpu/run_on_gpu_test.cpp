// gpu/run_on_gpu.sh says what is wrong with its options before it builds anything.
#include "tests/support/test.hpp"

namespace {

const std::string kScript = DRAFTPROOF_SOURCE_DIR "/gpu/run_on_gpu.sh";

}  // namespace

TEST_CASE("run_on_gpu.sh without a folder of headers, or with an unknown option, is one line and exit code 2") {
  const auto without = run_command({kScript});
  CHECK(without.exit_code == 2);
  CHECK_THAT(without.err, Contains("--headers FOLDER is needed"));
  const auto unknown = run_command({kScript, "--no-such-option"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, Contains("--no-such-option"));
}
