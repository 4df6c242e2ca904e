#include "reference/exactness/audit/step_rows.hpp"

#include <algorithm>
#include <string>

#include "reference/exactness/audit/tests.hpp"
#include "reference/io/sha256.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

const VerifyOptions kRowsOnly{.logprobs = false};

DistributionDigest digest_of(std::span<const double> distribution) {
  const std::string hex = sha256_hex(std::as_bytes(distribution));
  return {std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16, 16), nullptr, 16)};
}

// Probabilities of 16 bits are rounded to 2^-9 (bf16) or better, and by as much again as their sum is off.
double ratio_tolerance(const VerifyRequest& request) {
  const bool rounded_target = request.target_is_probabilities && request.target.dtype != DType::f32;
  const bool rounded_draft =
      request.proposal_kind == ProposalKind::probabilities && request.proposal.dtype != DType::f32;
  return rounded_target || rounded_draft ? 0x1p-7 : 1e-5;
}

double probability(std::span<const double> distribution, Token token) {
  return distribution[static_cast<std::size_t>(token)];
}

double transform(std::span<const double> distribution, Token token, double v) {
  return mass_ranked_before(distribution, token) + v * probability(distribution, token);
}

// norm(max(p - q, 0)), or p where that is zero everywhere.
std::vector<double> residual_of(const std::vector<double>& p, const std::vector<double>& q) {
  std::vector<double> residual(p.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += residual[i] = std::max(0.0, p[i] - q[i]);
  if (!(sum > 0.0)) return p;
  for (double& x : residual) x /= sum;
  return residual;
}

DraftRecord draft_record(const std::vector<double>& p, const std::vector<double>& q, Token token) {
  DraftRecord record;
  const double q_token = probability(q, token);
  record.ratio = q_token > 0.0 ? probability(p, token) / q_token : 0.0;
  record.accept_by_row = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) record.accept_by_row += std::min(p[i], q[i]);
  return record;
}

class StepRecorder {
 public:
  StepRecorder(const VerifyRequest& request, std::span<const Token> emitted, std::uint64_t key, std::int64_t index,
               StepWorkspace& workspace)
      : request_(request), emitted_(emitted), key_(key), index_(index), rows_(request, kRowsOnly, workspace) {}

  StepRecord run() {
    const auto draft_len = static_cast<std::uint32_t>(request_.draft.size());
    record_.ratio_tolerance = ratio_tolerance(request_);
    record_.accepted = static_cast<std::uint32_t>(emitted_.size()) - 1;
    for (std::uint32_t row = 0; row <= draft_len; ++row) look_at_row(row, draft_len);
    return std::move(record_);
  }

 private:
  void look_at_row(std::uint32_t row, std::uint32_t draft_len) {
    const std::vector<double> p = normalised_distribution(rows_.target(row));
    if (row == 0) {
      record_.first_distribution = digest_of(p);
      record_.first_row_has_choice = !is_one_hot(p);
    }
    if (row == 1) record_.second_distribution = digest_of(p);
    if (row < emitted_.size()) look_at_token(row, p);
    if (row == draft_len) {
      if (record_.accepted == draft_len) record_last(row, p);
      return;
    }
    const std::vector<double> q = normalised_distribution(rows_.proposal(row));
    const Token draft = request_.draft.tokens[row];
    DraftRecord drafted = draft_record(p, q, draft);
    if (!(probability(q, draft) > 0.0)) {
      record_.impossible_draft = drafted.impossible = true;
    } else if (!is_one_hot(q)) {
      drafted.drafted = transform(q, draft, uniform(row, AuditUse::draft));
    }
    record_.drafts.push_back(drafted);
    if (row == 0) record_.draft_distribution = digest_of(q);
    if (row != record_.accepted) return;
    const std::vector<double> residual = residual_of(p, q);
    const Token last = emitted_.back();
    record_last(row, residual);
    record_.impossible_recovery =
        probability(p, last) > 0.0 && probability(p, last) < probability(q, last) * (1.0 - record_.ratio_tolerance);
  }

  void look_at_token(std::uint32_t row, const std::vector<double>& p) {
    const Token token = emitted_[row];
    if (!(probability(p, token) > 0.0)) {
      if (!record_.impossible_token) record_.impossible_row = row;
      record_.impossible_token = true;
    } else if (row < record_.emitted.size() && !is_one_hot(p)) {
      record_.emitted[row] = transform(p, token, uniform(row, AuditUse::token));
    }
  }

  void record_last(std::uint32_t row, const std::vector<double>& distribution) {
    const Token token = emitted_.back();
    if (probability(distribution, token) > 0.0 && !is_one_hot(distribution))
      record_.last = transform(distribution, token, uniform(row, AuditUse::last_token));
  }

  double uniform(std::uint32_t row, AuditUse use) const { return audit_uniform(key_, index_, row, use); }

  const VerifyRequest& request_;
  std::span<const Token> emitted_;
  std::uint64_t key_;
  std::int64_t index_;
  StepRows rows_;
  StepRecord record_;
};

}  // namespace

double audit_uniform(std::uint64_t key, std::int64_t request, std::uint32_t row, AuditUse use) {
  const Address address{static_cast<std::uint32_t>(use), row, static_cast<std::uint32_t>(request), Purpose::choice};
  return uniform_53(high_half(PhiloxSource().block(key, address)));
}

StepRecord record_step(const VerifyRequest& request, std::span<const Token> emitted, std::uint64_t key,
                       std::int64_t index, StepWorkspace& workspace) {
  return StepRecorder(request, emitted, key, index, workspace).run();
}

std::vector<double> target_distribution_of(const VerifyRequest& request, std::uint32_t row, StepWorkspace& workspace) {
  return normalised_distribution(StepRows(request, kRowsOnly, workspace).target(row));
}

std::vector<double> first_draft_distribution_of(const VerifyRequest& request, StepWorkspace& workspace) {
  return normalised_distribution(StepRows(request, kRowsOnly, workspace).proposal(0));
}

}  // namespace draftproof
