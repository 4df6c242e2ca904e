#include "sim/cost/levenberg_marquardt.hpp"

#include <Eigen/Dense>
#include <cmath>

namespace draftproof {
namespace {

using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

Eigen::VectorXd evaluate(const Residuals& residuals, const Eigen::VectorXd& x) {
  const std::vector<double> r = residuals(std::vector<double>(x.data(), x.data() + x.size()));
  return Eigen::Map<const Eigen::VectorXd>(r.data(), static_cast<Eigen::Index>(r.size()));
}

Eigen::MatrixXd jacobian_at(const Residuals& residuals, Eigen::VectorXd x, Eigen::Index rows, double step) {
  Eigen::MatrixXd jacobian(rows, x.size());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const Eigen::VectorXd above = evaluate(residuals, x);
    x[i] = at - step;
    jacobian.col(i) = (above - evaluate(residuals, x)) / (2.0 * step);
    x[i] = at;
  }
  return jacobian;
}

}  // namespace

LeastSquares minimise(const Residuals& residuals, const std::vector<double>& start, double step, int iterations_max) {
  Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(start.data(), static_cast<Eigen::Index>(start.size()));
  Eigen::VectorXd r = evaluate(residuals, x);
  Eigen::MatrixXd jacobian = jacobian_at(residuals, x, r.size(), step);
  LeastSquares result;
  result.sum_of_squares = r.squaredNorm();
  double damping = 1e-3;
  while (!result.converged && result.iterations < iterations_max) {
    ++result.iterations;
    const Eigen::MatrixXd normal = jacobian.transpose() * jacobian;
    Eigen::MatrixXd damped = normal;
    // Marquardt's scale, with a floor for an x that no residual depends on.
    damped.diagonal() += damping * normal.diagonal().cwiseMax(1e-12);
    const Eigen::VectorXd next = x - damped.ldlt().solve(jacobian.transpose() * r);
    const Eigen::VectorXd next_r = evaluate(residuals, next);
    const double sum = next_r.squaredNorm();
    if (std::isfinite(sum) && sum <= result.sum_of_squares) {
      result.converged = result.sum_of_squares - sum <= 1e-10 * result.sum_of_squares;
      x = next;
      r = next_r;
      result.sum_of_squares = sum;
      jacobian = jacobian_at(residuals, x, r.size(), step);
      damping = std::max(damping / 10.0, 1e-12);
    } else {
      damping *= 10.0;
      result.converged = damping > 1e12;  // no step helps any more
    }
  }
  const Eigen::MatrixXd normal = jacobian.transpose() * jacobian;
  const Eigen::MatrixXd covariance = normal.completeOrthogonalDecomposition().pseudoInverse();
  result.x.assign(x.data(), x.data() + x.size());
  for (Eigen::Index i = 0; i < covariance.rows(); ++i)
    for (Eigen::Index j = 0; j < covariance.cols(); ++j) result.covariance.push_back(covariance(i, j));
  return result;
}

}  // namespace draftproof
