#include "reference/verify/consistency.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "reference/verify/verify_request.hpp"

using namespace draftproof;

namespace {

constexpr std::int64_t kVocab = 6;
constexpr std::array<float, 12> kTargetLogits{1.2f, 0.1f, -0.5f, 2.0f, -3.0f, 0.7f, 0, 0, 0, 0, 0, 0};
constexpr std::array<float, 6> kDraftLogits{0.3f, 1.0f, -1.0f, 1.4f, 0.2f, -2.0f};

VerifyRequest request_with(std::span<const Token> draft) {
  VerifyRequest request;
  request.draft = draft;
  request.target = {DType::f32, kTargetLogits.data(), 2, kVocab, kVocab};
  request.proposal_kind = ProposalKind::logits;
  request.proposal = {DType::f32, kDraftLogits.data(), 1, kVocab, kVocab};
  return request;
}

struct Simulation {
  double acceptance;
  double total_variation;
};

// Draws drafts with `drafted_with`, verifies with the request's own assumption, and counts what comes out first.
Simulation simulate(VerifyRequest request, const RowParameters& drafted_with, int draws) {
  VerifyWorkspace workspace;
  Pipeline pipeline;
  RowLaw drafted;
  PhiloxSource source;
  process_draft_row(request, 0, drafted_with, pipeline, drafted);
  std::array<double, kVocab> counts{};
  double accepted = 0;
  for (int i = 0; i < draws; ++i) {
    request.seed = derive_seed(7, static_cast<std::uint64_t>(i));
    AddressedChance<PhiloxSource> chance(source, request.seed, 0);
    const std::array<Token, 1> draft{chance.draw(LawMasses(drafted), 0, Purpose::draft_sample)};
    request.draft = draft;
    const Emission emission = verify_request(request, {}, source, workspace);
    counts[static_cast<std::size_t>(emission.tokens[0])] += 1.0 / draws;
    accepted += static_cast<double>(emission.num_accepted) / draws;
  }
  double total = 0;
  std::array<double, kVocab> p{};
  for (std::size_t i = 0; i < kVocab; ++i) total += p[i] = std::exp(static_cast<double>(kTargetLogits[i]));
  double distance = 0;
  for (std::size_t i = 0; i < kVocab; ++i) distance += std::abs(counts[i] - p[i] / total) / 2;
  return {accepted, distance};
}

}  // namespace

TEST_CASE("Drafts drawn at another temperature cost the reported acceptance and leave the law exact") {
  const std::array<Token, 1> draft{0};
  VerifyRequest request = request_with(draft);
  request.draft_parameters.temperature = 3.0f;
  const ConsistencyReport report = check_consistency(std::array{request});
  REQUIRE(report.rows == 1);
  REQUIRE(report.differences.size() == 1);
  CHECK(report.differences[0].parameter == "temperature");
  CHECK_FALSE(report.law_changes);
  CHECK(std::abs(report.acceptance - report.acceptance_if_equal) > 0.01);
  const Simulation simulation = simulate(request, request.draft_parameters, 100'000);
  CHECK(simulation.acceptance == Approx(report.acceptance).margin(0.007));  // 4.5 standard errors
  CHECK(simulation.total_variation < 0.01);
  CHECK(report.sentence.find("temperature 3 instead of 1") != std::string::npos);
}

TEST_CASE("Argmax drafts verified with softmax probabilities change the law by the reported distance") {
  const std::array<Token, 1> draft{3};
  const VerifyRequest request = request_with(draft);
  RowParameters argmax;
  argmax.temperature = 0.0f;
  const ConsistencyReport report = check_consistency(std::array{request}, {.temperature = 0.0f});
  CHECK(report.law_changes);
  CHECK(report.total_variation > 0.05);
  const Simulation simulation = simulate(request, argmax, 100'000);
  CHECK(simulation.total_variation == Approx(report.total_variation).margin(0.007));
  CHECK(simulation.acceptance == Approx(report.acceptance).margin(0.007));
  CHECK(report.sentence.find("error") != std::string::npos);
}

TEST_CASE("Filtered drafts verified with their unfiltered law are reported as a changed law") {
  const std::array<Token, 1> draft{3};
  const VerifyRequest request = request_with(draft);
  RowParameters filtered;
  filtered.filters.top_k = 2;
  const ConsistencyReport report = check_consistency(std::array{request}, {.top_k = 2});
  CHECK(report.law_changes);
  CHECK(simulate(request, filtered, 100'000).total_variation == Approx(report.total_variation).margin(0.007));
}

TEST_CASE("Drafts drawn and verified like the target are consistent") {
  const std::array<Token, 1> draft{3};
  const ConsistencyReport report = check_consistency(std::array{request_with(draft)});
  CHECK(report.differences.empty());
  CHECK_FALSE(report.law_changes);
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
                    Catch::Contains("top_p") && Catch::Contains("(0, 1]"));
}
