#include "sim/acceptance/verifier_rates.hpp"

#include "reference/step/draft_plan.hpp"
#include "sim/acceptance/rates.hpp"
#include "tests/sim/acceptance/sampled_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

VerifierRatesOptions options_of(const char* verifier, std::int32_t drafts_max, std::int32_t samples) {
  VerifierRatesOptions options;
  options.verifier = parse_verifier(verifier, "test");
  options.pairs = {32, 1.0, 1.0};
  options.drafts_max = drafts_max;
  options.samples = samples;
  return options;
}

// E[sum min(p, q)], the acceptance of one draft.
double overlap(const SyntheticPairs& pairs) {
  const std::vector<double> p = synthetic_row({pairs.vocab_size, pairs.zipf, 0.0}, 0, 0);
  double sum = 0.0;
  constexpr std::uint32_t kRows = 20'000;
  for (std::uint32_t row = 1; row <= kRows; ++row) {
    const std::vector<double> q = synthetic_row(pairs, 12345, row);
    for (std::size_t i = 0; i < p.size(); ++i) sum += std::min(p[i], q[i]);
  }
  return sum / kRows;
}

}  // namespace

TEST_CASE("the chain verifier on synthetic pairs accepts by the overlap of the distributions") {
  constexpr std::int32_t kSamples = 20'000;
  const VerifierRatesOptions options = options_of("chain", 3, kSamples);
  const VerifierRates model(options, 1, "test");
  const double a = overlap(options.pairs);
  CHECK(a > 0.4);
  CHECK(a < 0.9);
  const std::vector<double> survival = model.survival(3, 3);
  for (int i = 1; i <= 3; ++i)
    CHECK(has_rate(std::llround(survival[static_cast<std::size_t>(i - 1)] * kSamples), kSamples, std::pow(a, i), 3));
  CHECK(follows(accepted_counts(model, 3, 3, 50'000), lengths_of(survival)));
}

TEST_CASE(
    "the verification algorithm is a switch: block verification accepts more, sampler match less, than the chain") {
  const auto length = [](const char* verifier) {
    return acceptance_length_of(VerifierRates(options_of(verifier, 6, 8000), 2, "test").survival(6, 6));
  };
  const double chain = length("chain");
  CHECK(length("block") > chain + 0.02);
  CHECK(length("sampler_match") < chain - 0.02);
  CHECK(length("synthetic:rate=0.8") == Approx((1 - std::pow(0.8, 7)) / 0.2).epsilon(0.03));
  // Equal distributions: every draft of a lossless verifier is accepted.
  VerifierRatesOptions equal = options_of("block", 4, 200);
  equal.pairs.noise = 0.0;
  CHECK(VerifierRates(equal, 2, "test").survival(4, 4) == std::vector<double>(4, 1.0));
}

TEST_CASE("tree verifiers are tried on the tree that is named, paths on their paths, and on nothing else") {
  VerifierRatesOptions options = options_of("rrsw", 2, 3000);
  options.tree = parse_tree("4x2", "test");
  const VerifierRates model(options, 3, "test");
  CHECK(model.survival(12, 2)[0] > model.survival(2, 2)[0] + 0.05);
  CHECK(error_of(ErrorKind::usage, [&] { model.survival(7, 3); }) ==
        "test: the verifier is not tried on a draft of 7 nodes and 3 levels; expected a chain within `drafts`, or the "
        "shape of `tree`");
  const VerifierRates paths(options_of("greedy_multipath:paths=3", 2, 3000), 3, "test");
  CHECK(paths.survival(6, 2)[0] > model.survival(2, 2)[0]);
  options.verifier = parse_verifier("block", "test");
  CHECK_THROWS_WITH(VerifierRates(options, 3, "test"), Contains("takes a chain"));
}
