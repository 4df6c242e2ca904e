#include "reference/step/consistency.hpp"

#include "reference/step/verify_step.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocab = 6;
constexpr std::array<float, 12> kTargetLogits{1.2f, 0.1f, -0.5f, 2.0f, -3.0f, 0.7f, 0, 0, 0, 0, 0, 0};
constexpr std::array<float, 6> kDraftLogits{0.3f, 1.0f, -1.0f, 1.4f, 0.2f, -2.0f};

VerifyRequest request_with(std::span<const Token> draft) {
  VerifyRequest request;
  request.draft = DraftTree::chain(draft);
  request.target = {DType::f32, kTargetLogits.data(), 2, kVocab, kVocab};
  request.proposal_kind = ProposalKind::logits;
  request.proposal = {DType::f32, kDraftLogits.data(), 1, kVocab, kVocab};
  return request;
}

std::vector<double> softmax(std::span<const float> logits) {
  std::vector<double> distribution;
  double total = 0;
  for (const float x : logits) total += distribution.emplace_back(std::exp(static_cast<double>(x)));
  for (double& x : distribution) x /= total;
  return distribution;
}
const std::vector<double> kTargetDistribution = softmax(std::span(kTargetLogits).first(kVocab));

// The distribution of the first token where drafts of distribution `drafted` are verified with `stated`.
std::vector<double> emitted_distribution(const std::vector<double>& drafted, const std::vector<double>& stated) {
  std::vector<double> distribution(kVocab), residual(kVocab);
  double rejected = 1;
  double residual_total = 0;
  for (std::size_t i = 0; i < kVocab; ++i) {
    rejected -= distribution[i] = drafted[i] * std::min(1.0, kTargetDistribution[i] / stated[i]);
    residual_total += residual[i] = std::max(0.0, kTargetDistribution[i] - stated[i]);
  }
  for (std::size_t i = 0; i < kVocab; ++i) distribution[i] += rejected * residual[i] / residual_total;
  return distribution;
}

double distance_from_target(const std::vector<double>& distribution) {
  double sum = 0;
  for (std::size_t i = 0; i < kVocab; ++i) sum += std::abs(distribution[i] - kTargetDistribution[i]);
  return sum / 2;
}

constexpr std::int64_t kDraws = 100'000;

struct Simulation {
  std::int64_t accepted = 0;
  std::vector<std::int64_t> counts = std::vector<std::int64_t>(kVocab);  // of what comes out first
};

// Draws drafts with `drafted_with` and verifies with the request's own assumption.
Simulation simulate(VerifyRequest request, const RowParameters& drafted_with) {
  StepWorkspace workspace;
  Pipeline pipeline;
  Distribution drafted;
  PhiloxSource source;
  process_proposal_row(request, 0, drafted_with, pipeline, drafted);
  Simulation simulation;
  for (std::int64_t i = 0; i < kDraws; ++i) {
    request.seed = derive_seed(7, static_cast<std::uint64_t>(i));
    AddressedChance<PhiloxSource> chance(source, request.seed, 0);
    const std::array<Token, 1> draft{chance.draw(DistributionMasses(drafted), 0, Purpose::draft_sample)};
    request.draft = DraftTree::chain(draft);
    const Emission emission = verify_step(request, {}, source, workspace);
    ++simulation.counts[static_cast<std::size_t>(emission.tokens[0])];
    simulation.accepted += emission.num_accepted;
  }
  return simulation;
}

}  // namespace

TEST_CASE("Drafts drawn at another temperature cost the reported acceptance and leave the distribution exact",
          "[release]") {
  const std::array<Token, 1> draft{0};
  VerifyRequest request = request_with(draft);
  request.draft_parameters.temperature = 3.0f;
  const ConsistencyReport report = check_consistency(std::array{request});
  REQUIRE(report.rows == 1);
  REQUIRE(report.differences.size() == 1);
  CHECK(report.differences[0].parameter == "temperature");
  CHECK_FALSE(report.distribution_changes);
  CHECK(std::abs(report.acceptance - report.acceptance_if_equal) > 0.01);
  const Simulation simulation = simulate(request, request.draft_parameters);
  CHECK(has_rate(simulation.accepted, kDraws, report.acceptance, 2));
  CHECK(follows(simulation.counts, kTargetDistribution, 2));
  CHECK(report.sentence.find("temperature 3 instead of 1") != std::string::npos);
}

TEST_CASE("Drafts drawn otherwise than stated change the distribution by the reported distance", "[release]") {
  struct Case {
    DraftedWith drafted_with;
    std::vector<double> drafted;
  };
  const std::vector<double> stated = softmax(kDraftLogits);
  const double kept = stated[1] + stated[3];
  for (const Case& c : {Case{{.temperature = 0.0f}, {0, 0, 0, 1, 0, 0}},
                        Case{{.top_k = 2}, {0, stated[1] / kept, 0, stated[3] / kept, 0, 0}}}) {
    const std::array<Token, 1> draft{3};
    const VerifyRequest request = request_with(draft);
    const ConsistencyReport report = check_consistency(std::array{request}, c.drafted_with);
    INFO(report.sentence);
    CHECK(report.distribution_changes);
    CHECK(report.total_variation > 0.05);
    const std::vector<double> distribution = emitted_distribution(c.drafted, stated);
    CHECK(report.total_variation == Approx(distance_from_target(distribution)).margin(1e-5));
    RowParameters drafted_with;
    drafted_with.temperature = c.drafted_with.temperature.value_or(1.0f);
    drafted_with.filters.top_k = c.drafted_with.top_k.value_or(0);
    const Simulation simulation = simulate(request, drafted_with);
    CHECK(has_rate(simulation.accepted, kDraws, report.acceptance, 4));
    CHECK(follows(simulation.counts, distribution, 4));
    CHECK_FALSE(follows(simulation.counts, kTargetDistribution, 4));
    CHECK(report.sentence.find("error") != std::string::npos);
  }
}

TEST_CASE("Drafts drawn and verified like the target are consistent") {
  const std::array<Token, 1> draft{3};
  const ConsistencyReport report = check_consistency(std::array{request_with(draft)});
  CHECK(report.differences.empty());
  CHECK_FALSE(report.distribution_changes);
  CHECK(report.acceptance == report.acceptance_if_equal);
  CHECK(report.total_variation < 1e-6);
}

TEST_CASE("Requests without draft logits have nothing to be consistent with") {
  const std::array<Token, 1> draft{3};
  VerifyRequest request = request_with(draft);
  request.proposal_kind = ProposalKind::one_hot;
  CHECK(check_consistency(std::array{request}).rows == 0);
}

TEST_CASE("A drafter setting out of range is an error that names it") {
  const std::array<Token, 1> draft{3};
  CHECK_THROWS_WITH(check_consistency(std::array{request_with(draft)}, {.top_p = 1.5f}),
                    Contains("top_p") && Contains("(0, 1]"));
}
