#include "studies/lab/distribution_lab_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/error.hpp"
#include "base/near_names.hpp"
#include "base/split.hpp"
#include "engine/draft/planned_tree.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "exactness/bugs/run_bugs.hpp"
#include "reference/logits/guidance.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/step/dense_step_rows.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {
namespace {

using Logits = std::vector<float>;

Logits logits_of(const std::vector<double>& weights) {
  Logits logits;
  for (const double w : weights)
    logits.push_back(w > 0.0 ? static_cast<float>(natural_log(w)) : -std::numeric_limits<float>::infinity());
  return logits;
}

RowParameters parameters_of(const DistributionLabSettings& settings) {
  RowParameters parameters;
  parameters.temperature = settings.temperature;
  parameters.filters.top_k = settings.top_k;
  parameters.filters.top_p = settings.top_p;
  parameters.filters.min_p = settings.min_p;
  parameters.guidance_scale = settings.guidance_scale;
  parameters.guidance_form = settings.guidance_form;
  validate(parameters, "the rows");
  return parameters;
}

// Without a row of its own guidance sharpens or flattens: l = s l_c.
Logits unconditional_logits(const DistributionLabSettings& settings) {
  return settings.unconditional.empty() ? Logits(settings.target.size(), 0.0f) : logits_of(settings.unconditional);
}

DenseMasses<double> processed(const Logits& logits, const Logits& unconditional, const RowParameters& parameters,
                              const char* name) {
  const auto vocab_size = static_cast<std::int64_t>(logits.size());
  RowInput input;
  input.logits = {DType::f32, logits.data(), vocab_size};
  if (parameters.guidance_scale != 1.0f) input.unconditional = RowView{DType::f32, unconditional.data(), vocab_size};
  input.parameters = parameters;
  input.row = {0, name, 0};
  Pipeline pipeline;
  Distribution distribution;
  pipeline.run(input, distribution);
  return dense_row(distribution);
}

// Rows one below the other, for every row of a step.
template <class Number>
std::vector<float> repeated(const std::vector<Number>& row, std::int32_t times) {
  std::vector<float> rows;
  for (std::int32_t i = 0; i < times; ++i)
    for (const Number x : row) rows.push_back(static_cast<float>(x));
  return rows;
}

// Inputs of verify_step: the target as logits, which go through the pipeline in every step; the proposal as the
// probabilities that drafts are drawn from.
class StepSampler {
 public:
  // `is_chain`: drafts are a chain drawn from q, whatever the verifier takes.
  explicit StepSampler(const DistributionLabSnapshot& rows, bool is_chain = false)
      : q_(rows.q), seed_(rows.settings.seed), parameters_(parameters_of(rows.settings)) {
    const DistributionLabSettings& settings = rows.settings;
    options_.verifier = parse_verifier(settings.verifier, "--verifier");
    options_.logprobs = options_.raw_logprobs = false;
    const VerifierInfo& info = options_.verifier.info();
    std::optional<TreeShape> siblings;
    if (!is_chain && info.draft != DraftForm::chain && !info.takes_paths())
      siblings = branching_shape({settings.draft_tokens});
    const VerifierChoice drafts_of = is_chain ? parse_verifier("chain", "the lab") : options_.verifier;
    plan_ = plan_for(drafts_of, siblings, settings.draft_tokens, "--verifier");
    const std::int32_t rows_max = plan_.num_paths * plan_.shape.size() + 1;
    target_ = repeated(logits_of(settings.target), rows_max);
    unconditional_ = repeated(unconditional_logits(settings), rows_max);
    proposal_ = repeated(q_, rows_max);
  }

  LabSample operator()(std::uint64_t number) {
    const VerifyRequest request = request_of(number, options_.verifier.info().proposal != DraftSampling::any);
    if (number == 0) validate(request, options_.verifier, 0);
    const Emission emission = verify_step(request, options_, source_, workspace_);
    return {emission.tokens.front(), static_cast<std::int32_t>(emission.num_accepted)};
  }

  // 0 of a lossless verifier.
  double distance() {
    const VerifyRequest request = request_of(0, true);
    StepRows rows(request, options_, workspace_);
    return first_token_distance(options_.verifier, rows).value_or(0.0);
  }

 private:
  VerifyRequest request_of(std::uint64_t number, bool has_proposal) {
    VerifyRequest request;
    request.seed = derive_seed(seed_, number);
    AddressedChance<PhiloxSource> chance(source_, request.seed, 0);
    request.draft = draw_planned_tree(
        plan_, [&](std::span<const Token>) -> const DenseMasses<double>& { return q_; }, chance);
    request.target = matrix_of(target_, request.rows());
    if (parameters_.guidance_scale != 1.0f) request.unconditional = matrix_of(unconditional_, request.rows());
    request.parameters = parameters_;
    if (has_proposal) {
      request.proposal_kind = ProposalKind::probabilities;
      request.proposal = matrix_of(proposal_, request.draft.is_chain() ? request.rows() - 1 : request.rows());
    }
    return request;
  }

  RowMatrix matrix_of(const std::vector<float>& values, std::int64_t rows) const {
    const auto vocab_size = static_cast<std::int64_t>(q_.size());
    return {DType::f32, values.data(), rows, vocab_size, vocab_size};
  }

  DenseMasses<double> q_;
  std::uint64_t seed_;
  RowParameters parameters_;
  VerifyOptions options_;
  DraftPlan plan_;
  std::vector<float> target_, unconditional_, proposal_;
  PhiloxSource source_;
  StepWorkspace workspace_;
};

const Bug& bug_of(const std::string& id) {
  static const std::vector<Bug> bugs = all_bugs();
  const auto found = std::find_if(bugs.begin(), bugs.end(), [&](const Bug& m) { return m.id == id; });
  if (found != bugs.end() && (found->rows_sampler || found->filter_sampler)) return *found;
  std::vector<std::string> known;
  for (const LabBug& bug : lab_bugs()) known.push_back(bug.id);
  throw usage_error("--bug", "'" + id + "' is not a bug of one step over any p and q; there are: " +
                                 joined(known, ", ") + did_you_mean(id, known));
}

LargeSampler faulty_sampler(const DistributionLabSnapshot& rows) {
  const DistributionLabSettings& settings = rows.settings;
  const Bug& bug = bug_of(settings.bug);
  if (bug.rows_sampler) return bug.rows_sampler(std::make_shared<const FixedRows>(rows.p, rows.q));
  if (settings.temperature == 0.0f)
    throw usage_error("--bug", bug.id + " is a fault of the filters; expected a temperature above 0");
  const RowParameters parameters = parameters_of(settings);
  Logits logits = logits_of(settings.target);
  combine_guidance(logits, unconditional_logits(settings), parameters.guidance_scale, {0, "--target", 0}, logits,
                   parameters.guidance_form);
  return bug.filter_sampler(logits, parameters);
}

LabSampler bug_sampler(const DistributionLabSnapshot& rows) {
  const LargeSampler faulty = faulty_sampler(rows);
  // Bugs number their requests; those of a seed begin at a place of its own, at a multiple of any batch.
  const std::uint64_t first = derive_seed(rows.settings.seed, 0) << 32;
  return {faulty.distribution,
          [draw = faulty.draw, first](std::uint64_t number) { return LabSample{draw(first + number)}; }};
}

}  // namespace

const std::vector<LabBug>& lab_bugs() {
  static const std::vector<LabBug> listed = [] {
    std::vector<LabBug> bugs;
    for (const Bug& bug : all_bugs()) {
      if (!bug.rows_sampler && !bug.filter_sampler) continue;
      std::string detectors;
      for (const Hunt& hunt : bug.hunts) {
        const char letter = static_cast<char>(hunt.detector);
        if (detectors.find(letter) == std::string::npos) detectors += letter;
      }
      bugs.push_back({bug.id, bug.source, bug.fault, detectors});
    }
    return bugs;
  }();
  return listed;
}

void fill_rows(DistributionLabSnapshot& snapshot) {
  const DistributionLabSettings& settings = snapshot.settings;
  const RowParameters parameters = parameters_of(settings);
  const Logits unconditional = unconditional_logits(settings);
  snapshot.p = processed(logits_of(settings.target), unconditional, parameters, "--target");
  snapshot.q = processed(logits_of(settings.draft), unconditional, parameters, "--draft");
  if (parameters.guidance_form != GuidanceForm::logits) {
    const auto distance = [&](const std::vector<double>& weights) {
      return guidance_distance(logits_of(weights), unconditional, parameters.guidance_scale);
    };
    snapshot.guidance_distance = {distance(settings.target), distance(settings.draft)};
  }
  double residual_total = 0.0;
  for (std::size_t i = 0; i < snapshot.p.size(); ++i) {
    const double p = snapshot.p[i];
    const double q = snapshot.q[i];
    snapshot.overlap.push_back(std::min(p, q));
    snapshot.residual.push_back(std::max(p - q, 0.0));
    snapshot.acceptance += snapshot.overlap.back();
    snapshot.total_variation += std::abs(p - q) / 2.0;
    residual_total += snapshot.residual.back();
  }
  for (double& x : snapshot.residual)
    if (residual_total > 0.0) x /= residual_total;
}

LabSampler lab_sampler(const DistributionLabSnapshot& rows) {
  if (!rows.settings.bug.empty()) return bug_sampler(rows);
  return {rows.p, [sampler = std::make_shared<StepSampler>(rows)](std::uint64_t number) { return (*sampler)(number); }};
}

std::vector<LossyRule> lossy_rules(const DistributionLabSnapshot& rows, Job& job) {
  const auto samples = static_cast<std::uint64_t>(std::min(rows.settings.samples, kLabLossySamples));
  DistributionLabSnapshot with_rule = rows;
  std::vector<LossyRule> rules;
  for (const char* const name : kComparedLossyRules) {
    job.check();
    with_rule.settings.verifier = name;
    StepSampler sampler(with_rule, true);
    std::int64_t accepted = 0;
    for (std::uint64_t number = 0; number < samples; ++number) accepted += sampler(number).num_accepted;
    rules.push_back({name, static_cast<double>(accepted) / static_cast<double>(samples), sampler.distance()});
  }
  return rules;
}

}  // namespace draftproof
