#include "reference/verify/convention.hpp"

#include "reference/random/injected.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr RandomBlock kZeros = InjectedSource::kZeros;
constexpr RandomBlock kOnes = InjectedSource::kOnes;
constexpr RandomBlock kSmallest = InjectedSource::kSmallest;

// How often a convention accepts over 2^14 equally spaced values of its uniform.
int accepted_of_grid(Convention convention, double p, double q) {
  int accepted = 0;
  for (std::uint32_t i = 0; i < 1u << 14; ++i)
    accepted += accepts(convention, p, q, {{(i << 18) | (1u << 17), 0, 0, 0}}) ? 1 : 0;
  return accepted;
}

}  // namespace

TEST_CASE("every convention accepts with probability p over q") {
  const std::array<std::array<double, 2>, 6> cases{
      {{0.1, 0.4}, {0.25, 0.5}, {0.3, 0.9}, {1e-3, 1.0}, {0.7, 0.700001}, {0x1p-30, 0x1p-29}}};
  for (const ConventionInfo& info : kConventions) {
    for (const auto& [p, q] : cases) {
      CAPTURE(std::string(info.name), p, q);
      CHECK(std::abs(accepted_of_grid(info.convention, p, q) - p / q * (1 << 14)) <= 1.0);
      CHECK(accepted_of_grid(info.convention, q, p) == 1 << 14);
    }
  }
}

TEST_CASE("our convention never accepts probability zero and always accepts p at least q") {
  TestRandom random(301);
  for (int i = 0; i < 20000; ++i) {
    const RandomBlock block = i % 4 == 0   ? kZeros
                              : i % 4 == 1 ? kOnes
                              : i % 4 == 2 ? kSmallest
                                           : RandomBlock{{random.word(), random.word(), 0, 0}};
    const double q = std::ldexp(random.uniform() + 0x1p-40, -static_cast<int>(random.below(160)));
    CAPTURE(q, block.word[0], block.word[1]);
    REQUIRE_FALSE(accepts(Convention::draftproof, 0.0, q, block));
    REQUIRE_FALSE(accepts(Convention::draftproof, 0.0, 0.0, block));
    REQUIRE_FALSE(accepts(Convention::draftproof, q, 0.0, block));  // no draft comes from q = 0
    REQUIRE(accepts(Convention::draftproof, q, q, block));
    REQUIRE(accepts(Convention::draftproof, std::nextafter(q, 1.0), q, block));
  }
  // Subnormal floats: u q would round to q in f32 and reject p = q.
  CHECK(accepts(Convention::draftproof, 0x1p-149, 0x1p-149, kOnes));
  CHECK(accepts(Convention::draftproof, 0x1p-149, 1.0, kZeros));
  CHECK_FALSE(accepts(Convention::draftproof, 0x1p-149, 1.0, kOnes));
}

TEST_CASE("the degenerate case of every convention is as documented") {
  struct Row {
    Convention convention;
    bool zero_p_at_zero_u;  // accepts p = 0 at its smallest u
    bool equal_at_one_u;    // accepts p = q at its largest u
  };
  const std::array<Row, 8> rows{{
      {Convention::draftproof, false, true},
      {Convention::vllm_v1, true, true},
      {Convention::vllm_v2, false, true},
      {Convention::flashinfer, false, false},
      {Convention::sglang, false, true},
      {Convention::tensorrt_llm, false, false},
      {Convention::huggingface, true, true},
      {Convention::textbook, false, true},
  }};
  for (const Row& row : rows) {
    CAPTURE(static_cast<int>(row.convention));
    CHECK(accepts(row.convention, 0.0, 0.5, kZeros) == row.zero_p_at_zero_u);
    CHECK(accepts(row.convention, 0.5, 0.5, kOnes) == row.equal_at_one_u);
    CHECK_FALSE(accepts(row.convention, 0.0, 0.5, kOnes));
    CHECK(accepts(row.convention, 0.5, 0.5, kZeros));
    // A draft that was not proposed stands by the text's alpha = 1 alone, and so an impossible one.
    CHECK(accepts(row.convention, 0.0, 0.0, kOnes) == (row.convention == Convention::textbook));
  }
}

TEST_CASE("the log-domain test rejects equal probabilities now and then") {
  // 1 to 7 in 2^24 uniforms for log q = -1 to -13, by absorption in the addition: the largest u alone show it.
  int rejected = 0;
  for (const double q : {0.3, 0.01, 1e-4, 1e-5})
    for (std::uint32_t i = 0; i < 64; ++i)
      rejected += accepts(Convention::vllm_v2, q, q, {{~(i << 9), 0, 0, 0}}) ? 0 : 1;
  CHECK(rejected >= 4);
  CHECK(rejected <= 32);
}

TEST_CASE("the uniforms of the engines have the ranges that their conventions say") {
  CHECK(uniform_24(0) == 0.0f);
  CHECK(uniform_24(~0u) == 1.0f - 0x1p-24f);
  CHECK(uniform_open_closed(0) == 0x1p-33f);
  CHECK(uniform_open_closed(~0u) == 1.0f);
  CHECK(uniform_open_closed(0x80000000u) == 0.5f);
}

TEST_CASE("the table lists every convention once in the order of the enum") {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kConventions.size(); ++i) {
    CHECK(static_cast<std::size_t>(kConventions[i].convention) == i);
    names.insert(std::string(kConventions[i].name));
  }
  CHECK(names.size() == kConventions.size());
}
