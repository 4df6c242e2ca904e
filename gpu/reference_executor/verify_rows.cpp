#include "gpu/reference_executor/verify_rows.hpp"

#include <algorithm>
#include <limits>

#include "reference/numerics/fixed_point.hpp"
#include "reference/numerics/unsigned_128.hpp"

namespace draftproof::reference_executor {
namespace {

float temperature_of(const draftproof_parameters& parameters, std::int64_t request) {
  return parameters.temperature == nullptr ? 1.0f : parameters.temperature[request];
}

RowDistributionsInput target_input(const draftproof_verify_arguments& a) {
  return {a.vocab_size, a.target, a.unconditional, a.parameters, a.constraints};
}

// Of a drafter's parameters, temperature and filters alone.
RowDistributionsInput proposal_input(const draftproof_verify_arguments& a) {
  RowDistributionsInput input{a.vocab_size, a.proposal, {}, {}, {}};
  input.parameters.temperature = a.draft_parameters.temperature;
  input.parameters.top_k = a.draft_parameters.top_k;
  input.parameters.top_p = a.draft_parameters.top_p;
  input.parameters.min_p = a.draft_parameters.min_p;
  input.parameters.filter_order = a.draft_parameters.filter_order;
  input.parameters.ties = a.draft_parameters.ties;
  return input;
}

void refuse_unless_ok(std::int32_t status) {
  if (status != DRAFTPROOF_ROW_OK) throw Refusal{status};
}

bool is_probability(float x) {
  return x >= 0.0f && x <= 1.0f;
}

}  // namespace

VerifyRows::VerifyRows(const draftproof_verify_arguments& arguments)
    : a_(arguments),
      ranges_(draft_ranges(arguments)),
      target_rows_(target_input(arguments)),
      proposal_rows_(proposal_input(arguments)) {}

std::span<const Token> VerifyRows::draft_tokens(std::int64_t request) const {
  const std::int64_t first = a_.cu_num_draft_tokens[request];
  return {a_.draft_tokens + first, static_cast<std::size_t>(a_.cu_num_draft_tokens[request + 1] - first)};
}

std::span<const Token> VerifyRows::draft(std::int64_t request) const {
  if (!ranges_[static_cast<std::size_t>(request)].valid) throw Refusal{DRAFTPROOF_ROW_BAD_ID};
  const std::span<const Token> tokens = draft_tokens(request);
  const bool right = std::all_of(tokens.begin(), tokens.end(), [&](Token t) { return t >= 0 && t < a_.vocab_size; });
  if (!right) throw Refusal{DRAFTPROOF_ROW_BAD_ID};
  return tokens;
}

const Distribution& VerifyRows::target(std::int64_t request, std::uint32_t place) {
  const std::int64_t row = a_.cu_num_draft_tokens[request] + request + place;
  if (a_.target_kind == DRAFTPROOF_PROBABILITIES) {
    target_.make_probabilities(row_view(a_.target, row, a_.vocab_size), row);
  } else {
    refuse_unless_ok(target_rows_.process(row, request, {draft_tokens(request).first(place), true}, target_));
  }
  return target_;
}

const Distribution& VerifyRows::proposal(std::int64_t request, std::uint32_t place) {
  const std::int64_t row = a_.cu_num_draft_tokens[request] + place;
  const bool greedy_target = a_.target_kind == DRAFTPROOF_LOGITS && temperature_of(a_.parameters, request) == 0.0f;
  const bool argmax_drafts =
      a_.proposal_kind == DRAFTPROOF_LOGITS && temperature_of(a_.draft_parameters, request) == 0.0f;
  if (a_.proposal_kind == DRAFTPROOF_ONE_HOT || greedy_target || argmax_drafts) {
    proposal_.make_one_hot(a_.draft_tokens[row], a_.vocab_size);
  } else if (a_.proposal_kind == DRAFTPROOF_PROBABILITIES) {
    proposal_.make_probabilities(row_view(a_.proposal, row, a_.vocab_size), row);
  } else {
    refuse_unless_ok(proposal_rows_.process(row, request, {}, proposal_));
  }
  return proposal_;
}

float checked_probability(const Distribution& distribution, Token token) {
  const ProbabilityRow* row = distribution.probabilities();
  if (row == nullptr) return distribution.probability(token);
  float p = 0.0f;
  p = *row->probabilities_in(static_cast<std::size_t>(token), 1, &p);
  if (!is_probability(p)) throw Refusal{DRAFTPROOF_ROW_BAD_PROBABILITY};
  return p;
}

std::int32_t status_of_residual(const Distribution& p, const Distribution* q) {
  const auto vocab_size = static_cast<std::size_t>(p.vocab_size());
  std::vector<float> scratch(2 * kTileTokens);
  Unsigned128 total = 0;
  for (std::size_t begin = 0; begin < vocab_size; begin += kTileTokens) {
    const std::size_t count = std::min<std::size_t>(kTileTokens, vocab_size - begin);
    const float* ps = p.probabilities_in(begin, count, scratch.data());
    const float* qs = q == nullptr ? nullptr : q->probabilities_in(begin, count, scratch.data() + kTileTokens);
    for (std::size_t i = 0; i < count; ++i) {
      const float other = qs == nullptr ? 0.0f : qs[i];
      if (!is_probability(ps[i]) || !is_probability(other)) return DRAFTPROOF_ROW_BAD_PROBABILITY;
      total += residual_mass(static_cast<double>(positive_part_of_difference(ps[i], other)));
    }
  }
  if (total > static_cast<Unsigned128>(3) << kResidualBits) return DRAFTPROOF_ROW_BAD_SUM;
  if (total > 0) return DRAFTPROOF_ROW_OK;
  return q == nullptr ? DRAFTPROOF_ROW_ALL_ZERO : status_of_residual(p, nullptr);
}

void write_emission(const draftproof_verify_arguments& a, std::int64_t request, std::span<const Token> draft,
                    const ChainOutcome& outcome, std::span<const float> logprobs) {
  write_refusal(a, request, DRAFTPROOF_ROW_OK);
  const std::int64_t begin = request * (a.draft_len_max + 1);
  a.num_accepted[request] = static_cast<std::int32_t>(outcome.num_accepted);
  std::copy_n(draft.begin(), outcome.num_accepted, a.tokens + begin);
  a.tokens[begin + outcome.num_accepted] = outcome.last_token;
  if (a.logprobs != nullptr) std::copy_n(logprobs.begin(), outcome.num_accepted + 1, a.logprobs + begin);
}

void write_refusal(const draftproof_verify_arguments& a, std::int64_t request, std::int32_t status) {
  const std::int64_t places = a.draft_len_max + 1;
  a.status[request] = status;
  a.num_accepted[request] = 0;
  std::fill_n(a.tokens + request * places, places, DRAFTPROOF_NO_TOKEN);
  if (a.logprobs != nullptr)
    std::fill_n(a.logprobs + request * places, places, -std::numeric_limits<float>::infinity());
}

}  // namespace draftproof::reference_executor
