#include "studies/heads/state_drift.hpp"

#include "tests/support/test.hpp"

namespace {

TEST_CASE("the distance of two states is their angle and the length of their difference") {
  const std::vector<float> a{3.0f, 4.0f};
  const std::vector<float> b{4.0f, 3.0f};
  CHECK(state_distance(a, b).cosine == 24.0 / 25.0);
  CHECK(state_distance(a, b).relative_l2 == Approx(std::sqrt(2.0) / 5.0).epsilon(1e-12));
  const std::vector<float> opposite{-8.0f, -6.0f};
  CHECK(state_distance(opposite, b).cosine == -1.0);
  CHECK(state_distance(opposite, b).relative_l2 == 3.0);
}

TEST_CASE("a state has distance nothing to itself, and to nothing its length") {
  const std::vector<float> state{0.1f, -0.7f, 1e-3f, 5.3f};
  CHECK(state_distance(state, state).cosine == 1.0);
  CHECK(state_distance(state, state).relative_l2 == 0.0);
  const std::vector<float> zero(2, 0.0f);
  CHECK(state_distance(std::vector<float>{3.0f, 4.0f}, zero).cosine == 0.0);
  CHECK(state_distance(std::vector<float>{3.0f, 4.0f}, zero).relative_l2 == 5.0);
  CHECK(state_distance(zero, std::vector<float>{3.0f, 4.0f}).relative_l2 == 1.0);
}

TEST_CASE("drift is summed up by slot, and by what became of the draft") {
  std::vector<DriftSample> samples;
  for (int i = 1; i <= 10; ++i) samples.push_back({2, i <= 4, {i / 10.0, 0.0}, {1.0, i * 1.0}});
  samples.push_back({4, false, {0.25, 2.0}, {0.5, 0.0}});
  const std::vector<SlotDrift> slots = summarise_drift(samples);
  REQUIRE(slots.size() == 2);
  CHECK(slots[0].slot == 2);
  CHECK(slots[0].count == 10);
  CHECK(slots[0].target_cosine.mean == Approx(0.55));
  CHECK(slots[0].target_cosine.p10 == 0.1);
  CHECK(slots[0].target_cosine.p90 == 0.9);
  CHECK(slots[0].own_relative_l2.mean == 5.5);
  CHECK(*slots[0].target_cosine_accepted == Approx(0.25));
  CHECK(*slots[0].target_cosine_rejected == Approx(0.75));
  CHECK(slots[1].slot == 4);
  CHECK(slots[1].target_relative_l2.p10 == 2.0);
  CHECK_FALSE(slots[1].target_cosine_accepted);
  CHECK(summarise_drift({}).empty());
}

}  // namespace
