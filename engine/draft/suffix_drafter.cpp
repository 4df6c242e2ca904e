#include "engine/draft/suffix_drafter.hpp"

#include <algorithm>
#include <queue>
#include <string>

#include "base/error.hpp"
#include "reference/verify/tree_attention.hpp"

namespace draftproof {

SuffixDrafter::SuffixDrafter(const SuffixParameters& parameters)
    : parameters_(parameters), earlier_(parameters.depth_max) {
  const auto require = [](bool holds, const char* what, double is, const char* expected) {
    if (!holds)
      throw usage_error("suffix decoding", std::string(what) + " is " + std::to_string(is) + "; expected " + expected);
  };
  require(parameters.match_min >= 1 && parameters.match_min < parameters.depth_max, "match_min", parameters.match_min,
          "at least 1 and less than the depth");
  require(parameters.factor > 0.0, "factor", parameters.factor, "a number above 0");
  require(parameters.least_probability > 0.0 && parameters.least_probability <= 1.0, "least_probability",
          parameters.least_probability, "a value in (0, 1]");
  require(parameters.remembered_tokens >= 0, "remembered_tokens", static_cast<double>(parameters.remembered_tokens),
          "0 or more");
}

// The request's tree, brought up to its context. Where that did not grow out of what was seen, it is built again.
SuffixTree& SuffixDrafter::tree_of(const DraftContext& context) {
  auto [found, is_new] = requests_.try_emplace(context.request, parameters_.depth_max);
  Request& request = found->second;
  const bool grew = request.tokens.size() <= context.tokens.size() &&
                    std::equal(request.tokens.begin(), request.tokens.end(), context.tokens.begin());
  if (!grew) request = Request(parameters_.depth_max);
  for (std::size_t i = request.tokens.size(); i < context.tokens.size(); ++i) request.tree.append(context.tokens[i]);
  request.tokens.assign(context.tokens.begin(), context.tokens.end());
  return request.tree;
}

// Places of the context's ends in a tree that it is no part of, by length from 1.
std::vector<SuffixTree::Place> SuffixDrafter::found_ends(const SuffixTree& tree, std::span<const Token> context) const {
  std::vector<SuffixTree::Place> places;
  // Where nothing followed an end, nothing followed a longer one.
  for (std::size_t length = 1; length <= std::min(context.size(), static_cast<std::size_t>(parameters_.depth_max) - 1);
       ++length) {
    const auto place = tree.find(context.last(length));
    if (!place || !tree.most_frequent(*place)) break;
    places.push_back(*place);
  }
  return places;
}

// The longest ends first.
void SuffixDrafter::consider(const SuffixTree& tree, std::span<const SuffixTree::Place> ends, int draft_len_max,
                             Match& best) const {
  const auto least = static_cast<std::size_t>(parameters_.match_min);
  for (std::size_t length = std::min(ends.size(), static_cast<std::size_t>(parameters_.depth_max) - 1); length >= least;
       --length) {
    Match match{&tree, ends[length - 1], length, {}, {}, 0.0};
    const double limit = std::min(static_cast<double>(draft_len_max), parameters_.factor * static_cast<double>(length));
    double probability = 1.0;
    for (SuffixTree::Place at = match.place; static_cast<double>(match.path.size() + 1) <= limit;) {
      const auto next = tree.most_frequent(at);
      if (!next) break;
      const double frequency = static_cast<double>(next->count) / static_cast<double>(next->total);
      probability *= frequency;
      if (probability < parameters_.least_probability) break;
      match.evidence.push_back({static_cast<std::int32_t>(length + match.path.size()), static_cast<float>(frequency)});
      match.path.push_back(next->token);
      match.score += probability;
      at = next->place;
    }
    if (match.score > best.score) best = std::move(match);
  }
}

void SuffixDrafter::draft_tree_below(const Match& match, const DraftPlan& plan, Draft& out) const {
  struct Candidate {
    double probability;
    std::int64_t order;  // of equal ones the first found
    Token token;
    std::int32_t parent;
    std::int32_t depth;
    float frequency;
    SuffixTree::Place place;
    bool operator<(const Candidate& other) const {
      return probability != other.probability ? probability < other.probability : order > other.order;
    }
  };
  std::priority_queue<Candidate> open;
  std::int64_t order = 0;
  const auto expand = [&](const SuffixTree::Place& place, std::int32_t parent, std::int32_t depth, double probability) {
    auto all = match.tree->continuations(place);
    std::ranges::sort(all, {}, &SuffixTree::Continuation::token);
    for (const auto& next : all) {
      const double frequency = static_cast<double>(next.count) / static_cast<double>(next.total);
      const double of_path = probability * frequency;
      if (of_path >= parameters_.least_probability)
        open.push({of_path, order++, next.token, parent, depth, static_cast<float>(frequency), next.place});
    }
  };
  DraftTree tree;
  std::vector<NodeEvidence> evidence;
  expand(match.place, kRootNode, 1, 1.0);
  while (!open.empty() && tree.size() < plan.shape.size()) {
    const Candidate node = open.top();
    open.pop();
    tree.add(node.token, node.parent);
    evidence.push_back({static_cast<std::int32_t>(match.length) + node.depth - 1, node.frequency});
    if (node.depth < plan.draft_len_max()) expand(node.place, tree.size() - 1, node.depth + 1, node.probability);
  }
  const std::vector<std::int32_t> order_by_depth = breadth_first_order(tree.parents);
  out.tree = reordered(tree, order_by_depth);
  for (const std::int32_t node : order_by_depth) out.evidence.push_back(evidence[static_cast<std::size_t>(node)]);
}

void SuffixDrafter::propose(const DraftContext& context, const DraftPlan& plan, DraftChance&, Draft& out) {
  out.proposal_kind = ProposalKind::one_hot;
  out.draft_parameters = {};
  out.logits.clear();
  out.evidence.clear();
  Match best;
  const int draft_len_max = plan.draft_len_max();
  const SuffixTree& own = tree_of(context);
  consider(own, own.ends(), draft_len_max, best);
  if (earlier_.num_tokens() > 0) consider(earlier_, found_ends(earlier_, context.tokens), draft_len_max, best);
  if (!plan.is_chain() && plan.sampling == DraftSampling::any && best.tree != nullptr) {
    draft_tree_below(best, plan, out);
  } else {
    out.tree = DraftTree::chain(best.path);
    out.evidence = std::move(best.evidence);
  }
}

void SuffixDrafter::finish(const DraftContext& context) {
  requests_.erase(context.request);
  if (parameters_.across_requests) remember(context.output());
}

void SuffixDrafter::remember(std::span<const Token> output) {
  const auto append = [&](std::span<const Token> tokens) {
    for (const Token token : tokens) earlier_.append(token);
    earlier_.end_document();
  };
  outputs_.emplace_back(output.begin(), output.end());
  append(output);
  if (earlier_.num_tokens() <= parameters_.remembered_tokens) return;
  std::int64_t kept = 0;
  auto first = outputs_.end();
  while (first != outputs_.begin() &&
         kept + static_cast<std::int64_t>(std::prev(first)->size()) <= parameters_.remembered_tokens / 2) {
    --first;
    kept += static_cast<std::int64_t>(first->size());
  }
  outputs_.erase(outputs_.begin(), first);
  earlier_ = SuffixTree(parameters_.depth_max);
  for (const std::vector<Token>& tokens : outputs_) append(tokens);
}

}  // namespace draftproof
