// Single draws against their distributions: support, tokens (group by group); over all groups as one sample, which
// serves where every draw has a distribution of its own, their probability transform, their score, and the events of
// being drawn just inside a cut (shell, edge).
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/parallel.hpp"
#include "exactness/audit/audit.hpp"
#include "exactness/audit/duplicates.hpp"
#include "exactness/audit/independence.hpp"
#include "exactness/audit/tests.hpp"
#include "exactness/statistics/e_process.hpp"
#include "exactness/statistics/tail_bounds.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/step/step_rows.hpp"

namespace draftproof {
namespace {

// Beyond so many draws the transform, a random number for each, is left out: the cells of the tokens say more.
constexpr std::int64_t kTransformedDrawsMax = 200'000'000;
// Above this many different tokens it is cheaper to sort a distribution than to pass over it for each.
constexpr std::size_t kTokensBySumMax = 16;
constexpr float kSmallerCut = 0.97f;

struct GroupAudit {
  CountFit fit;
  std::int64_t undecided = 0;  // draws where the distribution leaves a choice
  std::int64_t impossible = 0;
  std::vector<CountedCell> impossible_cells;
  double log_wealth = 0.0;
  double score = 0.0;  // sum of ln p - E ln p
  TiltedSum scores;    // of all draws, at tilt 0
  EventDraws shell, edge;
  std::int64_t shell_count = 0;
  std::int64_t edge_count = 0;
};

struct ThreadState {
  StepWorkspace workspace;
  std::vector<std::int64_t> counts;
  UniformTally transformed;
};

std::vector<double> distribution_of_group(const VerifyRequest& request, StepWorkspace& workspace) {
  return normalised_distribution(StepRows(request, {.logprobs = false}, workspace).target(0));
}

// The request with each filter cutting 3 % earlier: as a smaller parameter does, or min-p behind a temperature 3 % too
// low. A top-k loses 3 % of its tokens, one at least, where no other filter cuts. Absent where nothing does.
std::optional<VerifyRequest> with_smaller_cuts(const VerifyRequest& request) {
  const FilterParameters& given = request.parameters.filters;
  if (request.target_is_probabilities || !given.any() || request.parameters.temperature == 0.0f) return std::nullopt;
  VerifyRequest smaller = request;
  FilterParameters& filters = smaller.parameters.filters;
  filters.top_p = given.top_p == 1.0f ? 1.0f : kSmallerCut * given.top_p;
  filters.min_p = given.min_p == 0.0f ? 0.0f : std::pow(given.min_p, kSmallerCut);
  if (given.top_p == 1.0f && given.min_p == 0.0f)
    filters.top_k =
        std::max(1, std::min(given.top_k - 1, static_cast<std::int32_t>(std::int64_t{97} * given.top_k / 100)));
  return smaller;
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
    const std::int64_t possible = n - group.impossible;
    score(distribution, state.counts, possible, group);
    count_edge(distribution, state.counts, possible, group);
    if (const std::optional<VerifyRequest> smaller = with_smaller_cuts(sample_.distributions[g]))
      count_shell(distribution, distribution_of_group(*smaller, state.workspace), state.counts, possible, group);
  }

  static void score(std::span<const double> distribution, std::span<const std::int64_t> counts, std::int64_t possible,
                    GroupAudit& group) {
    const TiltedSum of_one = tilted_score(distribution, 0.0);
    if (of_one.variance < kFlatVariance) return;
    group.scores.add(of_one, static_cast<double>(possible));
    double centre = 0.0;
    for (const double p : distribution) centre += p > 0.0 ? p * natural_log(p) : 0.0;
    for (std::size_t token = 0; token < distribution.size(); ++token)
      if (counts[token] > 0 && distribution[token] > 0.0)
        group.score += static_cast<double>(counts[token]) * (natural_log(distribution[token]) - centre);
  }

  // The least likely token that is kept, where any is not; of equals the last.
  static void count_edge(std::span<const double> distribution, std::span<const std::int64_t> counts,
                         std::int64_t possible, GroupAudit& group) {
    std::optional<std::size_t> last;
    bool is_cut = false;
    for (std::size_t token = 0; token < distribution.size(); ++token) {
      if (!(distribution[token] > 0.0)) {
        is_cut = true;
      } else if (!last || distribution[token] <= distribution[*last]) {
        last = token;
      }
    }
    if (!is_cut || !last) return;
    group.edge = {distribution[*last], possible};
    group.edge_count = counts[*last];
  }

  static void count_shell(std::span<const double> distribution, std::span<const double> smaller,
                          std::span<const std::int64_t> counts, std::int64_t possible, GroupAudit& group) {
    group.shell.draws = possible;
    for (std::size_t token = 0; token < distribution.size(); ++token) {
      if (!(distribution[token] > 0.0) || smaller[token] > 0.0) continue;
      group.shell.probability += distribution[token];
      group.shell_count += counts[token];
    }
  }

  // Scores of all draws, tilted.
  TiltedSum scores_at(double tilt) const {
    std::vector<StepWorkspace> workspaces(static_cast<std::size_t>(options_.threads));
    std::vector<TiltedSum> of_group(groups_.size());
    parallel_for(static_cast<std::int64_t>(groups_.size()), options_.threads, [&](std::int64_t i, int thread) {
      const auto g = static_cast<std::size_t>(i);
      if (!(groups_[g].scores.variance > 0.0)) return;
      of_group[g] = tilted_score(
          distribution_of_group(sample_.distributions[g], workspaces[static_cast<std::size_t>(thread)]), tilt);
    });
    TiltedSum sum;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      sum.add(of_group[g], static_cast<double>(groups_[g].undecided - groups_[g].impossible));
    return sum;
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
    double score = 0.0;
    TiltedSum scores;
    std::int64_t scored = 0;
    std::vector<EventDraws> shells, edges;
    std::int64_t shell_count = 0;
    std::int64_t edge_count = 0;
    for (GroupAudit& group : groups_) {
      score += group.score;
      scores.add(group.scores);
      if (group.scores.variance > 0.0) scored += group.undecided - group.impossible;
      if (group.shell.probability > 0.0) shells.push_back(group.shell);
      if (group.edge.probability > 0.0) edges.push_back(group.edge);
      shell_count += group.shell_count;
      edge_count += group.edge_count;
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
    append(audit.tests, event_tests("shell", "draws", shells, shell_count, true));
    append(audit.tests, event_tests("edge", "draws", edges, edge_count, false));
    append(audit.tests,
           score_tests("draws", scored, score, [&](double tilt) { return tilt == 0.0 ? scores : scores_at(tilt); }));
    audit.score_deviation = std::sqrt(scores.variance);
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
