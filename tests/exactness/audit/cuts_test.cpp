// Faults of sampling parameters: tokens beyond a cut, tokens just inside it, and the score, on rows whose ln p has the
// variance 1.36 that was measured on lists of a served model.
#include "exactness/audit/audit.hpp"
#include "reference/step/dense_step_rows.hpp"
#include "reference/step/step_rows.hpp"
#include "tests/exactness/audit/found_tests.hpp"
#include "tests/exactness/audit/samples.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kCutVocab = 128;
constexpr std::int64_t kCutRows = 64;

struct CutParameters {
  float temperature = 1.0f;
  std::int32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
};

VerifyRequest cut_request(const CutParameters& parameters, const float* logits) {
  VerifyRequest request;
  request.target = {DType::f32, logits, 1, kCutVocab, kCutVocab};
  request.parameters.temperature = parameters.temperature;
  request.parameters.filters.top_k = parameters.top_k;
  request.parameters.filters.top_p = parameters.top_p;
  request.parameters.filters.min_p = parameters.min_p;
  return request;
}

// Draws by the second parameters that are said to be by the first, of rows in turn.
DrawSample drawn_with_cuts(std::uint64_t seed, std::int64_t draws, const CutParameters& stated,
                           const CutParameters& used) {
  TestRandom random(seed);
  const auto logits = std::make_shared<std::vector<float>>();
  for (std::int64_t i = 0; i < kCutRows * kCutVocab; ++i) logits->push_back(1.24f * random.normal());
  DrawSample sample;
  sample.begins = {0};
  StepWorkspace workspace;
  for (std::int64_t g = 0; g < std::min(draws, kCutRows); ++g) {
    const float* const row = logits->data() + g * kCutVocab;
    std::vector<double> distribution =
        dense_row(StepRows(cut_request(used, row), {.logprobs = false}, workspace).target(0));
    double sum = 0.0;
    for (const double p : distribution) sum += p;
    for (double& p : distribution) p /= sum;
    std::vector<std::int64_t> counts(kCutVocab, 0);
    for (std::int64_t i = g; i < draws; i += kCutRows) ++counts[random.draw(distribution)];
    for (std::size_t token = 0; token < counts.size(); ++token)
      if (counts[token] > 0) sample.counts.push_back({static_cast<Token>(token), counts[token]});
    sample.begins.push_back(sample.counts.size());
    sample.group_ids.push_back(g);
    sample.distributions.push_back(cut_request(stated, row));
  }
  sample.keeps = logits;
  return sample;
}

struct CutFault {
  const char* name;
  CutParameters stated, used;
  const char* test;    // that finds it
  std::int64_t draws;  // in which it does so at least nine times of ten
};

const CutFault kCutFaults[] = {
    {"temperature + 3 %", {1.0f}, {1.03f}, "score", 40000},
    {"temperature + 3 %, min_p 0.1", {1.3f, 0, 1.0f, 0.1f}, {1.339f, 0, 1.0f, 0.1f}, "support", 209},
    {"temperature - 3 %, min_p 0.1", {1.3f, 0, 1.0f, 0.1f}, {1.261f, 0, 1.0f, 0.1f}, "shell", 1100},
    {"top_p 0.927 for 0.9", {1.0f, 0, 0.9f}, {1.0f, 0, 0.927f}, "support", 110},
    {"top_p 0.873 for 0.9", {1.0f, 0, 0.9f}, {1.0f, 0, 0.873f}, "shell", 690},
    {"top_k 19 for 20", {1.0f, 20}, {1.0f, 19}, "shell", 3100},
};

TEST_CASE(
    "faults of 3 % are found in as few draws as are stated, the most by the tests of cuts and of the score alone") {
  constexpr int kRuns = 20;
  for (const CutFault& fault : kCutFaults) {
    INFO(fault.name);
    int found = 0;
    int without = 0;
    for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
      std::vector<TestResult> tests =
          audit_draws(drawn_with_cuts(seed, fault.draws, fault.stated, fault.used), {}).tests;
      found += test_of(tests, fault.test).rejects ? 1 : 0;
      std::erase_if(tests, [](const TestResult& test) {
        return test.name == "score" || test.name == "shell" || test.name == "edge";
      });
      judge(tests, 1e-6);
      without += rejecting(tests).empty() ? 0 : 1;
    }
    CHECK(possible_rates(found, kRuns, 12).high >= 0.9);
    if (std::string(fault.test) != "support") CHECK(without < found);
  }
}

TEST_CASE("the last kept token drawn too seldom or too often is found by it") {
  // Stated are 0.5, 0.3, 0.15, 0.05 and a cut token; the one of 0.05 is drawn half as often as it should be.
  const std::vector<double> stated{0.5, 0.05, 0.0, 0.3, 0.15};
  const std::vector<double> seldom{0.525, 0.025, 0.0, 0.3, 0.15};
  const std::vector<double> often{0.45, 0.1, 0.0, 0.3, 0.15};
  for (const auto& used : {stated, seldom, often}) {
    const Audit audit = audit_draws(drawn(11, 6000, stated, used), {});
    const TestResult& test = test_of(audit, "edge");
    CHECK(test.rejects == (used != stated));
    CHECK(test.worst_cells.front().expected == Approx(300.0));
    CHECK(test.worst_cells.front().observed == test.statistic);
  }
}

TEST_CASE("cuts and scores accuse correct samplers no more often than the level, which Holm splits over all tests") {
  constexpr int kSamples = 150;
  const CutParameters settings[] = {{1.3f, 0, 1.0f, 0.1f}, {1.0f, 20}, {0.8f, 0, 0.9f}};
  int accused = 0;
  for (int i = 0; i < kSamples; ++i) {
    const CutParameters& same = settings[i % 3];
    const Audit audit =
        audit_draws(drawn_with_cuts(1000 + static_cast<std::uint64_t>(i), 2000, same, same), {.alpha = 0.05});
    accused += audit.verdict == AuditVerdict::biased ? 1 : 0;
    double least = 1.0;
    for (const TestResult& test : audit.tests) least = std::min(least, test.p_value);
    for (const TestResult& test : audit.tests) {
      if (test.p_value == least)
        CHECK(test.p_value_holm == Approx(std::min(1.0, least * static_cast<double>(audit.tests.size()))));
    }
  }
  CHECK(possible_rates(accused, kSamples).low <= 0.05);
}

TEST_CASE("the temperature that a score detects is the one of its standard deviation") {
  // p = 1/2, 1/4, 1/4: Var ln p = (ln 2 / 2)^2. Six tests of two sides.
  const std::vector<double> distribution{0.5, 0.25, 0.25};
  const Audit audit = audit_draws(drawn(4, 10000, distribution, distribution), {});
  REQUIRE(audit.tests.size() == 6);
  CHECK(audit.score_deviation == Approx(100.0 * 0.5 * std::log(2.0)).epsilon(1e-6));
  const double level = 1e-6 / 12.0;
  const boost::math::normal normal;
  CHECK(*audit.detectable_temperature ==
        Approx((quantile(complement(normal, level)) + quantile(normal, 0.99)) / audit.score_deviation));
  // Nothing is asked of a flat distribution.
  const std::vector<double> flat(4, 0.25);
  CHECK(find(audit_draws(drawn(5, 1000, flat, flat), {}), "score") == nullptr);
  CHECK_FALSE(audit_draws(drawn(5, 1000, flat, flat), {}).detectable_temperature);
}

}  // namespace
