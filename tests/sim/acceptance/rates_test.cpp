#include "sim/acceptance/rates.hpp"

#include "tests/support/test.hpp"

TEST_CASE("survival and conditional rates are one another's inverse, and give the acceptance length") {
  // vLLM's log of EAGLE-1 on an A100: per-position rates and mean acceptance length, as printed.
  const std::vector<double> logged = {0.782, 0.494, 0.218, 0.08, 0.046};
  CHECK(acceptance_length_of(logged) == Approx(2.62).margin(0.005));
  const std::vector<double> conditional = conditional_of(logged, "log");
  CHECK(conditional[1] == Approx(0.494 / 0.782));
  const std::vector<double> again = survival_of(conditional);
  for (std::size_t i = 0; i < logged.size(); ++i) CHECK(again[i] == Approx(logged[i]));
  // A constant rate a: (1 - a^(K+1)) / (1 - a).
  CHECK(acceptance_length_of(survival_of(std::vector<double>(5, 0.7))) == Approx((1 - 0.117649) / 0.3));
}

TEST_CASE("a survival that rises or leaves [0, 1] is refused with its position") {
  CHECK_THROWS_WITH(conditional_of(std::vector<double>{0.5, 0.6}, "rates.csv, row 2"),
                    Contains("rates.csv, row 2") && Contains("unconditional rate 2 is 0.6"));
  CHECK_THROWS_AS(conditional_of(std::vector<double>{-0.1}, "x"), Error);
  CHECK(conditional_of(std::vector<double>{0.0, 0.0}, "x") == std::vector<double>{0.0, 0.0});
}
