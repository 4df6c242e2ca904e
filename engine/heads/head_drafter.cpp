#include "engine/heads/head_drafter.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/heads/head_growth.hpp"
#include "reference/step/dense_step_rows.hpp"
#include "reference/verify/sampled_tree.hpp"

namespace draftproof {

HeadDrafter::HeadDrafter(std::shared_ptr<DraftHead> head, std::optional<float> draft_temperature, bool guided)
    : head_(std::move(head)), draft_temperature_(draft_temperature), guided_(guided) {
  if (guided && head_->description().select_top_k != 0)
    throw usage_error("drafter",
                      "is guided, and the selector of DFlash 2 leaves other tokens of the row that guides; "
                      "expected drafts that are not guided");
}

void HeadDrafter::propose(const DraftContext&, const DraftPlan&, DraftChance&, Draft&) {
  throw usage_error("drafter",
                    "is a head, which reads the features of requests that an engine runs; expected a "
                    "drafter that reads tokens");
}

std::unique_ptr<DraftCache> HeadDrafter::make_cache(std::int32_t num_blocks) const {
  return std::make_unique<HeadEntries>(*head_, num_blocks);
}

void HeadDrafter::observe(std::span<const ComputedTokens> computed, std::span<const float> features,
                          DraftCache* draft_cache) {
  for (const ComputedTokens& of : computed) dynamic_cast<HeadEntries&>(*draft_cache).keep(of, features);
}

// Empty where a stream's tokens before the newest are computed in this step (a part of the prompt, or all again after a
// preemption): their features are not there yet, nor is the KV.
std::vector<HeadDrafter::Side> HeadDrafter::sides_of(const DraftContext& context, HeadEntries& cache) const {
  std::vector<Side> sides{{{context.request, 0, context.stream, context.kv}}};
  if (guided_ && context.parameters.guidance_scale != 1.0f)
    sides.push_back({{context.request, 1, context.companion_stream, context.companion_kv}});
  if (!std::ranges::all_of(sides, [&](const Side& side) { return cache.reaches(side); })) return {};
  return sides;
}

HeadDrafter::Growth HeadDrafter::growth_of(DraftJob& job) const {
  const DraftPlan& plan = job.plan;
  const bool any = plan.sampling == DraftSampling::any;
  Growth growth{&job, Growth::Kind::chain};
  growth.root.parent = kRootNode;
  growth.length_max = plan.draft_len_max();
  if (const std::int32_t of_head = head_->draft_len_max(); of_head != 0)
    growth.length_max = std::min(growth.length_max, of_head);
  growth.parameters.temperature = draft_temperature_.value_or(job.context.parameters.temperature);
  if (!draft_temperature_) growth.parameters.filters = job.context.parameters.filters;
  const bool greedy = growth.parameters.temperature == 0.0f;
  if (plan.coupled || plan.num_paths > 1) {
    growth.kind = Growth::Kind::paths;
  } else if (plan.is_chain()) {
    growth.kind = any || greedy ? Growth::Kind::most_probable : Growth::Kind::chain;
  } else {
    growth.kind = any ? Growth::Kind::dynamic : Growth::Kind::tree;
    growth.below.resize(static_cast<std::size_t>(plan.shape.size()) + 1);
    for (std::int32_t i = 0; i < plan.shape.size(); ++i)
      growth.below[DraftTree::row_after(plan.shape.parents[static_cast<std::size_t>(i)])].push_back(i);
  }
  // A greedy row has no second child: trees for greedy requests are drawn at temperature 1, and ranked so.
  if (growth.kind == Growth::Kind::dynamic || growth.kind == Growth::Kind::most_probable ||
      (growth.kind == Growth::Kind::tree && greedy) ||
      (growth.kind == Growth::Kind::paths && greedy && !plan.coupled)) {
    growth.parameters = {};
  }
  Draft& out = *job.out;
  out = {};
  if (growth.kind == Growth::Kind::most_probable || growth.kind == Growth::Kind::dynamic) return growth;
  out.proposal_kind = ProposalKind::logits;
  out.draft_parameters = growth.parameters;
  return growth;
}

void HeadDrafter::propose_all(std::span<DraftJob> jobs, DraftCache* draft_cache) {
  auto& cache = dynamic_cast<HeadEntries&>(*draft_cache);
  std::vector<Growth> growths;
  std::int64_t slots = 0;
  const auto draft = [&] {
    grow(growths, cache);
    growths.clear();
    slots = 0;
  };
  for (DraftJob& job : jobs) {
    *job.out = {};
    std::vector<Side> sides = sides_of(job.context, cache);
    if (sides.empty()) continue;
    Growth growth = growth_of(job);
    growth.sides = std::move(sides);
    const std::int64_t needed = std::max(growth.nodes_max(), head_->description().block_len) * std::ssize(growth.sides);
    if (slots + needed > HeadEntries::kScratchSlots) draft();
    slots += needed;
    growths.push_back(std::move(growth));
  }
  draft();
}

void HeadDrafter::grow(std::span<Growth> growths, HeadEntries& cache) {
  if (growths.empty()) return;
  compute_roots(growths, cache);
  std::int64_t scratch = cache.scratch();
  for (const Growth& growth : growths)
    scratch += std::ssize(growth.sides) * head_->description().block_len;  // 0 of heads without blocks
  for (bool grows = true; grows;) {
    grows = false;
    for (Growth& growth : growths) {
      try {
        if (!growth.job->failure) add_level(growth);
      } catch (const Error&) {
        growth.job->failure = std::current_exception();
      }
      if (growth.job->failure) growth.frontier.clear();
      for (const std::int32_t node : growth.frontier)
        for (std::size_t s = 0; s < growth.sides.size(); ++s) growth.at(node).slots[s] = scratch++;
      grows = grows || !growth.frontier.empty();
    }
    if (grows) compute_frontiers(growths, cache);
  }
  for (Growth& growth : growths) {
    if (growth.job->failure) continue;
    finish_draft(growth);
    if (on_draft) on_draft({growth.job->context.request, growth.job->context.stream, growth.job->out});
  }
}

bool HeadDrafter::follows_grammar(const Growth& growth) {
  return growth.job->context.follows_grammar;
}

// The row after a node over the target's vocabulary: tokens that the head does not draft are impossible, and those that
// the request's grammar does not allow.
std::vector<float> HeadDrafter::target_row_after(const Growth& growth, std::int32_t node) const {
  std::vector<float> full = scattered(row_after(growth, node));
  if (!follows_grammar(growth)) return full;
  const auto allow = [&] { growth.job->context.grammar->apply(growth.path(node), full); };
  allow();
  if (std::ranges::any_of(full, [](float x) { return x != -std::numeric_limits<float>::infinity(); })) return full;
  // The head drafts none of them: they are equally probable.
  std::ranges::fill(full, 0.0f);
  allow();
  return full;
}

std::vector<float> HeadDrafter::scattered(std::span<const float> row) const {
  if (head_->description().draft_tokens.empty()) return {row.begin(), row.end()};
  std::vector<float> full(static_cast<std::size_t>(head_->target_vocab_size()),
                          -std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < row.size(); ++i)
    full[static_cast<std::size_t>(head_->token_of(static_cast<std::int64_t>(i)))] = row[i];
  return full;
}

// The proposal distribution after a node: over the target's vocabulary, of dynamic trees without a grammar over the
// head's rows.
const Distribution& HeadDrafter::process(const Growth& growth, std::int32_t node) {
  const std::span<const float> row = row_after(growth, node);
  const bool over_head_rows = growth.kind == Growth::Kind::dynamic && !follows_grammar(growth);
  full_row_ = over_head_rows ? std::vector<float>() : target_row_after(growth, node);
  RowInput input;
  input.logits = full_row_.empty() ? RowView{DType::f32, row.data(), static_cast<std::int64_t>(row.size())}
                                   : RowView{DType::f32, full_row_.data(), static_cast<std::int64_t>(full_row_.size())};
  input.parameters = growth.parameters;
  input.row = static_cast<std::uint32_t>(growth.at(node).depth);
  pipeline_.run(input, distribution_);
  return distribution_;
}

std::span<const float> HeadDrafter::row_after(const Growth& growth, std::int32_t node) {
  const Growth::Node& of = growth.at(node);
  return of.row.empty() ? growth.sides[0].marginals[static_cast<std::size_t>(of.depth)] : of.row;
}

// That the draft after a node is accepted; known before it is drawn.
float HeadDrafter::confidence_after(const Growth& growth, std::int32_t node) {
  const Growth::Node& of = growth.at(node);
  if (!head_->weights().confidence.empty()) {
    const Token before = node == kRootNode ? growth.job->context.stream.back() : of.token;
    return head_->confidence(growth.block_states[static_cast<std::size_t>(of.depth)], before);
  }
  return static_cast<float>(std::min(1.0, std::ranges::max(dense_row(process(growth, node)))));
}

// Adds the level behind the frontier, or the first one, and leaves in the frontier the nodes whose rows are needed.
void HeadDrafter::add_level(Growth& growth) {
  const DraftPlan& plan = growth.job->plan;
  DraftChance& chance = *growth.job->chance;
  const bool is_first = growth.nodes.empty();
  std::vector<std::int32_t> behind{kRootNode};
  if (!is_first) behind = std::exchange(growth.frontier, {});
  if (behind.empty()) return;
  const std::int32_t depth = growth.at(behind.front()).depth + 1;
  const bool is_last = depth == growth.length_max;
  if (depth > growth.length_max) return;
  for (const std::int32_t node : behind)
    if (on_row)
      on_row({growth.job->context.request, growth.job->context.stream, growth.path(node), row_after(growth, node),
              growth.at(node).states[0],
              growth.sides.size() > 1 ? growth.job->context.companion_stream : std::span<const Token>(),
              growth.sides.size() > 1 ? growth.job->context.parameters.guidance_scale : 1.0f});
  switch (growth.kind) {
    case Growth::Kind::most_probable: {
      const std::span<const float> row = row_after(growth, behind.front());
      if (!std::ranges::all_of(row, [](float x) { return x < std::numeric_limits<float>::infinity(); }))
        throw input_error("draft", "a row of the head's logits is not finite; expected a head whose numbers stay so");
      const float confidence = growth.job->wants_confidences ? confidence_after(growth, behind.front()) : 0.0f;
      std::vector<float> target_row;
      if (follows_grammar(growth)) target_row = target_row_after(growth, behind.front());
      const Token best = target_row.empty()
                             ? head_->token_of(std::ranges::max_element(row) - row.begin())
                             : static_cast<Token>(std::ranges::max_element(target_row) - target_row.begin());
      const std::int32_t node = growth.add(best, behind.front());
      growth.at(node).confidence = confidence;
      if (!is_last) growth.frontier = {node};
      return;
    }
    case Growth::Kind::chain: {
      const float confidence = growth.job->wants_confidences ? confidence_after(growth, behind.front()) : 0.0f;
      const Distribution& q = process(growth, behind.front());
      const std::int32_t node = growth.add(chance.draw(q, static_cast<std::uint32_t>(depth) - 1), behind.front());
      growth.at(node).confidence = confidence;
      if (!is_last) growth.frontier = {node};
      return;
    }
    case Growth::Kind::tree: {
      struct Dense {
        DraftChance& chance;
        Token draw(const DenseMasses<double>& masses, std::uint32_t row, Purpose) { return chance.draw(masses, row); }
      } dense{chance};
      DraftTree& tree = growth.job->out->tree;
      for (const std::int32_t node : behind) {
        const std::int32_t of_shape = node == kRootNode ? kRootNode : growth.in_shape[static_cast<std::size_t>(node)];
        const std::vector<std::int32_t>& children = growth.below[DraftTree::row_after(of_shape)];
        const auto count = static_cast<std::int32_t>(children.size());
        DenseMasses<double> masses = dense_row(process(growth, node));
        const std::int32_t first = tree.size();
        if (plan.sampling == DraftSampling::without_replacement)
          add_children_without_replacement(tree, node, count, std::move(masses), dense);
        else if (plan.sampling == DraftSampling::greedy)
          add_greedy_children(tree, node, count, std::move(masses), dense);
        else
          add_iid_children(tree, node, count, masses, dense);
        for (std::int32_t i = first; i < tree.size(); ++i) {
          growth.add(tree.tokens[static_cast<std::size_t>(i)], node);
          const std::int32_t shape_node = children[static_cast<std::size_t>(i - first)];
          growth.in_shape.push_back(shape_node);
          if (!is_last && !growth.below[DraftTree::row_after(shape_node)].empty()) growth.frontier.push_back(i);
        }
      }
      return;
    }
    case Growth::Kind::paths:
      for (std::int32_t list = 0; list < plan.num_paths; ++list) {
        const std::int32_t node = is_first ? kRootNode : behind[static_cast<std::size_t>(list)];
        const Distribution& q = process(growth, node);
        const auto level = static_cast<std::uint32_t>(depth) - 1;
        const auto of_list = static_cast<std::uint32_t>(list);
        const Token token =
            plan.coupled ? chance.coupled_race(q, level, of_list)
                         : chance.draw(dense_row(q), of_list * static_cast<std::uint32_t>(plan.shape.size()) + level);
        const std::int32_t added = growth.add(token, node);
        if (!is_last) growth.frontier.push_back(added);
      }
      return;
    case Growth::Kind::dynamic:
      break;
  }
  const std::int32_t first = growth.pool.size();
  for (const std::int32_t node : behind) {
    const DenseMasses<double> masses = dense_row(process(growth, node));
    std::vector<DraftCandidate> candidates;
    for (const Token row : most_probable_tokens(masses, Growth::kTreeTopK))
      candidates.push_back(
          {follows_grammar(growth) ? row : head_->token_of(row), masses[static_cast<std::size_t>(row)]});
    growth.pool.add(node, candidates, Growth::kTreeTopK);
    for (const DraftCandidate& candidate : candidates) growth.add(candidate.token, node);
  }
  if (!is_last) growth.frontier = growth.pool.best(first, Growth::kTreeTopK);
}

void HeadDrafter::finish_draft(Growth& growth) {
  const DraftPlan& plan = growth.job->plan;
  Draft& out = *growth.job->out;
  std::vector<std::int32_t> of_tree;  // node of the growth of each node of the draft
  switch (growth.kind) {
    case Growth::Kind::dynamic:
      out.tree = growth.pool.tree_of(growth.pool.best(0, plan.shape.size())).tree;
      return;
    case Growth::Kind::paths: {
      std::vector<std::vector<Token>> paths;
      for (std::int32_t node = 0; node < std::ssize(growth.nodes); ++node)
        if (growth.at(node).depth == growth.length_max) paths.push_back(growth.path(node));
      out.tree = merge_paths(paths, Duplicates::merged);
      for (std::int32_t i = 0; i < out.tree.size(); ++i) {
        const std::vector<Token> path = out.tree.path(i);
        std::int32_t node = 0;
        while (growth.path(node) != path) ++node;
        of_tree.push_back(node);
      }
      break;
    }
    case Growth::Kind::most_probable:
    case Growth::Kind::chain:
      for (const Growth::Node& node : growth.nodes) {
        out.tree.add(node.token, node.parent);
        if (growth.job->wants_confidences) out.confidences.push_back(node.confidence);
      }
      [[fallthrough]];
    case Growth::Kind::tree:
      for (std::int32_t i = 0; i < out.tree.size(); ++i) of_tree.push_back(i);
      break;
  }
  if (growth.kind == Growth::Kind::most_probable) return;
  // Rows of leaves propose nothing and stay 0; a chain has one row less than a tree.
  const auto vocab_size = static_cast<std::size_t>(head_->target_vocab_size());
  out.logits.assign((out.tree.tokens.size() + (out.tree.is_chain() ? 0 : 1)) * vocab_size, 0.0f);
  for (std::size_t row = 0; row < out.logits.size() / vocab_size; ++row) {
    const std::int32_t node = static_cast<std::int32_t>(row) - 1;
    if (out.tree.children(node).empty()) continue;
    const std::int32_t from = node == kRootNode ? kRootNode : of_tree[static_cast<std::size_t>(node)];
    std::ranges::copy(target_row_after(growth, from),
                      out.logits.begin() + static_cast<std::ptrdiff_t>(row * vocab_size));
  }
}

}  // namespace draftproof
