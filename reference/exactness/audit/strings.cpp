#include "reference/exactness/audit/strings.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "reference/error.hpp"
#include "reference/statistics/pooling.hpp"

namespace draftproof {
namespace {

// No table of strings is larger.
constexpr std::size_t kStringCellsMax = std::size_t{1} << 22;

using Members = std::vector<std::size_t>;  // request numbers, ascending

std::int64_t group_of(const StepSample& sample, std::size_t request) {
  return sample.groups ? (*sample.groups)[request] : -1;
}

// Groups of requests by what `key_of` says of each, in the order of their first request.
template <class KeyOf>
std::vector<Members> grouped(std::size_t requests, const KeyOf& key_of) {
  std::map<decltype(key_of(std::size_t{0})), std::size_t> index;
  std::vector<Members> groups;
  for (std::size_t b = 0; b < requests; ++b) {
    const auto [found, is_new] = index.try_emplace(key_of(b), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(b);
  }
  return groups;
}

void check_groups(const StepSample& sample, std::span<const StepRecord> records) {
  if (!sample.groups) return;
  std::map<std::int64_t, std::size_t> first_of;
  for (std::size_t b = 0; b < records.size(); ++b) {
    const std::size_t first = first_of.try_emplace(group_of(sample, b), b).first->second;
    if (records[b].first_distribution != records[first].first_distribution)
      throw input_error("tensor 'group'",
                        "requests " + std::to_string(first) + " and " + std::to_string(b) + " are both in group " +
                            std::to_string(group_of(sample, b)) +
                            ", but the distributions of their first tokens differ; a group is one context, "
                            "with the same rows and parameters");
  }
}

class ContextFitter {
 public:
  ContextFitter(const StepSample& sample, std::span<const StepRecord> records, const Assumptions& assumed,
                std::uint64_t key)
      : sample_(sample), records_(records), assumed_(assumed), key_(key) {}

  CountFit fit_first_token(const Members& members) {
    if (is_small(members)) return {};
    const std::vector<double> distribution = target_distribution_of(sample_.requests[members.front()], 0, workspace_);
    std::vector<std::int64_t> counts(distribution.size(), 0);
    for (const std::size_t b : members) ++counts[static_cast<std::size_t>(sample_.emitted(b).front())];
    return fit_counts(counts, distribution, [&](std::size_t token) {
      return CountedCell{
          {{"request", static_cast<std::int64_t>(members.front())}, {"token", static_cast<std::int64_t>(token)}}};
    });
  }

  // Cells (a, b) for the first tokens a whose next distribution is known, and a alone for the others.
  CountFit fit_strings(const Members& members) {
    if (is_small(members) || records_[members.front()].depth_max == 0) return {};
    const std::vector<double> first = target_distribution_of(sample_.requests[members.front()], 0, workspace_);
    const std::vector<Token> known = tokens_with_known_next(members, first);
    if (known.empty()) return {};
    const std::size_t vocab_size = first.size();
    std::vector<std::vector<double>> next(vocab_size);
    std::vector<std::size_t> begin(vocab_size);  // of the cells of a
    std::vector<double> distribution;
    for (std::size_t a = 0; a < vocab_size; ++a) {
      begin[a] = distribution.size();
      if (std::binary_search(known.begin(), known.end(), static_cast<Token>(a))) {
        next[a] = next_distribution(static_cast<Token>(a));
        for (const double p : next[a]) distribution.push_back(first[a] * p);
      } else {
        distribution.push_back(first[a]);
      }
    }
    std::vector<std::int64_t> counts(distribution.size(), 0);
    for (const std::size_t b : members) {
      const std::span<const Token> emitted = sample_.emitted(b);
      const auto a = static_cast<std::size_t>(emitted[0]);
      std::size_t cell = begin[a];
      if (!next[a].empty())
        cell += emitted.size() > 1 ? static_cast<std::size_t>(emitted[1]) : completed_token(next[a], b);
      ++counts[cell];
    }
    return fit_counts(counts, distribution, [&](std::size_t cell) {
      const auto a = static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), cell) - begin.begin()) - 1;
      CountedCell named{
          {{"request", static_cast<std::int64_t>(members.front())}, {"token", static_cast<std::int64_t>(a)}}};
      if (!next[a].empty()) named.keys.emplace_back("next_token", static_cast<std::int64_t>(cell - begin[a]));
      return named;
    });
  }

 private:
  static bool is_small(const Members& members) {
    return static_cast<double>(members.size()) < 2.0 * kExpectedCountMinOfAudits;
  }

  // A choice that the emitted tokens have no part in, or it would bias the counts: a is among them iff the drafts of so
  // many requests hold it that at least one is certain but for e^-25; and every request that drafted it agrees on what
  // follows. Where the first sibling is drawn from q, q says how many; else all of them must. Fills next_ with where to
  // take the row from.
  std::vector<Token> tokens_with_known_next(const Members& members, const std::vector<double>& first) {
    next_.clear();
    for (const std::size_t b : members) {
      for (const NextRow& next : records_[b].next) {
        Next& known = next_.try_emplace(next.token, Next{b, next.row, next.distribution}).first->second;
        known.agrees = known.agrees && known.distribution == next.distribution;
        ++known.requests;
      }
    }
    const bool by_proposal = assumed_.drafts != DraftSampling::any && assumed_.drafts != DraftSampling::greedy;
    std::vector<double> drafts;
    if (by_proposal) drafts = first_draft_distribution_of(sample_.requests[members.front()], workspace_);
    std::vector<Token> known;
    for (const auto& [token, next] : next_) {
      const auto a = static_cast<std::size_t>(token);
      const bool is_certain = by_proposal ? static_cast<double>(members.size()) * drafts[a] >= kExpectedCountMinOfAudits
                                          : next.requests == members.size();
      if (next.agrees && is_certain && first[a] > 0.0) known.push_back(token);
    }
    std::stable_sort(known.begin(), known.end(), [&](Token a, Token b) {
      return first[static_cast<std::size_t>(a)] > first[static_cast<std::size_t>(b)];
    });
    known.resize(std::min(known.size(), std::max<std::size_t>(1, kStringCellsMax / first.size())));
    std::sort(known.begin(), known.end());
    return known;
  }

  std::size_t completed_token(const std::vector<double>& distribution, std::size_t request) const {
    double left = audit_uniform(key_, static_cast<std::int64_t>(request), 1, AuditUse::completion);
    std::size_t last = 0;
    for (std::size_t i = 0; i < distribution.size(); ++i) {
      if (!(distribution[i] > 0.0)) continue;
      last = i;
      if (left < distribution[i]) break;
      left -= distribution[i];
    }
    return last;
  }

  // The row after a first token: a request and a row of it that show it.
  struct Next {
    std::size_t request;
    std::uint32_t row;
    DistributionDigest distribution;
    bool agrees = true;        // all requests that show it
    std::size_t requests = 0;  // that show it
  };

  std::vector<double> next_distribution(Token first) {
    const Next& next = next_.at(first);
    return target_distribution_of(sample_.requests[next.request], next.row, workspace_);
  }

  const StepSample& sample_;
  std::span<const StepRecord> records_;
  const Assumptions& assumed_;
  std::uint64_t key_;
  StepWorkspace workspace_;
  std::map<Token, Next> next_;
};

}  // namespace

SharedContexts fit_shared_contexts(const StepSample& sample, std::span<const StepRecord> records,
                                   const Assumptions& assumed, std::uint64_t key) {
  check_groups(sample, records);
  SharedContexts shared;
  ContextFitter fitter(sample, records, assumed, key);
  const auto by_first_token = grouped(
      records.size(), [&](std::size_t b) { return std::pair(group_of(sample, b), records[b].first_distribution); });
  shared.groups = static_cast<std::int64_t>(by_first_token.size());
  for (const Members& members : by_first_token) {
    if (records[members.front()].first_row_has_choice) shared.first_token.add(fitter.fit_first_token(members));
  }
  const auto by_context = grouped(records.size(), [&](std::size_t b) {
    return std::tuple(group_of(sample, b), records[b].first_distribution, records[b].draft_distribution,
                      records[b].depth_max == 0);
  });
  for (const Members& members : by_context) shared.strings.add(fitter.fit_strings(members));
  return shared;
}

}  // namespace draftproof
