// Leaves that kernels have of their own, against those of reference/numerics.
#include "gpu/kernels/mass_tile.cuh"
#include "tests/support/test.hpp"

namespace draftproof::simt_executor {
namespace {

TEST_CASE("the kernels widen every binary16 as the reference does") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float ours = to_float(Float16{static_cast<std::uint16_t>(bits)});
    const float reference = f16_to_f32(static_cast<std::uint16_t>(bits));
    if (bit_cast<std::uint32_t>(ours) != bit_cast<std::uint32_t>(reference)) {
      FAIL("0x" << std::hex << bits << " gives " << ours << ", not " << reference);
    }
  }
}

// One in every element of a word, as bits.
std::uint32_t word_of_halves(std::uint32_t half) {
  return half << 16 | half;
}

// The mass that MassSum gives every logit x of 16 bits, under the tile exponent of each of some largest logits.
template <class Element>
void check_masses_of_all(float (*widen)(std::uint16_t)) {
  for (const float largest : {0.0f, 3.0f, 17.5f, -3.6875f, 88.0f, -500.0f, 7968.0f, -7968.0f}) {
    const std::int32_t exponent = exp_parts(largest).n;
    const float lowest = MassSum(exponent).lowest();
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const float x = widen(static_cast<std::uint16_t>(bits));
      if (!(x <= largest)) continue;
      const std::uint64_t expected = mass_of_weight(tile_weight(exp_parts(x), exponent));
      MassSum both(exponent);
      const float raised = x > lowest ? x : lowest;
      both.add({raised, largest});
      const std::uint64_t of_largest = mass_of_weight(tile_weight(exp_parts(largest), exponent));
      if (both.sum() != expected + of_largest)
        FAIL("logit " << x << " under " << largest << ": " << both.sum() - of_largest << ", not " << expected);
    }
  }
}

TEST_CASE("the kernels' mass of every bf16 and every f16 is the reference's") {
  check_masses_of_all<BFloat16>([](std::uint16_t bits) { return bf16_to_f32(bits); });
  check_masses_of_all<Float16>([](std::uint16_t bits) { return f16_to_f32(bits); });
}

TEST_CASE("the kernels divide by a temperature as division rounds") {
  std::uint64_t state = 1;
  const auto random = [&] { return state = state * 6364136223846793005u + 1442695040888963407u; };
  std::int64_t wrong = 0;
  for (int i = 0; i < 3'000'000; ++i) {
    // Temperatures over the range that the kernels divide so, those with all bits set in their significand among them.
    const auto exponent = static_cast<std::uint32_t>(127 - 20 + random() % 40);
    const std::uint32_t significand = i % 16 == 0 ? 0x7fffffu : static_cast<std::uint32_t>(random() >> 41);
    const float temperature = bit_cast<float>(exponent << 23 | significand);
    // Logits of 8, of 11 and of 24 bits.
    const auto bits = static_cast<std::uint32_t>(random() >> 32);
    const std::uint32_t kept = i % 3 == 0 ? 0x807f0000u : i % 3 == 1 ? 0x807fe000u : 0x807fffffu;
    const float x = bit_cast<float>((bits & kept) | static_cast<std::uint32_t>(127 - 14 + random() % 30) << 23);
    const Pair q = quotients({x, -x}, temperature, 1.0f / temperature);
    if (q.first != x / temperature || q.second != -x / temperature) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("words of two elements compare as their elements do, NaN before all") {
  const std::uint16_t nan = 0x7fc0;
  for (const int a_bits : {0x0000, 0x8000, 0x3f80, 0xbf80, 0x4120, 0xc120, 0xff80, 0x7f80, 0x0001}) {
    const auto a = static_cast<std::uint16_t>(a_bits);
    for (const int b_bits : {0x3f80, 0xc120, 0xff80, 0x0000}) {
      const auto b = static_cast<std::uint16_t>(b_bits);
      const float larger = std::fmax(bf16_to_f32(a), bf16_to_f32(b));
      const float smaller = std::fmin(bf16_to_f32(a), bf16_to_f32(b));
      const std::uint32_t crossed_a = static_cast<std::uint32_t>(a) << 16 | b;
      const std::uint32_t crossed_b = static_cast<std::uint32_t>(b) << 16 | a;
      for (const int element : {0, 1}) {
        CHECK(element_of_word<BFloat16>(max_of_words<BFloat16>(crossed_a, crossed_b), element) == larger);
        CHECK(element_of_word<BFloat16>(min_of_words<BFloat16>(crossed_a, crossed_b), element) == smaller);
      }
    }
    CHECK(std::isnan(element_of_word<BFloat16>(max_of_words<BFloat16>(word_of_halves(nan), word_of_halves(a)), 0)));
    CHECK(std::isnan(element_of_word<BFloat16>(min_of_words<BFloat16>(word_of_halves(a), word_of_halves(nan)), 1)));
  }
  // A floor in 16 bits lies near what was asked for, at most rounded by a part in 256.
  for (const float x : {-8069.3f, -69.3f, -1.0f, 0.0f, 33.3f, 7930.0f}) {
    CHECK(std::fabs(element_of_word<BFloat16>(word_of<BFloat16>(x), 1) - x) <= std::fabs(x) / 256);
    CHECK(std::fabs(element_of_word<Float16>(word_of<Float16>(x), 1) - x) <= std::fabs(x) / 1024);
  }
}

TEST_CASE("the kernels' fast route gives the mass of exp_parts and tile_weight over the range of a tile") {
  for (const float largest : {0.0f, 1.0f, -3.7f, 88.0f, -500.25f, 64999.0f, -64999.0f}) {
    const std::int32_t exponent = exp_parts(largest).n;
    const float lowest = MassSum(exponent).lowest();
    for (int i = 0; i <= 4000; ++i) {
      const float x = largest - static_cast<float>(i) * 0x1.1p-6f;
      const std::uint64_t expected = mass_of_weight(tile_weight(exp_parts(x), exponent));
      MassSum sum(exponent);
      sum.add(x > lowest ? x : lowest);
      if (sum.sum() != expected)
        FAIL("logit " << x << " under " << largest << ": " << sum.sum() << ", not " << expected);
    }
  }
}

}  // namespace
}  // namespace draftproof::simt_executor
