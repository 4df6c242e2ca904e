// Single draws against their distributions: support, tokens (group by group), and their probability transform (all
// groups as one sample, which serves where every draw has a distribution of its own).
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/parallel.hpp"
#include "exactness/audit/audit.hpp"
#include "exactness/audit/duplicates.hpp"
#include "exactness/audit/independence.hpp"
#include "exactness/audit/tests.hpp"
#include "exactness/statistics/e_process.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/step/step_rows.hpp"

namespace draftproof {
namespace {

// Beyond so many draws the transform, a random number for each, is left out: the cells of the tokens say more.
constexpr std::int64_t kTransformedDrawsMax = 200'000'000;
// Above this many different tokens it is cheaper to sort a distribution than to pass over it for each.
constexpr std::size_t kTokensBySumMax = 16;

struct GroupAudit {
  CountFit fit;
  std::int64_t undecided = 0;  // draws where the distribution leaves a choice
  std::int64_t impossible = 0;
  std::vector<CountedCell> impossible_cells;
  double log_wealth = 0.0;
};

struct ThreadState {
  StepWorkspace workspace;
  std::vector<std::int64_t> counts;
  UniformTally transformed;
};

std::vector<double> distribution_of_group(const VerifyRequest& request, StepWorkspace& workspace) {
  return normalised_distribution(StepRows(request, {.logprobs = false}, workspace).target(0));
}

class DrawAuditor {
 public:
  DrawAuditor(const DrawSample& sample, const AuditOptions& options)
      : sample_(sample), options_(options), key_(derive_seed(options.seed, 1)), groups_(sample.distributions.size()) {
    for (const TokenCount& c : sample.counts) draws_ += c.count;
  }

  Audit run() {
    std::vector<ThreadState> threads(static_cast<std::size_t>(options_.threads));
    parallel_for(static_cast<std::int64_t>(groups_.size()), options_.threads, [&](std::int64_t g, int thread) {
      audit_group(static_cast<std::size_t>(g), threads[static_cast<std::size_t>(thread)]);
    });
    for (std::size_t i = 1; i < threads.size(); ++i) threads[0].transformed.merge(threads[i].transformed);
    return combine(threads[0].transformed);
  }

 private:
  void audit_group(std::size_t g, ThreadState& state) {
    if (sample_.counts_of(g).empty()) return;
    const std::vector<double> distribution = distribution_of_group(sample_.distributions[g], state.workspace);
    state.counts.assign(distribution.size(), 0);
    GroupAudit& group = groups_[g];
    std::int64_t n = 0;
    for (const TokenCount& c : sample_.counts_of(g)) {
      state.counts[static_cast<std::size_t>(c.token)] = c.count;
      n += c.count;
      if (distribution[static_cast<std::size_t>(c.token)] > 0.0) continue;
      group.impossible += c.count;
      group.impossible_cells.push_back(cell(g, static_cast<std::size_t>(c.token)));
      group.impossible_cells.back().observed = static_cast<double>(c.count);
    }
    keep_worst(group.impossible_cells);
    if (is_one_hot(distribution)) return;
    group.undecided = n;
    group.fit = fit_counts(state.counts, distribution, [&](std::size_t token) { return cell(g, token); });
    if (group.impossible == 0)
      group.log_wealth = dirichlet_log_wealth(state.counts, distribution, static_cast<double>(distribution.size()));
    if (draws_ <= kTransformedDrawsMax) transform(g, distribution, state.transformed);
  }

  void transform(std::size_t g, std::span<const double> distribution, UniformTally& tally) const {
    const std::span<const TokenCount> counts = sample_.counts_of(g);
    std::vector<double> all_before;
    if (counts.size() > kTokensBySumMax) all_before = masses_ranked_before(distribution);
    for (const TokenCount& c : counts) {
      const auto token = static_cast<std::size_t>(c.token);
      if (!(distribution[token] > 0.0)) continue;
      const double before = all_before.empty() ? mass_ranked_before(distribution, c.token) : all_before[token];
      for (std::int64_t i = 0; i < c.count; ++i) {
        const Address address{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(token),
                              static_cast<std::uint32_t>(g), Purpose::choice};
        tally.add(before + uniform_53(high_half(PhiloxSource().block(key_, address))) * distribution[token]);
      }
    }
  }

  Audit combine(const UniformTally& transformed) {
    Audit audit;
    audit.observations = draws_;
    audit.groups = static_cast<std::int64_t>(groups_.size());
    audit.vocab_size = sample_.vocab_size();
    CountFit fit;
    std::int64_t undecided = 0;
    std::int64_t impossible = 0;
    std::vector<CountedCell> impossible_cells;
    double log_wealth = 0.0;
    for (GroupAudit& group : groups_) {
      fit.add(std::move(group.fit));
      undecided += group.undecided;
      impossible += group.impossible;
      impossible_cells.insert(impossible_cells.end(), group.impossible_cells.begin(), group.impossible_cells.end());
      if (impossible_cells.size() > kWorstCellsMax) impossible_cells.resize(kWorstCellsMax);
      log_wealth += group.log_wealth;
    }
    if (draws_ > 0) {
      audit.tests.push_back(certainty_test("support", "draws", draws_, impossible, impossible_cells));
      // Greedy draws have no other distribution than their support.
      audit.tests.back().covers_all = undecided == 0;
    }
    // Groups too small for cells of their own are covered by the transform only.
    const bool cells_cover_most = 2 * fit.n >= undecided;
    append(audit.tests, count_tests("tokens", "draws", fit, cells_cover_most));
    append(audit.tests, uniformity_tests("transform", "draws", transformed, !cells_cover_most));
    append(audit.tests, malformed_tests("draws", "draw", draws_, sample_.malformed));
    if (sample_.ordered) {
      append(audit.tests, independence_tests(ordered_transforms(), sample_.ordered->at));
      append(audit.tests, duplicate_tests(sample_.ordered->tokens, sample_.ordered->at, coincidences()));
    }
    if (impossible == 0) audit.anytime_log10_wealth = log_wealth * 0.43429448190325183;  // log10 e
    conclude(audit, options_);
    note_malformed(audit, sample_.malformed);
    return audit;
  }

  // Probability that two of the draws, by number, are of one token.
  std::function<double(std::size_t, std::size_t)> coincidences() const {
    const auto known = std::make_shared<std::map<std::pair<std::uint32_t, std::uint32_t>, double>>();
    return [this, known](std::size_t a, std::size_t b) {
      const std::uint32_t g = sample_.ordered->groups[a];
      const std::uint32_t h = sample_.ordered->groups[b];
      const auto [found, is_new] = known->try_emplace(std::minmax(g, h), 0.0);
      if (is_new) {
        StepWorkspace workspace;
        const std::vector<double> p = distribution_of_group(sample_.distributions[g], workspace);
        const std::vector<double> q = distribution_of_group(sample_.distributions[h], workspace);
        for (std::size_t i = 0; i < p.size(); ++i) found->second += p[i] * q[i];
      }
      return found->second;
    };
  }

  // [n] of the draws one by one; below 0 where the distribution leaves no choice, or forbids the token.
  std::vector<double> ordered_transforms() const {
    const OrderedDraws& draws = *sample_.ordered;
    std::vector<double> transforms(draws.tokens.size(), -1.0);
    std::vector<std::vector<std::size_t>> of_group(groups_.size());
    for (std::size_t i = 0; i < draws.tokens.size(); ++i) of_group[draws.groups[i]].push_back(i);
    StepWorkspace workspace;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (of_group[g].empty()) continue;
      const std::vector<double> distribution = distribution_of_group(sample_.distributions[g], workspace);
      if (is_one_hot(distribution)) continue;
      const std::vector<double> before = masses_ranked_before(distribution);
      for (const std::size_t i : of_group[g]) {
        const auto token = static_cast<std::size_t>(draws.tokens[i]);
        if (!(distribution[token] > 0.0)) continue;
        const Address address{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 1, Purpose::choice};
        const double v = uniform_53(high_half(PhiloxSource().block(derive_seed(options_.seed, 2), address)));
        transforms[i] = before[token] + v * distribution[token];
      }
    }
    return transforms;
  }

  CountedCell cell(std::size_t g, std::size_t token) const {
    return {{{"group", sample_.group_ids[g]}, {"token", static_cast<std::int64_t>(token)}}};
  }

  const DrawSample& sample_;
  const AuditOptions& options_;
  std::uint64_t key_;
  std::vector<GroupAudit> groups_;
  std::int64_t draws_ = 0;
};

}  // namespace

Audit audit_draws(const DrawSample& sample, const AuditOptions& options) {
  return DrawAuditor(sample, options).run();
}

}  // namespace draftproof
