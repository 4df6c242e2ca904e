// Least squares of a function that is not linear: Levenberg and Marquardt's damping of Gauss and Newton's step.
#pragma once

#include <functional>
#include <vector>

namespace draftproof {

struct LeastSquares {
  std::vector<double> x;
  double sum_of_squares = 0.0;
  std::vector<double> covariance;  // row by row: (J^T J)^-1 at x, right if residuals have unit variance
  int iterations = 0;
  bool converged = false;  // the last step changed the sum by less than one part in 10^10
};

// Minimises |residuals(x)|^2 from `start`. The number of residuals must not change; the Jacobian is by central
// differences of `step` in each x.
LeastSquares minimise(const std::function<std::vector<double>(const std::vector<double>& x)>& residuals,
                      const std::vector<double>& start, double step = 1e-4, int iterations_max = 100);

}  // namespace draftproof
