#include "engine/scheduler/draft_selection.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace draftproof {
namespace {

// The longest match of each class but the last, which has all longer ones.
constexpr std::array<std::int32_t, 7> kLongest{1, 2, 3, 4, 6, 9, 14};
// Shares before anything is observed, between those of greedy decoding and of temperature 1 on the project's prompts.
constexpr std::array<double, 8> kPrior{0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.88, 0.93};
constexpr double kPriorWeight = 6.0;  // observations
constexpr double kLikelihoodMax = 0.99;

std::size_t class_of(std::int32_t match_len) {
  return static_cast<std::size_t>(std::ranges::lower_bound(kLongest, match_len) - kLongest.begin());
}

// The draft of these nodes, ascending and with their parents. It was looked up, so it has no logits.
void keep_nodes(Draft& draft, std::span<const std::int32_t> nodes) {
  std::vector<std::int32_t> new_node(draft.tree.tokens.size(), kRootNode);
  DraftTree tree;
  std::vector<NodeEvidence> evidence;
  for (const std::int32_t node : nodes) {
    const auto i = static_cast<std::size_t>(node);
    const std::int32_t parent = draft.tree.parents[i];
    new_node[i] =
        tree.add(draft.tree.tokens[i], parent == kRootNode ? kRootNode : new_node[static_cast<std::size_t>(parent)]);
    evidence.push_back(draft.evidence[i]);
  }
  draft.tree = std::move(tree);
  draft.evidence = std::move(evidence);
}

}  // namespace

DraftSelection::DraftSelection(std::shared_ptr<const StepCost> cost) : cost_(std::move(cost)) {
  for (std::size_t c = 0; c < counts_.size(); ++c) counts_[c] = {kPrior[c] * kPriorWeight, kPriorWeight};
}

double DraftSelection::likelihood(const NodeEvidence& evidence) const {
  const Counts& counts = counts_[class_of(evidence.match_len)];
  return std::min(counts.came / counts.promised * static_cast<double>(evidence.frequency), kLikelihoodMax);
}

void DraftSelection::choose(std::span<const Offer> offers, std::int64_t rows) const {
  struct Candidate {
    double likelihood;  // of its whole path
    std::size_t offer;
    std::int32_t node;
    std::int32_t rows;
    double per_row() const { return likelihood / rows; }
  };
  std::vector<Candidate> candidates;
  std::vector<double> of_path;
  std::int64_t own_rows = 0;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const Draft& draft = *offers[i].draft;
    own_rows += offers[i].num_streams;
    if (draft.evidence.empty()) {
      const std::int64_t drafted = std::int64_t{draft.tree.size()} * offers[i].num_streams;
      rows += drafted;
      own_rows += drafted;
      continue;
    }
    of_path.clear();
    for (std::int32_t node = 0; node < draft.tree.size(); ++node) {
      const std::int32_t parent = draft.tree.parents[static_cast<std::size_t>(node)];
      of_path.push_back((parent == kRootNode ? 1.0 : of_path[static_cast<std::size_t>(parent)]) *
                        likelihood(draft.evidence[static_cast<std::size_t>(node)]));
      candidates.push_back({of_path.back(), i, node, offers[i].num_streams});
    }
  }
  if (candidates.empty()) return;
  std::ranges::stable_sort(candidates, std::ranges::greater(), &Candidate::per_row);  // parents stay before children
  const auto batch = static_cast<std::int64_t>(offers.size());
  auto tokens = static_cast<double>(batch);
  const double prompts_ns =
      cost_->target_ns(planned_pass(rows, batch)) - cost_->target_ns(planned_pass(std::min(own_rows, rows), batch));
  double best = tokens / (cost_->target_ns(planned_pass(rows, batch)) - prompts_ns);
  std::size_t kept = 0;
  for (std::size_t n = 0; n < candidates.size(); ++n) {
    tokens += candidates[n].likelihood;
    rows += candidates[n].rows;
    const double goodput = tokens / (cost_->target_ns(planned_pass(rows, batch)) - prompts_ns);
    if (goodput <= best) continue;
    best = goodput;
    kept = n + 1;
  }
  std::vector<std::vector<std::int32_t>> nodes(offers.size());
  for (std::size_t n = 0; n < kept; ++n) nodes[candidates[n].offer].push_back(candidates[n].node);
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].draft->evidence.empty()) continue;
    std::ranges::sort(nodes[i]);
    keep_nodes(*offers[i].draft, nodes[i]);
  }
}

void DraftSelection::observe(const LookedUpDraft& offered, std::span<const Token> emitted) {
  if (offered.evidence.empty()) return;
  std::int32_t at = kRootNode;
  for (const Token token : emitted) {
    std::int32_t next = kRootNode;
    for (const std::int32_t node : offered.tree.children(at)) {
      const NodeEvidence& evidence = offered.evidence[static_cast<std::size_t>(node)];
      const bool came = offered.tree.tokens[static_cast<std::size_t>(node)] == token;
      Counts& counts = counts_[class_of(evidence.match_len)];
      counts.came += came ? 1.0 : 0.0;
      counts.promised += static_cast<double>(evidence.frequency);
      if (came) next = node;
    }
    if (next == kRootNode) return;
    at = next;
  }
}

}  // namespace draftproof
