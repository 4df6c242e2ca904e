#include "reference/step/consistency.hpp"

#include <algorithm>
#include <cmath>

#include "base/printable.hpp"
#include "reference/step/step_rows.hpp"

namespace draftproof {
namespace {

constexpr double kRounding = 1e-5;

std::vector<ParameterDifference> differences_of(const RowParameters& draft, const RowParameters& target) {
  std::vector<ParameterDifference> found;
  const auto compare = [&](const char* name, double d, double t) {
    if (d != t) found.push_back({name, d, t});
  };
  compare("temperature", draft.temperature, target.temperature);
  compare("top_k", draft.filters.top_k, target.filters.top_k);
  compare("top_p", draft.filters.top_p, target.filters.top_p);
  compare("min_p", draft.filters.min_p, target.filters.min_p);
  return found;
}

// The parameters of drafts drawn like the target. History-dependent edits and guidance are the target's alone.
RowParameters like_target(const VerifyRequest& request) {
  RowParameters parameters = request.draft_parameters;
  parameters.temperature = request.parameters.temperature;
  parameters.filters = request.parameters.filters;
  return parameters;
}

RowParameters overridden(RowParameters parameters, const DraftedWith& drafted_with) {
  parameters.temperature = drafted_with.temperature.value_or(parameters.temperature);
  parameters.filters.top_k = drafted_with.top_k.value_or(parameters.filters.top_k);
  parameters.filters.top_p = drafted_with.top_p.value_or(parameters.filters.top_p);
  parameters.filters.min_p = drafted_with.min_p.value_or(parameters.filters.min_p);
  validate(parameters, "drafted with");
  return parameters;
}

std::vector<double> as_vector(const Distribution& distribution) {
  std::vector<double> p(static_cast<std::size_t>(distribution.vocab_size()));
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = distribution.probability(static_cast<Token>(i));
  return p;
}

struct Outcome {
  double acceptance;
  double total_variation;  // of the emitted token's distribution against p
};

// Outcome of chain verification at one position when drafts come from `drafted` and the verifier believes in q.
Outcome outcome_of(const std::vector<double>& p, const std::vector<double>& q, const std::vector<double>& drafted) {
  std::vector<double> emitted(p.size());
  double accepted = 0.0;
  double residual_total = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    emitted[i] = q[i] > 0.0 ? drafted[i] * std::min(1.0, p[i] / q[i]) : 0.0;
    accepted += emitted[i];
    residual_total += positive_part_of_difference(p[i], q[i]);
  }
  double distance = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double recovered = residual_total > 0.0 ? positive_part_of_difference(p[i], q[i]) / residual_total : p[i];
    distance += std::abs(emitted[i] + (1.0 - accepted) * recovered - p[i]);
  }
  return {accepted, distance / 2.0};
}

std::string sentence_of(const ConsistencyReport& report) {
  if (report.rows == 0) return "no request has draft logits: nothing to compare";
  std::string differences;
  for (const ParameterDifference& d : report.differences)
    differences += (differences.empty() ? "" : ", ") + d.parameter + " " + number("%.4g", d.draft) + " instead of " +
                   number("%.4g", d.target);
  std::string text = differences.empty() ? "drafts are drawn like the target"
                                         : "drafts are drawn with " + differences + ": acceptance " +
                                               number("%.4g", report.acceptance) + " instead of " +
                                               number("%.4g", report.acceptance_if_equal);
  if (report.distribution_changes)
    return text +
           "; error: the verifier assumes another proposal distribution than the drafts were drawn from, which moves "
           "the output "
           "distribution by " +
           number("%.4g", report.total_variation) +
           " in total variation; verify with the distribution that they were drawn from (one-hot proposals for argmax "
           "drafts)";
  return text + "; the output distribution is exact";
}

}  // namespace

ConsistencyReport check_consistency(std::span<const VerifyRequest> requests, const DraftedWith& drafted_with,
                                    std::int64_t rows_max) {
  ConsistencyReport report;
  std::int64_t rows = 0;
  for (const VerifyRequest& request : requests)
    if (request.proposal_kind == ProposalKind::logits) rows += request.draft.size();
  const std::int64_t stride = std::max<std::int64_t>(1, (rows + rows_max - 1) / std::max<std::int64_t>(1, rows_max));

  StepWorkspace workspace;
  Distribution distribution;
  std::int64_t index = 0;
  for (const VerifyRequest& request : requests) {
    if (request.proposal_kind != ProposalKind::logits) continue;
    const RowParameters drafted = overridden(request.draft_parameters, drafted_with);
    if (report.differences.empty()) report.differences = differences_of(drafted, request.parameters);
    StepRows rows_of_step(request, {.logprobs = false}, workspace);
    for (std::uint32_t row = 0; row + 1 < request.rows(); ++row, ++index) {
      const bool proposes = !request.draft.children(static_cast<std::int32_t>(row) - 1).empty();
      if (index % stride != 0 || !proposes) continue;
      const std::vector<double> p = as_vector(rows_of_step.target(row));
      const auto draft_distribution = [&](const RowParameters& parameters) {
        process_proposal_row(request, row, parameters, workspace.draft_pipeline, distribution);
        return as_vector(distribution);
      };
      const std::vector<double> assumed = draft_distribution(request.draft_parameters);
      const Outcome as_is = outcome_of(p, assumed, drafted_with.any() ? draft_distribution(drafted) : assumed);
      const std::vector<double> equal = draft_distribution(like_target(request));
      report.acceptance += as_is.acceptance;
      report.acceptance_if_equal += outcome_of(p, equal, equal).acceptance;
      report.total_variation = std::max(report.total_variation, as_is.total_variation);
      ++report.rows;
    }
  }
  if (report.rows > 0) {
    report.acceptance /= static_cast<double>(report.rows);
    report.acceptance_if_equal /= static_cast<double>(report.rows);
  }
  report.distribution_changes = report.total_variation > kRounding;
  report.sentence = sentence_of(report);
  return report;
}

}  // namespace draftproof
