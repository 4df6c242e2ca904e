#include "exactness/bugs/counted_rate.hpp"

#include <algorithm>

#include "exactness/statistics/battery.hpp"
#include "exactness/statistics/binomial_interval.hpp"

namespace draftproof {
namespace {

constexpr double kLevelOfRates = 1e-9;
constexpr std::int64_t kFirstLookAtRate = 32;

}  // namespace

Finding find_wrong_rate(double probability, const std::function<bool(std::uint64_t draw)>& happens,
                        std::int64_t draws_max, const std::string& event) {
  Finding finding{false, 0, "draws", {}};
  int looks = 1;
  for (std::int64_t n = kFirstLookAtRate; n < draws_max; n *= 2) ++looks;
  std::int64_t count = 0;
  for (std::int64_t next_look = std::min(kFirstLookAtRate, draws_max);;
       next_look = std::min(2 * next_look, draws_max)) {
    for (; finding.cases < next_look; ++finding.cases)
      if (happens(static_cast<std::uint64_t>(finding.cases))) ++count;
    const Interval interval = clopper_pearson(count, finding.cases, 1.0 - kLevelOfRates / looks);
    if (probability < interval.low || probability > interval.high) {
      finding.caught = true;
      finding.evidence = std::to_string(count) + " " + event + " where " +
                         short_number(probability * static_cast<double>(finding.cases)) + " are expected";
      return finding;
    }
    if (finding.cases == draws_max) return finding;
  }
}

}  // namespace draftproof
