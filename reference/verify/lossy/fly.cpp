#include "reference/verify/lossy/fly.hpp"

#include "reference/numerics/natural_log.hpp"

namespace draftproof {

double entropy_of_most_probable(const DenseMasses<double>& p, std::size_t count) {
  double entropy = 0.0;
  for (const Token token : most_probable_tokens(p, count)) {
    const double mass = p[static_cast<std::size_t>(token)];
    entropy -= mass * natural_log(mass);
  }
  return entropy;
}

}  // namespace draftproof
