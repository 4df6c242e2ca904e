#include "studies/tree/tree_trial.hpp"

#include "engine/draft/planned_tree.hpp"
#include "reference/step/verify_step_of.hpp"

namespace draftproof {
namespace {

RowMatrix matrix_of(const std::vector<float>& values, std::int64_t vocab_size) {
  return {DType::f32, values.data(), static_cast<std::int64_t>(values.size()) / vocab_size, vocab_size, vocab_size};
}

VerifyOptions options_of(const VerifierChoice& verifier) {
  VerifyOptions options;
  options.verifier = verifier;
  options.logprobs = options.raw_logprobs = false;
  return options;
}

}  // namespace

DraftTree drawn_tree(const DraftPlan& plan, DraftPair& pair, std::uint64_t seed) {
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, seed, 0);
  return draw_planned_tree(
      plan, [&](std::span<const Token> path) -> const PairRow& { return pair.draft(path); }, chance);
}

void TreeTrial::fill(const DraftTree& tree, const std::vector<PairRow>& target, DraftPair& pair, std::uint64_t seed) {
  const auto vocab_size = static_cast<std::size_t>(pair.vocab_size());
  const std::int32_t proposal_rows = tree.size() + (tree.is_chain() ? 0 : 1);
  target_.clear();
  for (const PairRow& row : target) target_.insert(target_.end(), row.begin(), row.end());
  proposal_.assign(static_cast<std::size_t>(proposal_rows) * vocab_size, 0.0f);  // leaves propose nothing
  for (std::int32_t row = 0; row < proposal_rows; ++row) {
    if (tree.children(row - 1).empty()) continue;
    const PairRow& q = pair.draft(tree.path(row - 1));
    std::ranges::copy(q, proposal_.begin() + static_cast<std::ptrdiff_t>(row) * pair.vocab_size());
  }
  request_ = {};
  request_.draft = tree;
  request_.target_is_probabilities = true;
  request_.target = matrix_of(target_, pair.vocab_size());
  request_.proposal_kind = ProposalKind::probabilities;
  request_.proposal = matrix_of(proposal_, pair.vocab_size());
  request_.seed = seed;
}

std::size_t TreeTrial::accepted(const DraftTree& tree, const std::vector<PairRow>& target, DraftPair& pair,
                                const VerifierChoice& verifier, std::uint64_t seed) {
  fill(tree, target, pair, seed);
  PhiloxSource source;
  return verify_step(request_, options_of(verifier), source, workspace_).num_accepted;
}

TreeTrial::Recorded TreeTrial::record(const DraftTree& tree, const std::vector<PairRow>& target, DraftPair& pair,
                                      const VerifierChoice& verifier, std::uint64_t seed) {
  fill(tree, target, pair, seed);
  validate(request_, verifier, 0);
  PhiloxSource source;
  RecordingChance<PhiloxSource> chance(source, seed, 0);
  Recorded recorded;
  recorded.emission = verify_step_by(request_, options_of(verifier), chance, workspace_);
  recorded.decisions = chance.decisions();
  if (verifier.info().coins == Coins::of_selected_path) {
    DenseRows<double> proposal;
    for (std::int32_t node = kRootNode; node < tree.size(); ++node)
      proposal.rows.push_back(tree.children(node).empty() ? PairRow() : pair.draft(tree.path(node)));
    recorded.selected = select_greedy_path(tree, static_cast<std::int32_t>(verifier.parameter("paths")),
                                           DenseRows<double>{target}, proposal)
                            .nodes;
  }
  return recorded;
}

}  // namespace draftproof
