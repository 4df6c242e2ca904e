#include "engine/transformer/rope.hpp"

#include "tests/support/test.hpp"

TEST_CASE("pairs are rotated by position times frequency over divisor") {
  for (const RopePairing pairing : {RopePairing::adjacent, RopePairing::halves}) {
    ModelDescription description;
    description.head_size = 8;
    description.rope_base = 100.0;
    description.rope_divisors = {1.0f, 1.0f, 2.5f, 8.0f};
    description.rope_pairing = pairing;
    RopeTable table(description);
    table.extend(3);
    table.extend(1000);  // grows, and what was there stays
    for (const std::int64_t position : {0, 2, 999}) {
      const std::vector<float> before = {1, 2, 3, 4, 5, 6, 7, 8};
      std::vector<float> head = before;
      table.rotate(head.data(), position);
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t first = pairing == RopePairing::adjacent ? 2 * i : i;
        const std::size_t second = pairing == RopePairing::adjacent ? 2 * i + 1 : i + 4;
        const double angle = static_cast<double>(position) * std::pow(100.0, -static_cast<double>(i) / 4.0) /
                             static_cast<double>(description.rope_divisors[i]);
        const double a = static_cast<double>(before[first]);
        const double b = static_cast<double>(before[second]);
        CHECK(static_cast<double>(head[first]) == Approx(a * std::cos(angle) - b * std::sin(angle)).margin(2e-6));
        CHECK(static_cast<double>(head[second]) == Approx(a * std::sin(angle) + b * std::cos(angle)).margin(2e-6));
      }
      if (position == 0) CHECK(head == before);
    }
  }
}
