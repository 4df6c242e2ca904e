#include <algorithm>
#include <span>
#include <vector>

#include "gpu/executors.hpp"
#include "gpu/reference_executor/draft_ranges.hpp"
#include "gpu/reference_executor/row_distributions.hpp"
#include "gpu/reference_executor/row_status.hpp"
#include "gpu/reference_executor/verify_rows.hpp"
#include "reference/error.hpp"
#include "reference/random/philox.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/dense_distribution.hpp"
#include "reference/verify/sibling_rules/rrsw.hpp"
#include "reference/verify/sibling_rules/target_only.hpp"
#include "reference/verify/tree.hpp"

namespace draftproof::reference_executor {
namespace {

// The rows of all trees of a call, from whatever they are given as.
class TreeRows {
 public:
  TreeRows(const draftproof_rows& rows, std::int32_t kind, const RowDistributionsInput& distributions)
      : rows_(rows), kind_(kind), vocab_size_(distributions.vocab_size), distributions_(distributions) {}

  // The distribution of a row, good until the next call. Throws Refusal.
  const Distribution& distribution(std::int64_t row, std::int64_t request, std::span<const Token> drafted) {
    std::int32_t status = DRAFTPROOF_ROW_OK;
    if (kind_ == DRAFTPROOF_LOGITS) {
      status = distributions_.process(row, request, {drafted, true}, distribution_);
    } else {
      distribution_.make_probabilities(row_view(rows_, row, vocab_size_), row);
      std::vector<float> scratch(static_cast<std::size_t>(vocab_size_));
      const float* elements = elements_of(row_view(rows_, row, vocab_size_), 0, scratch.size(), scratch.data());
      status = status_of_probabilities({elements, scratch.size()});
    }
    if (status != DRAFTPROOF_ROW_OK) throw Refusal{status};
    return distribution_;
  }

 private:
  draftproof_rows rows_;
  std::int32_t kind_;
  std::int64_t vocab_size_;
  RowDistributions distributions_;
  Distribution distribution_;
};

// The rows of one request as verify_tree asks for them: row r is the distribution after node r - 1.
class RequestTree {
 public:
  RequestTree(const draftproof_verify_arguments& a, std::int64_t request, TreeRows& target, TreeRows& proposal)
      : first_row_(a.cu_num_draft_tokens[request] + request), request_(request), target_(target), proposal_(proposal) {
    for (std::int64_t i = a.cu_num_draft_tokens[request]; i < a.cu_num_draft_tokens[request + 1]; ++i)
      tree_.add(a.draft_tokens[i], a.parents[i]);
    try {
      validate(tree_, a.vocab_size, "request");
    } catch (const Error&) {
      throw Refusal{DRAFTPROOF_ROW_BAD_ID};
    }
  }

  const DraftTree& tree() const { return tree_; }

  const Distribution& target_distribution(std::uint32_t row) const {
    return target_.distribution(first_row_ + row, request_, tree_.path(static_cast<std::int32_t>(row) - 1));
  }
  DenseMasses<double> target_row(std::uint32_t row) const { return dense_row(target_distribution(row)); }

  // A leaf proposes nothing, so that its row is not looked at. The target is judged first, whatever the order in which
  // a compiler evaluates arguments.
  DenseMasses<double> proposal_row(std::uint32_t row) const {
    if (tree_.children(static_cast<std::int32_t>(row) - 1).empty()) return {};
    target_distribution(row);
    return dense_row(proposal_.distribution(first_row_ + row, request_, {}));
  }

 private:
  std::int64_t first_row_;
  std::int64_t request_;
  TreeRows& target_;
  TreeRows& proposal_;
  DraftTree tree_;
};

struct TargetOfTree {
  const RequestTree& request;
  DenseMasses<double> row(std::uint32_t r) const { return request.target_row(r); }
};
struct ProposalOfTree {
  const RequestTree& request;
  DenseMasses<double> row(std::uint32_t r) const { return request.proposal_row(r); }
};
struct NoProposal {
  DenseMasses<double> row(std::uint32_t) const { return {}; }
};

bool is_greedy(const draftproof_verify_arguments& a, std::int64_t request) {
  return a.target_kind == DRAFTPROOF_LOGITS && parameters_of(a.parameters, request).temperature == 0.0f;
}

TreeOutcome judge(const draftproof_verify_arguments& a, std::int64_t request, const RequestTree& rows) {
  PhiloxSource source;
  AddressedChance<> chance(source, a.randomness.seed[request], a.randomness.step[request]);
  const TargetOfTree target{rows};
  if (a.tree_rule == DRAFTPROOF_RRSW && !is_greedy(a, request)) {
    return verify_tree(rows.tree(), target, ProposalOfTree{rows}, accept_sibling_rrsw<double, AddressedChance<>>,
                       chance);
  }
  return verify_tree(rows.tree(), target, NoProposal{}, accept_sibling_target_only<double, AddressedChance<>>, chance);
}

void write_refused_tree(const draftproof_verify_arguments& a, std::int64_t request, std::int32_t status) {
  write_refusal(a, request, status);
  if (a.path != nullptr) std::fill_n(a.path + request * a.draft_len_max, a.draft_len_max, -1);
}

void write_tree(const draftproof_verify_arguments& a, std::int64_t request, const RequestTree& rows,
                const TreeOutcome& outcome) {
  const std::vector<Token> tokens = emitted_tokens(rows.tree(), outcome);
  std::vector<float> logprobs;
  for (std::size_t i = 0; i < tokens.size() && a.logprobs != nullptr; ++i) {
    const std::int32_t judged_at = i == 0 ? kRootNode : outcome.path[i - 1];
    logprobs.push_back(rows.target_distribution(DraftTree::row_after(judged_at)).log_probability(tokens[i]));
  }
  write_refused_tree(a, request, DRAFTPROOF_ROW_OK);  // the padding
  a.num_accepted[request] = static_cast<std::int32_t>(outcome.path.size());
  std::ranges::copy(tokens, a.tokens + request * (a.draft_len_max + 1));
  if (a.logprobs != nullptr) std::ranges::copy(logprobs, a.logprobs + request * (a.draft_len_max + 1));
  if (a.path != nullptr) std::ranges::copy(outcome.path, a.path + request * a.draft_len_max);
}

}  // namespace

void verify_tree(const draftproof_verify_arguments& a, const draftproof_settings&) {
  TreeRows target(a.target, a.target_kind, {a.vocab_size, a.target, a.unconditional, a.parameters, a.constraints});
  TreeRows proposal(a.proposal, a.proposal_kind, {a.vocab_size, a.proposal, {}, a.draft_parameters, {}});
  const std::vector<DraftRange> ranges = draft_ranges(a);
  for (std::int64_t b = 0; b < a.requests; ++b) {
    try {
      if (!ranges[static_cast<std::size_t>(b)].valid) throw Refusal{DRAFTPROOF_ROW_BAD_ID};
      const RequestTree rows(a, b, target, proposal);
      write_tree(a, b, rows, judge(a, b, rows));
    } catch (const Refusal& refusal) {
      write_refused_tree(a, b, refusal.status);
    }
  }
}

}  // namespace draftproof::reference_executor
