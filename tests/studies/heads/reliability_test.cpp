#include "studies/heads/reliability.hpp"

#include "tests/support/test.hpp"

namespace {

TEST_CASE("the calibration error of a few confidences is the one counted by hand") {
  // Bin 2: 0.25 rejected, 0.25 accepted. Bin 7: 0.75 accepted, 0.75 accepted, 0.75 rejected, 0.75 accepted.
  // Bin 9: 1 accepted, 1 accepted, which belongs to the last bin.
  const Reliability reliability = reliability_of(std::vector<JudgedConfidence>{
      {0.25, false}, {0.25, true}, {0.75, true}, {0.75, true}, {0.75, false}, {0.75, true}, {1.0, true}, {1.0, true}});
  CHECK(reliability.count == 8);
  CHECK(reliability.accepted == 6);
  CHECK(reliability.rate == 0.75);
  CHECK(reliability.mean_confidence == 5.5 / 8.0);
  CHECK(reliability.bins[2].count == 2);
  CHECK(reliability.bins[2].rate == 0.5);
  CHECK(reliability.bins[7].count == 4);
  CHECK(reliability.bins[7].accepted == 3);
  CHECK(reliability.bins[9].count == 2);
  CHECK(reliability.bins[9].mean_confidence == 1.0);
  CHECK(reliability.ece == Approx(2.0 / 8.0 * 0.25));  // the two other bins are calibrated
  // binom.test(3, 4) of R: 0.1941204, 0.9936905.
  CHECK(reliability.bins[7].interval.low == Approx(0.1941204).epsilon(1e-6));
  CHECK(reliability.bins[7].interval.high == Approx(0.9936905).epsilon(1e-6));
  for (const std::size_t empty : {0U, 1U, 3U, 4U, 5U, 6U, 8U}) CHECK(reliability.bins[empty].count == 0);
}

TEST_CASE("confidences that are always wrong have the largest calibration error, and none has none") {
  CHECK(reliability_of(std::vector<JudgedConfidence>{{1.0, false}, {0.0, true}}).ece == 1.0);
  const Reliability none = reliability_of({});
  CHECK(none.ece == 0.0);
  CHECK(none.rate == 0.0);
  CHECK(none.bins[0].interval.high == 1.0);
}

}  // namespace
