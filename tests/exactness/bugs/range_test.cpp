#include "exactness/bugs/engine_numbers.hpp"
#include "tests/support/test.hpp"

TEST_CASE("The binary32 logarithm has infinities at its ends and NaN below 0") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(log_f32(0.0f) == -infinity);
  CHECK(log_f32(-0.0f) == -infinity);
  CHECK(log_f32(infinity) == infinity);
  CHECK(std::isnan(log_f32(-1.0f)));
  CHECK(log_f32(1.0f) == 0.0f);
}
