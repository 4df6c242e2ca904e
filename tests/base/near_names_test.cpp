#include "base/near_names.hpp"

#include "tests/support/test.hpp"

namespace {

TEST_CASE("a name with a slip or the beginning of a name finds the name that was meant, and others find nothing") {
  const std::vector<std::string> known{"-k",       "--num-speculative-tokens", "--cfg-scale", "--seed", "--json",
                                       "verifiers"};
  CHECK(nearest_name("--sed", known) == "--seed");
  CHECK(nearest_name("--JSON", known) == "--json");
  CHECK(nearest_name("--k", known) == "-k");
  CHECK(nearest_name("verif", known) == "verifiers");
  CHECK(nearest_name("--", known).empty());
  CHECK(nearest_name("", known).empty());
  CHECK(nearest_name("--no-such-thing", known).empty());
  CHECK(did_you_mean("--sead", known) == "; did you mean '--seed'?");
  CHECK(did_you_mean("zzz", known).empty());
}

}  // namespace
