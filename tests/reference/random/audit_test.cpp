#include "reference/random/audit.hpp"

#include "reference/random/injected.hpp"
#include "tests/support/test.hpp"

TEST_CASE("The audit passes on what the source says and counts the addresses") {
  AuditedSource audited;
  for (std::uint32_t index = 0; index < 10; ++index) {
    const Address address{index, 1, 2, Purpose::draft_sample};
    CHECK(high_half(audited.block(3, address)) == high_half(PhiloxSource().block(3, address)));
  }
  CHECK(audited.used() == 10);
}

TEST_CASE("The audit refuses the second use of an address and names it") {
  AuditedSource audited;
  const Address address{4, 1, 2, Purpose::residual};
  audited.block(3, address);
  const std::string message = error_of(ErrorKind::internal, [&] { audited.block(3, address); });
  for (const char* part : {"seed 3", "index 4", "row 1", "step 2", "purpose 3"})
    CHECK(message.find(part) != std::string::npos);
  CHECK(audited.used() == 1);
}

TEST_CASE("The audit tells apart addresses that differ in one part") {
  AuditedSource audited;
  CHECK_NOTHROW(audited.block(3, {4, 1, 2, Purpose::residual}));
  CHECK_NOTHROW(audited.block(4, {4, 1, 2, Purpose::residual}));
  CHECK_NOTHROW(audited.block(3, {5, 1, 2, Purpose::residual}));
  CHECK_NOTHROW(audited.block(3, {4, 0, 2, Purpose::residual}));
  CHECK_NOTHROW(audited.block(3, {4, 1, 3, Purpose::residual}));
  CHECK_NOTHROW(audited.block(3, {4, 1, 2, Purpose::accept}));
  CHECK(audited.used() == 6);
}

TEST_CASE("The audit works over any source") {
  AuditedSource audited(InjectedSource().inject(Purpose::accept, InjectedSource::kOnes));
  CHECK(high_half(audited.block(0, {0, 0, 0, Purpose::accept})) == ~std::uint64_t{0});
  CHECK_THROWS_AS(audited.block(0, {0, 0, 0, Purpose::accept}), Error);
}
