#include "reference/verify/scaled_masses.hpp"

#include "exactness/rational.hpp"
#include "tests/support/test.hpp"

TEST_CASE("masses are scaled element by element") {
  CHECK(scaled(DenseMasses<double>{0.5, 0.0, 0.25}, 0.5) == DenseMasses<double>{0.25, 0.0, 0.125});
  CHECK(scaled(DenseMasses<Rational>{Rational(1, 3), 1}, Rational(3, 2)) ==
        DenseMasses<Rational>{Rational(1, 2), Rational(3, 2)});
}
