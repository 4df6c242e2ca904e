#include "reference/verify/sibling_rules/k_seq.hpp"

#include "exactness/rational.hpp"
#include "tests/support/test.hpp"

namespace {

using Masses = DenseMasses<Rational>;

const Masses kP{Rational(1, 2), Rational(3, 10), Rational(1, 5)};
const Masses kQ{Rational(1, 5), Rational(3, 10), Rational(1, 2)};

// sum min(p / rho, q)
Rational beta(const Rational& rho) {
  Rational sum(0);
  for (std::size_t x = 0; x < kP.size(); ++x) sum += std::min(Rational(kP[x] / rho), kQ[x]);
  return sum;
}

// p_acc = 1 - (1 - beta)^k
Rational acceptance(const Rational& rho, std::size_t k) {
  Rational none(1);
  for (; k > 0; --k) none *= 1 - beta(rho);
  return 1 - none;
}

}  // namespace

TEST_CASE("rho is the smallest valid one rounded up") {
  // Golden values, from bisection in decimals of 40 digits.
  const double golden_rho[] = {1.456776436283002, 1.792593028268749};
  const double golden_acceptance[] = {0.791355287256600, 0.858518605653750};
  for (std::size_t k = 2; k <= 3; ++k) {
    const Rational width = Rational(1) / (std::int64_t{1} << 40);
    const Rational rho = k_seq_rho(kP, kQ, k, width);
    CHECK(static_cast<double>(rho) == Approx(golden_rho[k - 2]).epsilon(0).margin(2e-12));
    CHECK(k_seq_rho(DenseMasses<double>{0.5, 0.3, 0.2}, DenseMasses<double>{0.2, 0.3, 0.5}, k, 0x1p-40) ==
          Approx(golden_rho[k - 2]).epsilon(0).margin(2e-12));
    CHECK(static_cast<double>(acceptance(rho, k)) == Approx(golden_acceptance[k - 2]).epsilon(0).margin(2e-12));
    // p_acc <= rho beta holds at rho and fails one width below.
    const auto valid = [&](const Rational& r) { return acceptance(r, k) <= r * beta(r); };
    CHECK(valid(rho));
    CHECK_FALSE(valid(rho - width));
  }
  CHECK(k_seq_rho(kP, kP, 3) == 1);                      // p = q
  CHECK(k_seq_rho(kP, kQ, 1) == 1);                      // one sibling
  CHECK(k_seq_rho(Masses{1, 0}, Masses{0, 1}, 3) == 3);  // disjoint: nothing is accepted anyway
  CHECK(k_seq_rho(Masses{1, 0}, Masses{1, 0}, 3) == 1);  // one-hot and equal
}
