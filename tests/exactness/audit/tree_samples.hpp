// Steps over draft trees for tests of the audit: of the verifiers of the registry, or of faulty ones.
#pragma once

#include "base/dtype.hpp"
#include "exactness/audit/audit_sample.hpp"
#include "reference/random/philox.hpp"
#include "reference/step/verify_step.hpp"
#include "reference/verify/block.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/coupled_list.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "reference/verify/tree.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

using TreeRows = DenseRows<double>;
using TreeChance = AddressedChance<PhiloxSource>;
// Engine with a fault: receives rows of all nodes, as in draft_tree.hpp.
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
  bool shared_first_rows = false;  // contexts differ from the second position on
  bool close_drafts = false;       // q within 2 % of p
  bool stored_as_bf16 = false;     // probabilities, of target and draft
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

inline DenseMasses<double> close_to(DenseMasses<double> p, const DenseMasses<double>& other) {
  double sum = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] *= 1.0 + 0.02 * other[i];
  for (double& x : p) x = static_cast<double>(static_cast<float>(x / sum));
  return p;
}

// Rows of each request: its target rows, then its proposal rows.
struct Storage {
  std::vector<std::vector<float>> rows;
  std::vector<std::vector<std::uint16_t>> rows_16;
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
    const auto p_after = [&](std::span<const Token> path) {
      return row_of(path.empty() && options.shared_first_rows ? 1 : context, path, false);
    };
    const auto q_after = [&](std::span<const Token> path) {
      const DenseMasses<double> q = row_of(path.empty() && options.shared_first_rows ? 1 : context, path, true);
      return options.close_drafts ? close_to(p_after(path), q) : q;
    };
    request.draft = drafter(q_after, chance);
    TreeRows target, proposal;
    for (std::int32_t node = kRootNode; node < request.draft.size(); ++node) {
      const std::vector<Token> path = request.draft.path(node);
      target.rows.push_back(p_after(path));
      proposal.rows.push_back(q_after(path));
    }
    std::vector<float>& rows = storage->rows.emplace_back();
    for (const TreeRows* matrix : {&target, &proposal})
      for (const DenseMasses<double>& row : matrix->rows)
        for (const double p : row) rows.push_back(static_cast<float>(p));
    std::vector<std::uint16_t>& rows_16 = storage->rows_16.emplace_back();
    for (const float x : rows) rows_16.push_back(f32_to_bf16(x));
    const auto matrix_at = [&](std::size_t first) {
      const std::size_t at = first * kVocab;
      return options.stored_as_bf16 ? RowMatrix{DType::bf16, rows_16.data() + at, request.rows(), kVocab, kVocab}
                                    : RowMatrix{DType::f32, rows.data() + at, request.rows(), kVocab, kVocab};
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

inline TreeOutcome as_tree(const ChainOutcome& chain) {
  TreeOutcome outcome{{}, chain.last_token};
  for (std::uint32_t i = 0; i < chain.num_accepted; ++i) outcome.path.push_back(static_cast<std::int32_t>(i));
  return outcome;
}

// Steps of chains that an engine of the test's own verifies, paths not reported.
using ChainEngine =
    std::function<ChainOutcome(std::span<const Token>, TreeRows& target, TreeRows& proposal, TreeChance&)>;
inline StepSample chain_steps(std::uint64_t seed, TreeStepOptions options, const ChainEngine& engine,
                              const TreeDrafter& drafter = drafter_for(info_of(Verifier::chain))) {
  options.reports_path = false;
  return tree_steps(seed, options, Verifier::chain, drafter,
                    [engine](const DraftTree& tree, TreeRows& p, TreeRows& q, TreeChance& chance) {
                      return as_tree(engine(tree.tokens, p, q, chance));
                    });
}
inline ChainOutcome chain_engine(std::span<const Token> draft, TreeRows& p, TreeRows& q, TreeChance& chance) {
  return verify_chain(draft, p, q, chance);
}

// The token that the number `u` draws from masses.
inline Token drawn_by(double u, const DenseMasses<double>& masses) {
  double left = u * total_of(masses);
  std::size_t token = 0;
  while (token + 1 < masses.size() && left >= masses[token]) left -= masses[token++];
  return static_cast<Token>(token);
}

// B80: block verification whose residual lacks the weight of the path.
inline TreeOutcome unscaled_block(const DraftTree& tree, TreeRows& p, TreeRows& q, TreeChance& chance) {
  TreeOutcome outcome = as_tree(verify_block(std::span<const Token>(tree.tokens), p, q, chance));
  const auto row = static_cast<std::uint32_t>(outcome.path.size());
  if (row < tree.tokens.size())
    outcome.last_token = chance.draw(positive_difference(p.row(row), q.row(row)), row, Purpose::residual);
  return outcome;
}

}  // namespace draftproof::testing
