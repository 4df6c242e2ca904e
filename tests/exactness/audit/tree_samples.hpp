// Steps over draft trees for tests of the audit: of the verifiers of the registry, or of faulty ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "exactness/audit/audit_sample.hpp"
#include "reference/random/philox.hpp"
#include "reference/step/verify_step.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/coupled_list.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "reference/verify/tree.hpp"
#include "tests/support/test_random.hpp"

namespace draftproof::testing {

using TreeRows = DenseRows<double>;
using TreeChance = AddressedChance<PhiloxSource>;
// Of a fault: rows of all nodes, as in draft_tree.hpp.
using TreeEngine = std::function<TreeOutcome(const DraftTree&, TreeRows& target, TreeRows& proposal, TreeChance&)>;
// q after a path -> drafts.
using PathDistribution = std::function<DenseMasses<double>(std::span<const Token>)>;
using TreeDrafter = std::function<DraftTree(const PathDistribution&, TreeChance&)>;

// As a verifier wants its drafts: trees of two levels, three and two wide; two paths of two tokens; a chain of three.
inline TreeDrafter drafter_for(const VerifierInfo& info) {
  const auto tree = branching_shape({3, 2});
  if (info.verifier == Verifier::coupled_list)
    return [](const PathDistribution& q, TreeChance& chance) {
      return merge_paths(draw_coupled_lists(q, 2, 2, 0, chance), Duplicates::merged);
    };
  if (info.verifier == Verifier::coupled)
    return [](const PathDistribution& q, TreeChance& chance) {
      return DraftTree::chain(draw_coupled_lists(q, 1, 3, 0, chance).front());
    };
  if (info.draft == DraftForm::chain)
    return [](const PathDistribution& q, TreeChance& chance) { return draw_chain(q, 3, chance); };
  switch (info.proposal) {
    case DraftSampling::without_replacement:
      return [=](const PathDistribution& q, TreeChance& c) { return draw_children_without_replacement(q, tree, c); };
    case DraftSampling::greedy:
      return [=](const PathDistribution& q, TreeChance& c) { return draw_greedy_children(q, tree, c); };
    case DraftSampling::independent_paths:
      return [](const PathDistribution& q, TreeChance& c) { return draw_merged_paths(q, 2, 2, c); };
    case DraftSampling::any:
      return [=](const PathDistribution& q, TreeChance&) { return top_k_children(q, tree); };
    case DraftSampling::independent:
    case DraftSampling::drawn:
      break;
  }
  return [=](const PathDistribution& q, TreeChance& c) { return draw_iid_children(q, tree, c); };
}

struct TreeStepOptions {
  std::int64_t steps = 6000;
  std::int64_t contexts = 1;  // 0: each request has its own
  bool reports_path = true;
};

namespace tree_samples {

inline constexpr std::size_t kVocab = 6;

// Some tokens are impossible; rounded to float, as the file holds them.
inline DenseMasses<double> row_of(std::uint64_t context, std::span<const Token> path, bool is_draft) {
  std::uint64_t seed = derive_seed(context, is_draft ? 1 : 2);
  for (const Token token : path) seed = derive_seed(seed, static_cast<std::uint64_t>(token) + 3);
  TestRandom random(seed);
  DenseMasses<double> row;
  double sum = 0.0;
  for (std::size_t i = 0; i < kVocab; ++i)
    sum += row.emplace_back(i > 2 && random.below(6) == 0 ? 0.0 : 0.05 + random.uniform() * random.uniform());
  for (double& p : row) p = static_cast<double>(static_cast<float>(p / sum));
  return row;
}

struct Storage {
  std::vector<std::vector<float>> rows;  // of each request its target rows, then its proposal rows
};

}  // namespace tree_samples

// Steps of models that depend on the context and the path. Without an engine the verifier of the step layer runs.
inline StepSample tree_steps(std::uint64_t seed, const TreeStepOptions& options, const VerifierChoice& verifier,
                             const TreeDrafter& drafter, const TreeEngine& engine = {}) {
  using namespace tree_samples;  // NOLINT: the above
  const auto storage = std::make_shared<Storage>();
  StepSample sample;
  sample.begins = {0};
  if (options.reports_path) sample.path_nodes.emplace();
  PhiloxSource source;
  StepWorkspace workspace;
  for (std::int64_t b = 0; b < options.steps; ++b) {
    const std::uint64_t context = 70 + static_cast<std::uint64_t>(options.contexts > 0 ? b % options.contexts : b);
    const std::uint64_t request_seed = derive_seed(seed, static_cast<std::uint64_t>(b));
    TreeChance chance(source, request_seed, 0);
    VerifyRequest request;
    request.draft = drafter([&](std::span<const Token> path) { return row_of(context, path, true); }, chance);
    TreeRows target, proposal;
    for (std::int32_t node = kRootNode; node < request.draft.size(); ++node) {
      const std::vector<Token> path = request.draft.path(node);
      target.rows.push_back(row_of(context, path, false));
      proposal.rows.push_back(row_of(context, path, true));
    }
    std::vector<float>& rows = storage->rows.emplace_back();
    for (const TreeRows* matrix : {&target, &proposal})
      for (const DenseMasses<double>& row : matrix->rows)
        for (const double p : row) rows.push_back(static_cast<float>(p));
    const auto matrix_at = [&](std::size_t first) {
      return RowMatrix{DType::f32, rows.data() + first * kVocab, request.rows(), kVocab, kVocab};
    };
    request.target_is_probabilities = true;
    request.target = matrix_at(0);
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = matrix_at(request.rows());
    request.seed = request_seed;
    TreeOutcome outcome;
    if (engine) {
      outcome = engine(request.draft, target, proposal, chance);
    } else {
      const Emission emission =
          verify_step(request, {.verifier = verifier, .logprobs = false, .raw_logprobs = false}, source, workspace);
      outcome = {emission.path, emission.tokens.back()};
    }
    const std::vector<Token> tokens = emitted_tokens(request.draft, outcome);
    sample.tokens.insert(sample.tokens.end(), tokens.begin(), tokens.end());
    sample.begins.push_back(sample.tokens.size());
    if (sample.path_nodes)
      sample.path_nodes->insert(sample.path_nodes->end(), outcome.path.begin(), outcome.path.end());
    sample.requests.push_back(std::move(request));
  }
  sample.keeps = storage;
  return sample;
}

// Steps of a verifier, or of an engine that says that it is this one, with drafts as the verifier wants them.
inline StepSample steps_of(const std::string& verifier, const TreeStepOptions& options, std::uint64_t seed,
                           const TreeEngine& engine = {}) {
  const VerifierChoice choice = parse_verifier(verifier, "test");
  return tree_steps(seed, options, choice, drafter_for(choice.info()), engine);
}

}  // namespace draftproof::testing
