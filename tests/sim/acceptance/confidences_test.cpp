#include "sim/acceptance/confidences.hpp"

#include "sim/acceptance/beta_mixture.hpp"
#include "sim/acceptance/block_decay.hpp"
#include "sim/acceptance/context_decay.hpp"
#include "sim/acceptance/position_rates.hpp"
#include "sim/acceptance/rates.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::size_t kBins = 10;

// Drafts that were judged, by the tenth in which their confidence lies.
struct Reliability {
  std::array<double, kBins> confidence{}, accepted{}, judged{};

  // The worst deviation of a tenth's share of accepted drafts from its mean confidence, in standard errors.
  double worst() const {
    double most = 0.0;
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      if (judged[bin] < 100.0) continue;
      const double mean = confidence[bin] / judged[bin];
      const double error = std::sqrt(mean * (1.0 - mean) / judged[bin]);
      most = std::max(most, std::abs(accepted[bin] / judged[bin] - mean) / error);
    }
    return most;
  }
};

Reliability reliability_of(const AcceptanceModel& model, std::int32_t depth, std::int32_t context_len) {
  Reliability found;
  std::vector<float> confidences;
  for (std::uint64_t request = 0; request < 20'000; ++request) {
    AcceptanceState state = model.begin(request);
    const std::int32_t n = model.accepted_with_confidences(state, {3, context_len}, depth, confidences);
    REQUIRE(confidences.size() == static_cast<std::size_t>(depth));
    for (std::int32_t slot = 0; slot < std::min(n + 1, depth); ++slot) {
      const auto c = static_cast<double>(confidences[static_cast<std::size_t>(slot)]);
      const auto bin = std::min(static_cast<std::size_t>(c * kBins), kBins - 1);
      found.confidence[bin] += c;
      found.accepted[bin] += slot < n ? 1.0 : 0.0;
      found.judged[bin] += 1.0;
    }
  }
  return found;
}

std::shared_ptr<const AcceptanceModel> falling() {
  return std::make_shared<PositionRates>(std::vector<double>{0.9, 0.7, 0.5}, 4, "test");
}

}  // namespace

// 5 standard errors: 10 bins of 3 models, a false alarm in some 50,000 seeds.
TEST_CASE("among drafts of one confidence that share is accepted, whatever stands around the model") {
  for (const double explained : {0.05, 0.3, 0.8}) {
    const Confidences model(falling(), explained, 0.0, 9);
    const Reliability found = reliability_of(model, 3, 100);
    CHECK(found.worst() < 5.0);
    int filled = 0;
    for (const double judged : found.judged) filled += judged >= 100.0 ? 1 : 0;
    CHECK(filled >= (explained < 0.1 ? 5 : 9));
  }
  const auto confident = std::make_shared<Confidences>(falling(), 0.3, 0.0, 9);
  CHECK(reliability_of(ContextDecay(confident, 100, 200), 3, 300).worst() < 5.0);
  CHECK(reliability_of(BlockDecay(confident, 2, 0.7), 3, 100).worst() < 5.0);
  CHECK(reliability_of(Confidences(std::make_shared<BlockDecay>(falling(), 2, 0.7), 0.3, 0.0, 9), 3, 100).worst() <
        5.0);
}

TEST_CASE("a head that is too sure of itself fails the same check, and so does one that is not sure enough") {
  for (const double error : {-0.4, 0.4})
    CHECK(reliability_of(Confidences(falling(), 0.3, error, 9), 3, 100).worst() > 8.0);
  // Odds of 0.7 are 7 / 3; times e they are 6.343 and the confidence 0.8638 (by hand).
  const Confidences model(falling(), 0.0, 1.0, 9);
  AcceptanceState state = model.begin(1);
  std::vector<float> confidences;
  model.accepted_with_confidences(state, {1, 1}, 3, confidences);
  CHECK(confidences[1] == Approx(0.8638).epsilon(1e-4));
}

TEST_CASE("confidences change no acceptance") {
  const auto plain = std::make_shared<BetaMixture>(BetaShape{3.0, 2.0}, 0.95, 5);
  const Confidences model(plain, 0.5, 0.3, 9);
  std::vector<float> confidences;
  for (std::uint64_t request = 0; request < 500; ++request) {
    AcceptanceState a = model.begin(request);
    AcceptanceState b = plain->begin(request);
    AcceptanceState c = model.begin(request);
    const std::int32_t expected = plain->accepted(b, {7, 70}, 6, 6);
    CHECK(model.accepted_with_confidences(a, {7, 70}, 6, confidences) == expected);
    CHECK(model.accepted(c, {7, 70}, 6, 6) == expected);
  }
  CHECK(model.survival(6, 6) == plain->survival(6, 6));
  CHECK(!plain->gives_confidences());
  AcceptanceState state = plain->begin(1);
  plain->accepted_with_confidences(state, {1, 1}, 6, confidences);
  CHECK(confidences.empty());
}

TEST_CASE("the share that confidences explain goes from the slot's rate to the outcome itself") {
  std::vector<float> confidences;
  for (const double explained : {0.0, 0.4, 1.0}) {
    const Confidences model(falling(), explained, 0.0, 9);
    double sum = 0.0, squares = 0.0, outcomes = 0.0;
    constexpr int kRequests = 20'000;
    for (std::uint64_t request = 0; request < kRequests; ++request) {
      AcceptanceState state = model.begin(request);
      const std::int32_t n = model.accepted_with_confidences(state, {1, 1}, 3, confidences);
      sum += confidences[0];
      squares += confidences[0] * confidences[0];
      outcomes += n > 0 ? 1.0 : 0.0;
      if (explained == 1.0) CHECK(confidences[0] == (n > 0 ? 1.0f : 0.0f));
      if (explained == 0.0) CHECK(confidences[0] == 0.9f);
    }
    const double mean = sum / kRequests;
    CHECK(mean == Approx(0.9).margin(0.01));
    CHECK(outcomes / kRequests == Approx(0.9).margin(0.01));
    CHECK((squares / kRequests - mean * mean) / (0.9 * 0.1) == Approx(explained).margin(0.03));
  }
}
