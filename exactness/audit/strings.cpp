#include "exactness/audit/strings.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "exactness/statistics/pooling.hpp"

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

  // Strings of `tokens` tokens: a cell for each path whose rows are all known, cut short where one is not.
  CountFit fit_strings(const Members& members, std::size_t tokens) {
    if (is_small(members) || records_[members.front()].depth_max == 0) return {};
    if (tokens == 2) find_known_rows(members);
    const StringTree tree = tree_of_strings(members, tokens);
    if (tree.depth < tokens) return {};
    std::vector<std::int64_t> counts(tree.distribution.size(), 0);
    for (const std::size_t b : members) ++counts[cell_of(tree, b)];
    return fit_counts(counts, tree.distribution, [&](std::size_t cell) {
      CountedCell named{{{"request", static_cast<std::int64_t>(members.front())}}};
      const std::vector<Token> path = tree.path(tree.cells[cell].parent, tree.cells[cell].token);
      for (std::size_t i = 0; i < path.size(); ++i)
        named.keys.emplace_back(i == 0 ? "token" : i == 1 ? "next_token" : "token_" + std::to_string(i + 1), path[i]);
      return named;
    });
  }

 private:
  static bool is_small(const Members& members) {
    return static_cast<double>(members.size()) < 2.0 * kExpectedCountMinOfAudits;
  }

  // The row after a path of drafts: a request and a row of it that show it.
  struct Next {
    std::size_t request;
    std::uint32_t row;
    DistributionDigest distribution;
    double drafted;
    bool agrees = true;        // all requests that show it
    std::size_t requests = 0;  // that show it
  };

  // Tokens one after the other: an inner node has a known row, and for each token a child or a cell.
  struct StringTree {
    struct Node {
      std::int64_t parent = -1;
      Token token = 0;  // that follows the parent
      std::size_t depth = 0;
      std::vector<double> row = {};          // [V]
      std::vector<std::int64_t> below = {};  // [V] an inner node, or -1 - cell
    };
    struct Cell {
      std::int64_t parent;
      Token token;
    };
    std::vector<Node> nodes;
    std::vector<Cell> cells;
    std::vector<double> distribution;  // of the cells
    std::size_t depth = 0;             // tokens of the longest possible one

    std::vector<Token> path(std::int64_t node, Token token) const {
      std::vector<Token> reversed{token};
      for (; nodes[static_cast<std::size_t>(node)].parent >= 0; node = nodes[static_cast<std::size_t>(node)].parent)
        reversed.push_back(nodes[static_cast<std::size_t>(node)].token);
      return {reversed.rbegin(), reversed.rend()};
    }
  };

  // A choice that the emitted tokens have no part in, or it would bias the counts: a row is known iff the drafts of so
  // many requests show it that at least one is certain but for e^-25; and every request that shows it agrees on it.
  // Where the first sibling is drawn from q, q says how many; else all of them must.
  void find_known_rows(const Members& members) {
    known_.clear();
    std::vector<std::size_t> as_deep(kStringTokensMax + 1, 0);  // requests whose first path has so many drafts
    for (const std::size_t b : members) {
      const std::size_t deepest = std::min<std::size_t>(records_[b].first_path_depth, kStringTokensMax);
      for (std::size_t depth = 0; depth <= deepest; ++depth) ++as_deep[depth];
      for (const NextRow& next : records_[b].next) {
        Next& known = known_.try_emplace(next.path, Next{b, next.row, next.distribution, next.drafted}).first->second;
        known.agrees = known.agrees && known.distribution == next.distribution && known.drafted == next.drafted;
        ++known.requests;
      }
    }
    const bool by_proposal = assumed_.drafts != DraftSampling::any && assumed_.drafts != DraftSampling::greedy;
    std::erase_if(known_, [&](const auto& entry) {
      const Next& next = entry.second;
      const bool is_certain =
          by_proposal ? static_cast<double>(as_deep[entry.first.size()]) * next.drafted >= kExpectedCountMinOfAudits
                      : next.requests == members.size();
      return !next.agrees || !is_certain;
    });
  }

  // The likeliest paths are followed first, until there are too many cells.
  StringTree tree_of_strings(const Members& members, std::size_t tokens) {
    struct Open {
      double probability;
      std::int64_t parent;
      Token token;
      const Next* next;
      // In the order of probability, and then of their making.
      bool operator<(const Open& other) const {
        return std::tuple(probability, -parent, -token) < std::tuple(other.probability, -other.parent, -other.token);
      }
    };
    StringTree tree;
    std::priority_queue<Open> open;
    const auto add_cell = [&](double probability, std::int64_t parent, Token token) {
      StringTree::Node& above = tree.nodes[static_cast<std::size_t>(parent)];
      above.below[static_cast<std::size_t>(token)] = -1 - static_cast<std::int64_t>(tree.cells.size());
      tree.cells.push_back({parent, token});
      tree.distribution.push_back(probability);
      if (probability > 0.0) tree.depth = std::max(tree.depth, above.depth + 1);
    };
    const auto add_node = [&](const Open& at, std::vector<double> row) {
      const auto node = static_cast<std::int64_t>(tree.nodes.size());
      const std::size_t depth = at.parent < 0 ? 0 : tree.nodes[static_cast<std::size_t>(at.parent)].depth + 1;
      if (at.parent >= 0)
        tree.nodes[static_cast<std::size_t>(at.parent)].below[static_cast<std::size_t>(at.token)] = node;
      const std::size_t vocab_size = row.size();
      tree.nodes.push_back({at.parent, at.token, depth, std::move(row), std::vector<std::int64_t>(vocab_size)});
      for (std::size_t i = 0; i < vocab_size; ++i) {
        const auto token = static_cast<Token>(i);
        const double probability = at.probability * tree.nodes.back().row[i];
        const auto known = depth + 1 < tokens ? known_.find(tree.path(node, token)) : known_.end();
        if (known != known_.end() && probability > 0.0) {
          open.push({probability, node, token, &known->second});
        } else {
          add_cell(probability, node, token);
        }
      }
    };
    std::vector<double> first = target_distribution_of(sample_.requests[members.front()], 0, workspace_);
    const std::size_t cells_max = std::max(kStringCellsMax, 2 * first.size());
    const std::size_t vocab_size = first.size();
    add_node({1.0, -1, 0, nullptr}, std::move(first));
    while (!open.empty()) {
      const Open at = open.top();
      open.pop();
      if (tree.cells.size() + open.size() + vocab_size <= cells_max) {
        add_node(at, target_distribution_of(sample_.requests[at.next->request], at.next->row, workspace_));
      } else {
        add_cell(at.probability, at.parent, at.token);
      }
    }
    return tree;
  }

  std::size_t cell_of(const StringTree& tree, std::size_t b) const {
    const std::span<const Token> emitted = sample_.emitted(b);
    std::int64_t at = 0;
    for (std::size_t depth = 0; at >= 0; ++depth) {
      const StringTree::Node& node = tree.nodes[static_cast<std::size_t>(at)];
      const std::size_t token = depth < emitted.size()
                                    ? static_cast<std::size_t>(emitted[depth])
                                    : completed_token(node.row, b, static_cast<std::uint32_t>(depth));
      at = node.below[token];
    }
    return static_cast<std::size_t>(-1 - at);
  }

  std::size_t completed_token(const std::vector<double>& distribution, std::size_t request, std::uint32_t depth) const {
    double left = audit_uniform(key_, static_cast<std::int64_t>(request), depth, AuditUse::completion);
    std::size_t last = 0;
    for (std::size_t i = 0; i < distribution.size(); ++i) {
      if (!(distribution[i] > 0.0)) continue;
      last = i;
      if (left < distribution[i]) break;
      left -= distribution[i];
    }
    return last;
  }

  const StepSample& sample_;
  std::span<const StepRecord> records_;
  const Assumptions& assumed_;
  std::uint64_t key_;
  StepWorkspace workspace_;
  std::map<std::vector<Token>, Next> known_;  // of the members that are looked at
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
  for (const Members& members : by_context) {
    std::size_t longest = 0;
    for (const std::size_t b : members) longest = std::max<std::size_t>(longest, records[b].depth_max + std::size_t{1});
    for (std::size_t tokens = 2; tokens <= std::min(longest, kStringTokensMax); ++tokens) {
      if (shared.strings.size() < tokens - 1) shared.strings.emplace_back();
      shared.strings[tokens - 2].add(fitter.fit_strings(members, tokens));
    }
  }
  return shared;
}

}  // namespace draftproof
