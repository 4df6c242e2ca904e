// The least-squares solver against closed forms.
#include "sim/cost/fit.hpp"
#include "tests/support/test.hpp"

TEST_CASE("A straight line is fitted as the closed form says, with its covariance") {
  const std::vector<double> at{0.0, 1.0, 2.0, 3.0, 5.0};
  const std::vector<double> y{1.1, 2.9, 5.2, 6.8, 11.3};
  const LeastSquares fit = minimise(
      [&](const std::vector<double>& x) {
        std::vector<double> r;
        for (std::size_t i = 0; i < at.size(); ++i) r.push_back(y[i] - x[0] - x[1] * at[i]);
        return r;
      },
      {0.0, 0.0});
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    n += 1;
    sx += at[i];
    sy += y[i];
    sxx += at[i] * at[i];
    sxy += at[i] * y[i];
  }
  const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  CHECK(fit.converged);
  CHECK(fit.x[1] == Approx(slope));
  CHECK(fit.x[0] == Approx((sy - slope * sx) / n));
  CHECK(fit.covariance[3] == Approx(n / (n * sxx - sx * sx)));
  CHECK(fit.covariance[0] == Approx(sxx / (n * sxx - sx * sx)));
  CHECK(fit.covariance[1] == Approx(-sx / (n * sxx - sx * sx)));
}

TEST_CASE("Rosenbrock's valley is followed to its end") {
  const LeastSquares fit = minimise(
      [](const std::vector<double>& x) {
        return std::vector<double>{10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]};
      },
      {-1.2, 1.0}, 1e-6, 200);
  CHECK(fit.x[0] == Approx(1.0).epsilon(1e-6));
  CHECK(fit.x[1] == Approx(1.0).epsilon(1e-6));
  CHECK(fit.sum_of_squares < 1e-12);
}

TEST_CASE("What no residual depends on stays where it is") {
  const LeastSquares fit =
      minimise([](const std::vector<double>& x) { return std::vector<double>{x[0] - 3.0}; }, {0.0, 7.0});
  CHECK(fit.x[0] == Approx(3.0));
  CHECK(fit.x[1] == 7.0);
}
