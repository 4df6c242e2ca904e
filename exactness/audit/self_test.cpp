#include "exactness/audit/self_test.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "exactness/audit/audit.hpp"
#include "exactness/statistics/battery.hpp"
#include "exactness/statistics/holm.hpp"
#include "exactness/statistics/kolmogorov_smirnov.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/sampling/dense_draw.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {
namespace {

// Small, but each test has enough that the approximations of its null distribution are below what 10,000 p values can
// resolve.
constexpr std::int64_t kDrawVocab = 12;
constexpr std::int64_t kDrawGroups = 3;
constexpr std::int64_t kDraws = 3000;
constexpr std::int64_t kStepVocab = 5;
constexpr std::int64_t kStepContexts = 2;
constexpr std::int64_t kDraftLen = 3;
constexpr std::int64_t kSteps = 1000;

// A distribution [V] whose numbers depend on the key and `index` alone; one token in eight is impossible, the first
// never.
void random_distribution(std::uint64_t key, std::uint32_t index, std::span<float> distribution) {
  float sum = 0.0f;
  for (std::size_t i = 0; i < distribution.size(); ++i) {
    const RandomBlock block = PhiloxSource().block(key, {static_cast<std::uint32_t>(i), index, 0, Purpose::choice});
    const bool possible = i == 0 || block.word[0] % 8 != 0;
    distribution[i] = possible ? 0.05f + static_cast<float>(block.word[1] >> 8) * 0x1p-24f : 0.0f;
    sum += distribution[i];
  }
  for (float& p : distribution) p /= sum;
}

Token draw(std::span<const float> distribution, std::uint64_t seed, const Address& address) {
  const std::vector<double> masses(distribution.begin(), distribution.end());
  return DenseDraw(masses).draw(PhiloxSource().block(seed, address));
}

DrawSample null_draws(std::uint64_t key) {
  const auto rows = std::make_shared<std::vector<float>>(kDrawGroups * kDrawVocab);
  DrawSample sample;
  sample.begins = {0};
  for (std::int64_t g = 0; g < kDrawGroups; ++g) {
    const auto distribution = std::span(*rows).subspan(static_cast<std::size_t>(g * kDrawVocab), kDrawVocab);
    random_distribution(key, static_cast<std::uint32_t>(g), distribution);
    VerifyRequest request;
    request.target_is_probabilities = true;
    request.target = {DType::f32, distribution.data(), 1, kDrawVocab, kDrawVocab};
    sample.distributions.push_back(request);
    sample.group_ids.push_back(g);
    std::vector<std::int64_t> counts(kDrawVocab, 0);
    for (std::uint32_t i = 0; i < kDraws / kDrawGroups; ++i)
      ++counts[static_cast<std::size_t>(
          draw(distribution, key, {i, static_cast<std::uint32_t>(g), 0, Purpose::target_sample}))];
    for (std::size_t token = 0; token < counts.size(); ++token) {
      if (counts[token] > 0) sample.counts.push_back({static_cast<Token>(token), counts[token]});
    }
    sample.begins.push_back(sample.counts.size());
  }
  sample.keeps = rows;
  return sample;
}

// Distributions of two small models that depend on the context, the position and the last token; rows of every request.
struct SelfTestRows {
  std::vector<float> target_model, draft_model;  // [contexts, positions, V (last token), V]
  std::vector<float> target, draft;              // [B, K + 1, V], [B, K, V]
  std::vector<Token> drafts;                     // [B, K]
};

std::span<const float> model_row(const std::vector<float>& model, std::int64_t context, std::int64_t position,
                                 Token last) {
  const std::int64_t index = (context * (kDraftLen + 1) + position) * kStepVocab + last;
  return std::span(model).subspan(static_cast<std::size_t>(index * kStepVocab), kStepVocab);
}

void fill_model(std::uint64_t key, std::vector<float>& model) {
  const std::int64_t count = kStepContexts * (kDraftLen + 1) * kStepVocab;
  model.resize(static_cast<std::size_t>(count * kStepVocab));
  for (std::int64_t i = 0; i < count; ++i)
    random_distribution(key, static_cast<std::uint32_t>(i),
                        std::span(model).subspan(static_cast<std::size_t>(i * kStepVocab), kStepVocab));
}

StepSample null_steps(std::uint64_t key) {
  const auto rows = std::make_shared<SelfTestRows>();
  fill_model(derive_seed(key, 1), rows->target_model);
  fill_model(derive_seed(key, 2), rows->draft_model);
  rows->drafts.resize(kSteps * kDraftLen);
  rows->target.reserve(kSteps * (kDraftLen + 1) * kStepVocab);
  rows->draft.reserve(kSteps * kDraftLen * kStepVocab);
  StepSample sample;
  sample.begins = {0};
  StepWorkspace workspace;
  PhiloxSource source;
  for (std::int64_t b = 0; b < kSteps; ++b) {
    const std::uint64_t seed = derive_seed(key, static_cast<std::uint64_t>(3 + b));
    VerifyRequest request;
    request.target_is_probabilities = true;
    request.proposal_kind = ProposalKind::probabilities;
    request.target = {DType::f32, rows->target.data() + rows->target.size(), kDraftLen + 1, kStepVocab, kStepVocab};
    request.proposal = {DType::f32, rows->draft.data() + rows->draft.size(), kDraftLen, kStepVocab, kStepVocab};
    request.seed = seed;
    Token last = 0;
    for (std::int64_t i = 0; i <= kDraftLen; ++i) {
      const auto p = model_row(rows->target_model, b % kStepContexts, i, last);
      rows->target.insert(rows->target.end(), p.begin(), p.end());
      if (i == kDraftLen) break;
      const auto q = model_row(rows->draft_model, b % kStepContexts, i, last);
      rows->draft.insert(rows->draft.end(), q.begin(), q.end());
      last = draw(q, seed, {0, static_cast<std::uint32_t>(i), 0, Purpose::draft_sample});
      rows->drafts[static_cast<std::size_t>(b * kDraftLen + i)] = last;
    }
    request.draft = DraftTree::chain(
        std::span<const Token>(rows->drafts).subspan(static_cast<std::size_t>(b * kDraftLen), kDraftLen));
    const Emission emission = verify_step(request, {.raw_logprobs = false}, source, workspace);
    sample.tokens.insert(sample.tokens.end(), emission.tokens.begin(), emission.tokens.end());
    sample.begins.push_back(sample.tokens.size());
    sample.requests.push_back(request);
  }
  sample.keeps = rows;
  return sample;
}

struct NamedPValue {
  std::string name;
  double p_value;
};

struct BatteryResult {
  std::vector<NamedPValue> p_values;
  std::int64_t impossible = 0;
  bool accused = false;
};

BatteryResult run_battery(std::uint64_t key, double alpha) {
  std::vector<TestResult> tests;
  const auto take = [&](const std::string& kind, Audit audit) {
    for (TestResult& test : audit.tests) {
      test.name = kind + "/" + test.name;
      tests.push_back(std::move(test));
    }
  };
  const AuditOptions options{.alpha = alpha, .seed = derive_seed(key, 0)};
  take("draws", audit_draws(null_draws(derive_seed(key, 1)), options));
  take("steps", audit_steps(null_steps(derive_seed(key, 2)), options));
  judge(tests, alpha);
  BatteryResult battery;
  for (const TestResult& test : tests) {
    battery.accused = battery.accused || test.rejects;
    if (test.null_distribution == NullDistribution::certainty) {
      battery.impossible += test.rejects ? 1 : 0;
    } else if (test.null_distribution != NullDistribution::tail) {  // those are discrete, or bounds
      battery.p_values.push_back({test.name, test.p_value});
    }
  }
  return battery;
}

PooledTest pooled(const std::string& name, const std::vector<double>& p_values, double alpha) {
  PooledTest test;
  test.name = name;
  test.count = static_cast<std::int64_t>(p_values.size());
  test.ks_distance = uniform_distance(p_values);
  test.ks_p_value = kolmogorov_p_value(test.count, test.ks_distance);
  test.below_alpha = std::count_if(p_values.begin(), p_values.end(), [&](double p) { return p < alpha; });
  return test;
}

// Where the least KS p value, after Holm, is below this, the self-test says that they are not uniform.
constexpr double kSelfTestLevel = 1e-3;

}  // namespace

bool SelfTest::is_finding() const {
  return impossible > 0 || accused_interval.low > alpha || least_ks_p_value_holm < kSelfTestLevel;
}

std::string SelfTest::sentence() const {
  if (is_finding())
    return "the audit accuses correct samplers more often than it says, or its p values are not uniform";
  return "the audit accuses correct samplers no more often than it says";
}

SelfTest test_null_batteries(const SelfTestOptions& options, const std::function<void(std::int64_t)>& done) {
  if (options.batteries < 1 || options.threads < 1)
    throw usage_error("self-test", "needs 1 battery and 1 thread or more");
  std::vector<BatteryResult> batteries(static_cast<std::size_t>(options.batteries));
  std::atomic<std::int64_t> finished{0};
  parallel_for(options.batteries, options.threads, [&](std::int64_t i, int) {
    batteries[static_cast<std::size_t>(i)] =
        run_battery(derive_seed(options.seed, static_cast<std::uint64_t>(i)), options.alpha);
    if (done) done(++finished);
  });

  SelfTest result;
  result.batteries = options.batteries;
  result.alpha = options.alpha;
  std::vector<std::string> names;
  std::map<std::string, std::vector<double>> p_values;
  for (const BatteryResult& battery : batteries) {
    result.accused += battery.accused ? 1 : 0;
    result.impossible += battery.impossible;
    for (const auto& [name, p_value] : battery.p_values) {
      if (!p_values.contains(name)) names.push_back(name);
      p_values[name].push_back(p_value);
    }
  }
  result.accused_interval = clopper_pearson(result.accused, result.batteries, 0.99);
  std::vector<double> ks;
  for (const std::string& name : names) {
    result.tests.push_back(pooled(name, p_values[name], options.alpha));
    ks.push_back(result.tests.back().ks_p_value);
  }
  for (const double p : holm_adjusted(ks)) result.least_ks_p_value_holm = std::min(result.least_ks_p_value_holm, p);
  return result;
}

}  // namespace draftproof
