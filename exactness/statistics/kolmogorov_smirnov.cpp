#include "exactness/statistics/kolmogorov_smirnov.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstddef>

namespace draftproof {
namespace {

constexpr std::int64_t kExactMax = 100;
// n d^2 from which 1 - cdf, about 1e-10, has lost more than the fit of the tail is off.
constexpr double kExactTailMax = 12.0;

using Matrix = std::vector<double>;  // square, row-major

Matrix product(const Matrix& a, const Matrix& b, std::size_t m) {
  Matrix c(m * m, 0.0);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t k = 0; k < m; ++k) {
      for (std::size_t j = 0; j < m; ++j) c[i * m + j] += a[i * m + k] * b[k * m + j];
    }
  }
  return c;
}

// Durbin's matrix of size m = 2 k - 1: entries 1 / (i - j + 1)! on and below the superdiagonal; the first column and
// the last row are corrected by powers of h = k - n d.
Matrix durbin_matrix(std::size_t m, double h) {
  std::vector<double> reciprocal_factorial(m + 1, 1.0);
  std::vector<double> power(m + 1, 1.0);
  for (std::size_t i = 1; i <= m; ++i) {
    reciprocal_factorial[i] = reciprocal_factorial[i - 1] / static_cast<double>(i);
    power[i] = power[i - 1] * h;
  }
  Matrix matrix(m * m, 0.0);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j <= std::min(i + 1, m - 1); ++j) matrix[i * m + j] = reciprocal_factorial[i + 1 - j];
  }
  for (std::size_t i = 0; i < m; ++i) {
    matrix[i * m] -= power[i + 1] * reciprocal_factorial[i + 1];
    matrix[(m - 1) * m + i] -= power[m - i] * reciprocal_factorial[m - i];
  }
  // The corner was corrected twice; (2h - 1)_+^m goes back.
  if (2.0 * h > 1.0) matrix[(m - 1) * m] += std::pow(2.0 * h - 1.0, static_cast<double>(m)) * reciprocal_factorial[m];
  return matrix;
}

double exact_cdf(std::int64_t n, double d) {
  const double nd = static_cast<double>(n) * d;
  const auto k = static_cast<std::size_t>(nd) + 1;
  const std::size_t m = 2 * k - 1;
  Matrix base = durbin_matrix(m, static_cast<double>(k) - nd);
  // The n-th root of n! / n^n goes with each factor, so that nothing leaves the range of doubles for n <= 100.
  double factorial_share = 1.0;
  for (std::int64_t i = 1; i <= n; ++i) factorial_share *= static_cast<double>(i) / static_cast<double>(n);
  const double root = std::pow(factorial_share, 1.0 / static_cast<double>(n));
  for (double& x : base) x *= root;
  Matrix result(m * m, 0.0);
  for (std::size_t i = 0; i < m; ++i) result[i * m + i] = 1.0;
  for (std::int64_t exponent = n; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = product(result, base, m);
    if (exponent > 1) base = product(base, base, m);
  }
  return std::clamp(result[(k - 1) * m + (k - 1)], 0.0, 1.0);
}

// 1 - cdf of Kolmogorov's limit distribution: 2 sum_k (-1)^(k-1) exp(-2 k^2 x^2), or the series of its Jacobi
// transform.
double limit_survival(double x) {
  constexpr double kPi = 3.14159265358979323846;
  if (x <= 0.0) return 1.0;
  double sum = 0.0;
  if (x < 1.0) {
    for (int k = 1; k <= 7; k += 2) sum += std::exp(-k * k * kPi * kPi / (8.0 * x * x));
    return 1.0 - std::sqrt(2.0 * kPi) / x * sum;
  }
  for (int k = 1; k <= 5; ++k) sum += (k % 2 == 1 ? 2.0 : -2.0) * std::exp(-2.0 * k * k * x * x);
  return sum;
}

double approximate_survival(std::int64_t n, double d) {
  const auto count = static_cast<double>(n);
  const double root = std::sqrt(count);
  const double s = d * d * count;
  // The tail, by the authors' own fit to the exact distribution.
  if (s > 7.24) return 2.0 * std::exp(-(2.000071 + 0.331 / root + 1.409 / count) * s);
  const double x = d * root;
  return std::clamp(limit_survival(x + 1.0 / (6.0 * root) + (x - 1.0) / (4.0 * count)), 0.0, 1.0);
}

}  // namespace

double kolmogorov_cdf(std::int64_t n, double d) {
  if (d <= 0.0) return 0.0;
  if (d >= 1.0) return 1.0;
  return n <= kExactMax ? exact_cdf(n, d) : 1.0 - approximate_survival(n, d);
}

double kolmogorov_p_value(std::int64_t n, double d) {
  if (n == 0 || d <= 0.0) return 1.0;
  if (d >= 1.0) return 0.0;
  if (n <= kExactMax && d * d * static_cast<double>(n) <= kExactTailMax) return 1.0 - exact_cdf(n, d);
  return approximate_survival(n, d);
}

double kolmogorov_critical_distance(std::int64_t n, double alpha) {
  double low = 0.0;
  double high = 1.0;
  for (int i = 0; i < 48; ++i) {
    const double middle = (low + high) / 2.0;
    (kolmogorov_p_value(n, middle) > alpha ? low : high) = middle;
  }
  return high;
}

double detectable_kolmogorov_distance(std::int64_t n, double alpha, double power) {
  if (n == 0) return 1.0;
  const double deviations = boost::math::quantile(boost::math::normal(), power);
  return std::min(1.0, kolmogorov_critical_distance(n, alpha) + deviations / (2.0 * std::sqrt(static_cast<double>(n))));
}

double uniform_distance(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    distance = std::max(distance, static_cast<double>(i + 1) / n - values[i]);
    distance = std::max(distance, values[i] - static_cast<double>(i) / n);
  }
  return distance;
}

}  // namespace draftproof
