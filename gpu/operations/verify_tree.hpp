// Tree verification as a call: kernels/tree.cuh, after the pipeline for rows of logits.
#include <algorithm>

#include "gpu/executors.hpp"
#include "gpu/kernels/tree.cuh"
#include "gpu/operations/verify_rows.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

// One-hot stands for the proposal of a call that asks for none: of another rule, or without a single node.
std::int32_t proposal_kind(const draftproof_verify_arguments& a) {
  return a.tree_rule == DRAFTPROOF_RRSW && a.draft_tokens_total > 0 ? a.proposal_kind : DRAFTPROOF_ONE_HOT;
}

struct TreeScratch {
  // Where rows are logits; else null.
  Global<std::int32_t> row_request;
  Global<Token> row_draft_tokens;
  Global<std::int64_t> row_draft_begin;
  Global<std::int32_t> row_draft_len;
  PipelineScratch target;
  PipelineScratch proposal;
  // Of every call.
  TreeWalks walks;

  static TreeScratch in(OperationMemory& memory, const draftproof_verify_arguments& a) {
    TreeScratch scratch{};
    const CheckedSize nodes = CheckedSize(a.requests) * a.draft_len_max;
    scratch.walks.states = memory.scratch<WalkState>("states", CheckedSize(a.requests) * 2);
    scratch.walks.blocks_done = memory.scratch<std::uint32_t>("blocks_done", a.requests);
    scratch.walks.tile_sums =
        memory.scratch<std::uint64_t>("tile_sums", CheckedSize(a.requests) * 3 * tiles_of(a.vocab_size));
    scratch.walks.path = memory.scratch<std::int32_t>("walked_path", nodes);
    scratch.walks.trial_tokens = memory.scratch<Token>("trial_tokens", nodes);
    scratch.walks.trial_factors = memory.scratch<double>("trial_factors", nodes);
    if (a.target_kind != DRAFTPROOF_LOGITS && proposal_kind(a) != DRAFTPROOF_LOGITS) return scratch;
    const std::int64_t rows = target_rows_of(a);
    scratch.row_request = memory.scratch<std::int32_t>("row_request", rows);
    scratch.row_draft_tokens = memory.scratch<Token>("row_draft_tokens", CheckedSize(rows) * a.draft_len_max);
    scratch.row_draft_begin = memory.scratch<std::int64_t>("row_draft_begin", rows);
    scratch.row_draft_len = memory.scratch<std::int32_t>("row_draft_len", rows);
    if (a.target_kind == DRAFTPROOF_LOGITS) scratch.target = PipelineScratch::in(memory, scratch.target_rows(a));
    if (proposal_kind(a) == DRAFTPROOF_LOGITS) scratch.proposal = PipelineScratch::in(memory, scratch.proposal_rows(a));
    return scratch;
  }

  PipelineInput target_rows(const draftproof_verify_arguments& a) const {
    PipelineInput input = target_input(a);
    input.row_requests = {row_request, a.requests};
    input.row_draft_tokens = row_draft_tokens;
    input.row_draft_tokens_count = target_rows_of(a) * a.draft_len_max;
    input.row_draft_begin = row_draft_begin;
    input.row_draft_len = row_draft_len;
    return input;
  }
  PipelineInput proposal_rows(const draftproof_verify_arguments& a) const {
    PipelineInput input = proposal_input(a);
    input.rows = target_rows_of(a);
    input.row_requests = {row_request, a.requests};
    return input;
  }
};

}  // namespace

std::int64_t verify_tree_workspace_bytes(const draftproof_verify_arguments& a) {
  OperationMemory memory = OperationMemory::measuring();
  TreeScratch::in(memory, a);
  return memory.workspace_bytes();
}

void verify_tree(const draftproof_verify_arguments& a, const draftproof_settings& settings) {
  if (a.requests == 0) return;
  OperationMemory memory(a.workspace);
  const TreeScratch scratch = TreeScratch::in(memory, a);
  const Drafts drafts = drafts_of(memory, a);
  const Global<const std::int32_t> parents = memory.input("parents", a.parents, a.draft_tokens_total);
  const TreeOutputs out{verify_outputs(memory, a), memory.output("path", a.path, a.requests * a.draft_len_max)};
  if (scratch.row_request != nullptr) {
    launch(describe(settings, "lay_out_tree_rows", a.requests, 128), lay_out_tree_rows, drafts, parents,
           scratch.row_request, scratch.row_draft_tokens, scratch.row_draft_begin, scratch.row_draft_len);
  }
  const auto with_target = [&](auto run) {
    const auto distributions = [&] {
      return launch_pipeline(settings, memory, scratch.target_rows(a), scratch.target);
    };
    with_source(memory, "target", a.target_kind, a.target, target_rows_of(a), a.vocab_size, distributions, run);
  };
  const auto with_proposal = [&](auto run) {
    if (proposal_kind(a) == DRAFTPROOF_ONE_HOT) return run(RowSource<DRAFTPROOF_ONE_HOT>{});
    const auto distributions = [&] {
      return launch_pipeline(settings, memory, scratch.proposal_rows(a), scratch.proposal);
    };
    with_source(memory, "proposal", a.proposal_kind, a.proposal, target_rows_of(a), a.vocab_size, distributions, run);
  };
  with_target([&]<int kTarget>(const RowSource<kTarget>& target) {
    with_proposal([&]<int kProposal>(const RowSource<kProposal>& proposal) {
      const TreeRows<kTarget, kProposal> rows{drafts, parents, a.draft_len_max, target, proposal};
      launch(describe(settings, "begin_walks", a.requests, block_threads(settings, 256)),
             begin_walks<kTarget, kProposal>, rows, scratch.walks, out);
      const std::int64_t rounds = std::min(a.draft_len_max, a.draft_tokens_total) + 1;
      for (std::int32_t round = 0; round < rounds; ++round)
        launch(describe(settings, "walk_trees", a.requests * tiles_of(a.vocab_size), block_threads(settings, 256)),
               walk_trees<kTarget, kProposal>, rows, scratch.walks, round, out);
    });
  });
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
