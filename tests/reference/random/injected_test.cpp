#include "reference/random/injected.hpp"

#include "reference/random/uniform.hpp"
#include "tests/support/test.hpp"

TEST_CASE("An injected purpose answers with the chosen bits at every address and the others with Philox") {
  InjectedSource source;
  source.inject(Purpose::accept, InjectedSource::kZeros).inject(Purpose::residual, InjectedSource::kOnes);
  for (std::uint32_t row = 0; row < 3; ++row) {
    CHECK(uniform_53(high_half(source.block(1, {0, row, 5, Purpose::accept}))) == 0.0);
    CHECK(uniform_53(high_half(source.block(1, {0, row, 5, Purpose::residual}))) == 1.0 - 0x1p-53);
    const Address other{0, row, 5, Purpose::target_sample};
    CHECK(high_half(source.block(1, other)) == high_half(PhiloxSource().block(1, other)));
    CHECK(low_half(source.block(1, other)) == low_half(PhiloxSource().block(1, other)));
  }
}

TEST_CASE("The injected endpoints are the ends of the uniform numbers that decide") {
  CHECK(uniform_53(high_half(InjectedSource::kZeros)) == 0.0);
  CHECK(uniform_53(high_half(InjectedSource::kSmallest)) == 0x1p-53);
  CHECK(uniform_53(high_half(InjectedSource::kOnes)) == 1.0 - 0x1p-53);
  CHECK(low_half(InjectedSource::kOnes) == ~std::uint64_t{0});
}
