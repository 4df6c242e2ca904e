// Verification by the step layer, request by request: a call's arrays become a VerifyRequest, its Emission the outputs.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "gpu/executors.hpp"
#include "gpu/reference_executor/draft_ranges.hpp"
#include "gpu/reference_executor/rows.hpp"
#include "reference/random/philox.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof::reference_executor {
namespace {

RowMatrix matrix_of(const draftproof_rows& rows, std::int64_t first, std::int64_t count, std::int64_t vocab_size) {
  return {dtype_of(rows), row_view(rows, first, vocab_size).data, count, vocab_size, rows.row_stride};
}

// None where the offsets are invalid, an id is outside of the vocabulary or a parent is no earlier node.
std::optional<DraftTree> draft_of(const draftproof_verify_arguments& a, const DraftRange& range, bool is_tree) {
  if (!range.valid) return std::nullopt;
  DraftTree draft;
  for (std::int64_t i = range.begin; i < range.end; ++i)
    draft.add(a.draft_tokens[i], is_tree ? a.parents[i] : static_cast<std::int32_t>(i - range.begin) - 1);
  try {
    validate(draft, a.vocab_size, "request");
  } catch (const Error&) {
    return std::nullopt;
  }
  return draft;
}

// One request of a call with the storage behind it.
class CallRequest {
 public:
  // The status is ok, or bad_id where there is no draft: then there is no request.
  // Constraints are of logits. whole: the verifier looks at the rows of all drafts, so that a history too long for one
  // of them is the request's.
  CallRequest(const draftproof_verify_arguments& a, std::int64_t b, const DraftRange& range, bool is_tree, bool whole)
      : constraints_(a.target_kind == DRAFTPROOF_LOGITS ? a.constraints : draftproof_constraints{}, a.vocab_size, b),
        status_(RowStatus::bad_id) {
    std::optional<DraftTree> draft = draft_of(a, range, is_tree);
    if (!draft) return;
    request_.draft = std::move(*draft);
    status_ = RowStatus::ok;
    const std::int64_t length = range.length();
    if (whole && length > 0) drafted_ = {{request_.draft.tokens.data(), static_cast<std::size_t>(length - 1)}, true};
    fill_target(a, b, range.begin + b, length + 1);
    // Every inner node of a tree proposes, so that its proposal rows are laid out like the target's.
    fill_proposal(a, b, is_tree ? range.begin + b : range.begin, length + (is_tree ? 1 : 0));
    request_.seed = a.randomness.seed[b];
    request_.step = a.randomness.step[b];
  }

  RowStatus status() const { return status_; }
  const VerifyRequest& request() const { return request_; }
  void set_position(std::uint32_t position) { request_.position = position; }

 private:
  void fill_target(const draftproof_verify_arguments& a, std::int64_t b, std::int64_t first, std::int64_t rows) {
    request_.target_is_probabilities = a.target_kind == DRAFTPROOF_PROBABILITIES;
    request_.target = matrix_of(a.target, first, rows, a.vocab_size);
    request_.first_row = first;
    if (request_.target_is_probabilities) return;
    request_.target_fault = status_of(a.parameters, b);
    if (request_.target_fault != RowStatus::ok) return;
    request_.parameters = parameters_of(a.parameters, b);
    request_.target_fault = constraints_.status(request_.parameters, drafted_);
    if (request_.target_fault != RowStatus::ok) return;
    request_.constraints = constraints_.constraints();
    request_.prompt_tokens = constraints_.prompt();
    request_.output_tokens = constraints_.output();
    request_.history_len_max = a.constraints.history_len_max;
    if (a.unconditional.data != nullptr) request_.unconditional = matrix_of(a.unconditional, first, rows, a.vocab_size);
    const draftproof_constraints& c = a.constraints;
    if (c.allowed_mask == nullptr) return;
    request_.allowed_mask_stride = c.allowed_mask_stride;
    request_.allowed_masks = {c.allowed_mask + first * c.allowed_mask_stride,
                              static_cast<std::size_t>((rows - 1) * c.allowed_mask_stride + (a.vocab_size + 31) / 32)};
  }

  void fill_proposal(const draftproof_verify_arguments& a, std::int64_t b, std::int64_t first, std::int64_t rows) {
    request_.proposal_kind = static_cast<ProposalKind>(a.proposal_kind);
    if (request_.proposal_kind == ProposalKind::one_hot) return;
    request_.proposal = matrix_of(a.proposal, first, rows, a.vocab_size);
    request_.first_proposal_row = first;
    if (request_.proposal_kind != ProposalKind::logits) return;
    const draftproof_parameters parameters = draft_parameters_of(a.draft_parameters);
    request_.proposal_fault = status_of(parameters, b);
    // A temperature that is 0 is looked at before the others are.
    request_.draft_parameters = parameters_of(parameters, b);
  }

  RequestConstraints constraints_;
  GuardedList<Token> drafted_;  // before the last row that is looked at in any case
  VerifyRequest request_;
  RowStatus status_;
};

void write_refusal(const draftproof_verify_arguments& a, std::int64_t request, RowStatus status) {
  const std::int64_t places = a.draft_len_max + 1;
  a.status[request] = static_cast<std::int32_t>(status);
  a.num_accepted[request] = 0;
  std::fill_n(a.tokens + request * places, places, DRAFTPROOF_NO_TOKEN);
  if (a.logprobs != nullptr)
    std::fill_n(a.logprobs + request * places, places, -std::numeric_limits<float>::infinity());
  if (a.path != nullptr) std::fill_n(a.path + request * a.draft_len_max, a.draft_len_max, -1);
}

void write_emission(const draftproof_verify_arguments& a, std::int64_t request, const Emission& emission) {
  write_refusal(a, request, RowStatus::ok);  // the padding
  const std::int64_t begin = request * (a.draft_len_max + 1);
  a.num_accepted[request] = static_cast<std::int32_t>(emission.num_accepted);
  std::ranges::copy(emission.tokens, a.tokens + begin);
  if (a.logprobs != nullptr) std::ranges::copy(emission.logprobs, a.logprobs + begin);
  if (a.path != nullptr) std::ranges::copy(emission.path, a.path + request * a.draft_len_max);
}

// position: [requests], or NULL.
void verify(const draftproof_verify_arguments& a, const VerifierChoice& verifier, Sampler sampler, bool is_tree,
            const std::uint32_t* position) {
  StepWorkspace workspace;
  PhiloxSource source;
  const VerifyOptions options{
      .verifier = verifier, .sampler = sampler, .logprobs = a.logprobs != nullptr, .raw_logprobs = false};
  const std::vector<DraftRange> ranges = draft_ranges(a);
  const bool looks_at_all = verifier.info().decisions == Decisions::last_passing;
  for (std::int64_t b = 0; b < a.requests; ++b) {
    CallRequest call(a, b, ranges[static_cast<std::size_t>(b)], is_tree, looks_at_all);
    if (position != nullptr) call.set_position(position[b]);
    if (call.status() != RowStatus::ok) {
      write_refusal(a, b, call.status());
      continue;
    }
    try {
      write_emission(a, b, verify_step(call.request(), options, source, workspace));
    } catch (const RowError& error) {
      write_refusal(a, b, error.status());
    }
  }
}

}  // namespace

void verify_chain(const draftproof_verify_arguments& a, const draftproof_settings&) {
  verify(a, Verifier::chain, Sampler::inverse, false, nullptr);
}

void verify_block(const draftproof_verify_arguments& a, const draftproof_settings&) {
  verify(a, Verifier::block, Sampler::inverse, false, nullptr);
}

void verify_tree(const draftproof_verify_arguments& a, const draftproof_settings&) {
  verify(a, a.tree_rule == DRAFTPROOF_RRSW ? Verifier::rrsw : Verifier::target_only, Sampler::inverse, true, nullptr);
}

void verify_by_name(const draftproof_verify_by_name_arguments& a, const draftproof_settings&) {
  const std::string call = "verify_by_name, ";
  const VerifierChoice choice = parse_verifier(a.verifier, call + "verifier");
  if (choice.info().is_coupled() && a.position == nullptr && a.drafts.requests > 0)
    throw usage_error(call + "position", "it is NULL; expected an array, since the verifier is coupled");
  const bool is_tree = a.drafts.parents != nullptr;
  const std::vector<DraftRange> ranges = draft_ranges(a.drafts);
  for (std::int64_t b = 0; b < a.drafts.requests; ++b) {
    const std::optional<DraftTree> draft = draft_of(a.drafts, ranges[static_cast<std::size_t>(b)], is_tree);
    if (draft)
      require_fit(choice, *draft, a.drafts.proposal_kind != DRAFTPROOF_ONE_HOT, call + "request " + std::to_string(b));
  }
  verify(a.drafts, choice, static_cast<Sampler>(a.sampler), is_tree, a.position);
}

}  // namespace draftproof::reference_executor
