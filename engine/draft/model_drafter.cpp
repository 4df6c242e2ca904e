#include "engine/draft/model_drafter.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "reference/logits/edits.hpp"
#include "reference/step/dense_step_rows.hpp"
#include "reference/verify/sampled_tree.hpp"

namespace draftproof {
namespace {

using Path = std::vector<Token>;

// The draws of sampled_tree.hpp.
struct DenseChance {
  DraftChance& chance;
  Token draw(const DenseMasses<double>& masses, std::uint32_t row, Purpose) { return chance.draw(masses, row); }
};

// Rows by path and by node: what draws a tree asks in the way that it knows.
template <class... Ways>
struct RowsByPathOrNode : Ways... {
  using Ways::operator()...;
};
template <class... Ways>
RowsByPathOrNode(Ways...) -> RowsByPathOrNode<Ways...>;

std::vector<Path> race_paths(const DraftPlan& plan, auto row_after, DraftChance& chance) {
  std::vector<Path> paths(static_cast<std::size_t>(plan.num_paths));
  for (std::uint32_t list = 0; list < paths.size(); ++list)
    for (std::uint32_t level = 0; level < static_cast<std::uint32_t>(plan.shape.size()); ++level) {
      const Token token = chance.coupled_race(row_after(paths[list]), level, list);
      paths[list].push_back(token);
    }
  return paths;
}

DraftTree draw_tree(const DraftPlan& plan, auto dense_row_after, DraftChance& chance) {
  DenseChance dense{chance};
  switch (plan.sampling) {
    case DraftSampling::any:
      return top_k_children(dense_row_after, plan.shape);
    case DraftSampling::without_replacement:
      return draw_children_without_replacement(dense_row_after, plan.shape, dense);
    case DraftSampling::greedy:
      return draw_greedy_children(dense_row_after, plan.shape, dense);
    case DraftSampling::independent_paths:
      return draw_merged_paths(dense_row_after, plan.num_paths, plan.shape.size(), dense);
    case DraftSampling::drawn:
    case DraftSampling::independent:
      break;
  }
  return draw_iid_children(dense_row_after, plan.shape, dense);
}

}  // namespace

ModelDrafter::ModelDrafter(LanguageModel& model, const RowParameters& draft_parameters)
    : model_(model), draft_parameters_(draft_parameters) {
  validate(draft_parameters, "draft parameters");
  if (needs_history(draft_parameters, {}) || draft_parameters.guidance_scale != 1.0f)
    throw usage_error("draft parameters",
                      "has penalties or guidance, which are the target's alone; expected temperature and filters only");
}

const Distribution& ModelDrafter::process(std::span<const float> logits, std::uint32_t row) {
  RowInput input;
  input.logits = {DType::f32, logits.data(), model_.vocab_size()};
  input.parameters = draft_parameters_;
  input.row = row;
  pipeline_.run(input, distribution_);
  return distribution_;
}

void ModelDrafter::propose_chain(const DraftPlan& plan, DraftChance& chance, Draft& out) {
  const auto vocab_size = static_cast<std::size_t>(model_.vocab_size());
  out.logits.resize(plan.shape.parents.size() * vocab_size);
  for (std::uint32_t row = 0; row < plan.shape.parents.size(); ++row) {
    const std::span<float> logits = std::span(out.logits).subspan(row * vocab_size, vocab_size);
    model_.logits(context_, logits, request_);
    if (mask_ != nullptr) mask_->apply(out.tree.tokens, logits);
    const Distribution& q = process(logits, row);
    context_.push_back(plan.coupled ? chance.coupled_race(q, row, 0) : chance.draw(q, row));
    out.tree.add(context_.back(), static_cast<std::int32_t>(row) - 1);
  }
}

void ModelDrafter::propose_tree(const DraftPlan& plan, DraftChance& chance, Draft& out) {
  const auto vocab_size = static_cast<std::size_t>(model_.vocab_size());
  const std::size_t context_len = context_.size();
  std::map<Path, std::vector<float>> rows;  // the model's logits after the paths that were asked for
  const auto logits_after = [&](std::span<const Token> path) -> std::span<const float> {
    const auto [found, is_new] = rows.try_emplace(Path(path.begin(), path.end()));
    if (is_new) {
      context_.resize(context_len);
      context_.insert(context_.end(), path.begin(), path.end());
      found->second.resize(vocab_size);
      model_.logits(context_, found->second, request_);
      if (mask_ != nullptr) mask_->apply(path, found->second);
    }
    return found->second;
  };
  // Rows of all nodes of a tree that grows level by level, in one forward pass.
  std::vector<float> node_rows;
  std::int32_t num_known = kRootNode;  // nodes with a row; kRootNode: not even the context
  const auto logits_at = [&](const DraftTree& tree, std::int32_t node) -> std::span<const float> {
    if (node >= num_known) {
      node_rows.resize((tree.tokens.size() + 1) * vocab_size);
      model_.tree_logits(context_, tree.tokens, tree.parents, node_rows, request_);
      num_known = tree.size();
      for (std::int32_t known = kRootNode; mask_ != nullptr && known < num_known; ++known)
        mask_->apply(known == kRootNode ? Path() : tree.path(known),
                     std::span(node_rows).subspan(DraftTree::row_after(known) * vocab_size, vocab_size));
    }
    return std::span(node_rows).subspan(DraftTree::row_after(node) * vocab_size, vocab_size);
  };
  const auto row_after = [&](std::span<const Token> path) -> const Distribution& {
    return process(logits_after(path), static_cast<std::uint32_t>(path.size()));
  };
  const RowsByPathOrNode dense{
      [&](std::span<const Token> path) { return dense_row(row_after(path)); },
      [&](const DraftTree& tree, std::int32_t node) {
        return dense_row(process(logits_at(tree, node), static_cast<std::uint32_t>(tree.depth(node))));
      }};
  out.tree = plan.coupled ? merge_paths(race_paths(plan, row_after, chance), Duplicates::merged)
                          : draw_tree(plan, dense, chance);
  // Rows of leaves propose nothing and stay 0; a tree that came out as a chain has one row less.
  const bool is_chain = out.tree.is_chain();
  const bool has_node_rows = num_known != kRootNode;
  out.logits.assign((out.tree.tokens.size() + (is_chain ? 0 : 1)) * vocab_size, 0.0f);
  for (std::size_t row = 0; row < out.logits.size() / vocab_size; ++row) {
    const std::int32_t node = static_cast<std::int32_t>(row) - 1;
    if (out.tree.children(node).empty()) continue;
    std::ranges::copy(has_node_rows ? logits_at(out.tree, node) : logits_after(out.tree.path(node)),
                      out.logits.begin() + static_cast<std::ptrdiff_t>(row * vocab_size));
  }
}

void ModelDrafter::propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) {
  if (as_request_) {
    draft_parameters_.temperature = context.parameters.temperature;
    draft_parameters_.filters = context.parameters.filters;
    // A greedy row has no second child: trees for greedy requests are drawn at temperature 1.
    if (draft_parameters_.temperature == 0.0f && !plan.is_chain() && !plan.coupled) {
      draft_parameters_.temperature = 1.0f;
      draft_parameters_.filters = {};
    }
  }
  out.proposal_kind = ProposalKind::logits;
  out.draft_parameters = draft_parameters_;
  out.tree = {};
  request_ = context.request;
  mask_ = context.follows_grammar ? context.grammar : nullptr;
  context_.assign(context.tokens.begin(), context.tokens.end());
  if (plan.is_chain()) {
    propose_chain(plan, chance, out);
  } else {
    propose_tree(plan, chance, out);
  }
  if (discards_kv_) model_.forget(request_);
}

}  // namespace draftproof
