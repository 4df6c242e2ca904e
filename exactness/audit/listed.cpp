#include "exactness/audit/listed.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "exactness/audit/tests.hpp"
#include "exactness/statistics/tail_bounds.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

constexpr int kLags = 3;
constexpr std::int64_t kPairsMin = 50;
constexpr double kSumTolerance = 1e-6;

void check_listed(const ListedSample& sample) {
  const std::size_t n = sample.size();
  const auto has = [](const char* name, std::size_t size, std::size_t expected) {
    if (size != expected)
      throw usage_error(name, "has " + std::to_string(size) + " elements; expected " + std::to_string(expected));
  };
  has("probabilities", sample.probabilities.size(), n * sample.width);
  has("ids", sample.ids.size(), n * sample.width);
  has("rest", sample.rest.size(), n);
  has("shell_from", sample.shell_from.size(), n);
  has("texts", sample.texts.size(), n);
  has("positions", sample.positions.size(), n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const double> row = sample.row(i);
    const std::string here = "row " + std::to_string(i);
    double sum = sample.rest[i];
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (!(row[k] >= 0.0) || (k > 0 && row[k] > row[k - 1]))
        throw usage_error("probabilities", here + " does not fall from 1 to 0 at rank " + std::to_string(k));
      sum += row[k];
    }
    if (!(sample.rest[i] >= 0.0 && std::abs(sum - 1.0) < kSumTolerance))
      throw usage_error("probabilities", here + " sums to " + std::to_string(sum) + " with its rest; expected 1");
    const auto width = static_cast<std::int64_t>(sample.width);
    const std::int64_t rank = sample.ranks[i];
    if (rank < 0 || rank > width || (rank < width && !(row[static_cast<std::size_t>(rank)] > 0.0)))
      throw usage_error("ranks", here + " has " + std::to_string(rank) + ", of probability 0; expected a kept token");
    if (sample.shell_from[i] < 0 || sample.shell_from[i] > width)
      throw usage_error("shell_from", here + " has " + std::to_string(sample.shell_from[i]) + "; expected a rank");
  }
}

class ListedAuditor {
 public:
  ListedAuditor(const ListedSample& sample, const AuditOptions& options) : sample_(sample), options_(options) {}

  Audit run() {
    Audit audit;
    const auto n = static_cast<std::int64_t>(sample_.size());
    audit.observations = n + sample_.outside;
    audit.groups = n;
    audit.vocab_size = static_cast<std::int64_t>(sample_.width);
    if (audit.observations > 0) {
      audit.tests.push_back(certainty_test("outside", "draws", audit.observations, sample_.outside, {}));
      audit.tests.back().covers_all = n == 0;
    }
    count_events(audit);
    add_scores(audit);
    by_rank_ = transforms(false);
    by_id_ = transforms(true);
    UniformTally tally;
    for (const double u : by_rank_) tally.add(u);
    append(audit.tests, uniformity_tests("transform", "draws", tally, true));
    add_pairs(audit, "pairs_rank_", by_rank_);
    add_pairs(audit, "pairs_id_", by_id_);
    conclude(audit, options_);
    return audit;
  }

 private:
  void count_events(Audit& audit) const {
    std::vector<EventDraws> shells, edges, rests;
    std::int64_t in_shell = 0;
    std::int64_t at_edge = 0;
    std::int64_t beyond = 0;
    for (std::size_t i = 0; i < sample_.size(); ++i) {
      const std::span<const double> kept = sample_.kept(i);
      double shell = 0.0;
      for (auto k = static_cast<std::size_t>(sample_.shell_from[i]); k < kept.size(); ++k) shell += kept[k];
      const auto rank = static_cast<std::size_t>(sample_.ranks[i]);
      if (shell > 0.0) {
        shells.push_back({shell, 1});
        in_shell += rank < sample_.width && sample_.ranks[i] >= sample_.shell_from[i] ? 1 : 0;
      }
      if (kept.size() > 1) {
        edges.push_back({kept.back(), 1});
        at_edge += rank + 1 == kept.size() ? 1 : 0;
      }
      if (sample_.rest[i] > 0.0 || rank == sample_.width) {
        rests.push_back({sample_.rest[i], 1});
        beyond += rank == sample_.width ? 1 : 0;
      }
    }
    append(audit.tests, event_tests("shell", "draws", shells, in_shell, true));
    append(audit.tests, event_tests("edge", "draws", edges, at_edge, false));
    append(audit.tests, event_tests("rest", "draws", rests, beyond, false));
  }

  void add_scores(Audit& audit) const {
    std::vector<std::size_t> rows;
    double score = 0.0;
    for (std::size_t i = 0; i < sample_.size(); ++i) {
      const std::span<const double> kept = sample_.kept(i);
      if (sample_.rest[i] > 0.0 || tilted_score(kept, 0.0).variance < kFlatVariance) continue;
      rows.push_back(i);
      double centre = 0.0;
      for (const double p : kept) centre += p * natural_log(p);
      score += natural_log(kept[static_cast<std::size_t>(sample_.ranks[i])]) - centre;
    }
    const auto at = [&](double tilt) {
      TiltedSum sum;
      for (const std::size_t i : rows) sum.add(tilted_score(sample_.kept(i), tilt));
      return sum;
    };
    append(audit.tests, score_tests("draws", std::ssize(rows), score, at));
    audit.score_deviation = std::sqrt(at(0.0).variance);
  }

  // [n] mass of the tokens before the drawn one, by rank or by id, and a uniform share of its own.
  std::vector<double> transforms(bool by_id) const {
    std::vector<double> found;
    const std::uint64_t key = derive_seed(options_.seed, by_id ? 4 : 3);
    for (std::size_t i = 0; i < sample_.size(); ++i) {
      const std::span<const double> kept = sample_.kept(i);
      const auto rank = static_cast<std::size_t>(sample_.ranks[i]);
      const bool is_beyond = rank == sample_.width;
      double before = 0.0;
      for (std::size_t k = 0; k < kept.size(); ++k)
        if (is_beyond || (by_id ? id(i, k) < id(i, rank) : k < rank)) before += kept[k];
      const Address address{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, Purpose::choice};
      const double v = uniform_53(high_half(PhiloxSource().block(key, address)));
      found.push_back(std::min(before + v * (is_beyond ? sample_.rest[i] : kept[rank]), 1.0 - 0x1p-53));
    }
    return found;
  }

  std::int64_t id(std::size_t i, std::size_t rank) const { return sample_.ids[i * sample_.width + rank]; }

  void add_pairs(Audit& audit, const std::string& name, const std::vector<double>& u) const {
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> places;
    for (std::size_t i = 0; i < sample_.size(); ++i) places[{sample_.texts[i], sample_.positions[i]}] = i;
    for (int lag = 1; lag <= kLags; ++lag) {
      TestResult test;
      double sum = 0.0;
      for (std::size_t i = 0; i < sample_.size(); ++i) {
        const auto other = places.find({sample_.texts[i], sample_.positions[i] + lag});
        if (other == places.end()) continue;
        ++test.n;
        sum += (u[i] - 0.5) * (u[other->second] - 0.5);
      }
      if (test.n < kPairsMin) continue;
      test.name = name + std::to_string(lag);
      test.statistic_name = "r";
      test.unit = "pairs";
      test.null_distribution = NullDistribution::tail;
      test.is_correlation = true;
      test.statistic = 12.0 * sum / static_cast<double>(test.n);
      test.p_value = correlation_bound(test.statistic, test.n);
      audit.tests.push_back(std::move(test));
    }
  }

  const ListedSample& sample_;
  const AuditOptions& options_;
  std::vector<double> by_rank_, by_id_;  // [n]
};

}  // namespace

std::span<const double> ListedSample::kept(std::size_t i) const {
  const std::span<const double> all = row(i);
  return all.first(static_cast<std::size_t>(std::ranges::find(all, 0.0) - all.begin()));
}

Audit audit_listed(const ListedSample& sample, const AuditOptions& options) {
  check_listed(sample);
  return ListedAuditor(sample, options).run();
}

}  // namespace draftproof
