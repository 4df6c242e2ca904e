// The machinery of the coupling bugs; that every bug is caught is tested over all of them.
#include "exactness/bugs/coupling/key_faults.hpp"
#include "exactness/bugs/coupling/request_batch.hpp"
#include "exactness/bugs/coupling/warp_schedules.hpp"
#include "exactness/bugs/fixed_block.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "reference/random/injected.hpp"
#include "tests/support/test.hpp"

TEST_CASE("A mapped source asks for the block of the faulty key") {
  const Address residual{0, 3, 2, Purpose::residual};
  PhiloxSource philox;
  MappedSource<PhiloxSource> mapped(philox, residual_at_the_coin);
  MappedSource<PhiloxSource> sound(philox, sound_keys);
  const auto word = [](const RandomBlock& block) { return high_half(block); };
  CHECK(word(mapped.block(7, residual)) == word(philox.block(7, {0, 3, 2, Purpose::accept})));
  CHECK(word(sound.block(7, residual)) == word(philox.block(7, residual)));
}

TEST_CASE("The hunt for a reused key lets every other error pass") {
  CHECK_FALSE(find_reused_key([](AuditedSource<>& source) { source.block(1, {}); }).caught);
  const Finding finding = find_reused_key([](AuditedSource<>& source) {
    source.block(1, {});
    source.block(1, {});
  });
  CHECK(finding.caught);
  CHECK(finding.cases == 2);
  CHECK_THROWS_AS(find_reused_key([](AuditedSource<>&) { throw input_error("row 0", "it is empty"); }), Error);
}

TEST_CASE("Schedules are all interleavings and barriers cut them") {
  using Order = std::vector<std::size_t>;
  const WarpInstruction<Order> note = [](Order& order, std::size_t warp) { order.push_back(warp); };
  const auto schedules = [](const std::vector<WarpInstruction<Order>>& program, std::size_t num_warps) {
    std::vector<Order> found;
    const auto keep = [&](const Order& order) { found.push_back(order); };
    WarpSchedules<Order, decltype(keep)>(program, num_warps, keep).run({});
    std::sort(found.begin(), found.end());
    CHECK(std::adjacent_find(found.begin(), found.end()) == found.end());
    return found.size();
  };
  CHECK(schedules({note, note}, 2) == 6);
  CHECK(schedules({note, nullptr, note}, 2) == 4);
  CHECK(schedules({note, nullptr, note}, 3) == 36);
}

TEST_CASE("A cumulative table never draws what has no mass") {
  const CumulativeTable table({0.0, 0.25, 0.5, 0.0});
  CHECK(table.draw(InjectedSource::kZeros) == 1);
  CHECK(table.draw(InjectedSource::kOnes) == 2);
  CHECK(table.draw_without(1, InjectedSource::kZeros) == 2);
  CHECK(table.draw_without(1, InjectedSource::kOnes) == 2);
  CHECK(table.draw_without(2, InjectedSource::kOnes) == 1);
}

TEST_CASE("Residual sums by the order of ratios are the sums over the vocabulary") {
  std::vector<double> p(64), q(64);
  for (std::size_t x = 0; x < p.size(); ++x) {
    p[x] = 1.0 / static_cast<double>(x + 1);
    q[x] = p[x] * (x % 3 == 0 ? 1.5 : 0.8);
  }
  const FixedRows rows(p, q);
  const ResidualSums sums(rows);
  for (const double weight : {0.0, 0.5, 0.8, 1.0}) {
    double expected = 0.0;
    for (Token x = 0; x < 64; ++x) expected += std::max(weight * rows.target.mass(x) - rows.proposal.mass(x), 0.0);
    CHECK(sums.at(weight) == Approx(expected).margin(1e-12));
  }
}

TEST_CASE("Requests of a batch are ragged and keep their seeds") {
  const RequestBatch batch(std::vector<std::uint64_t>{5, 6, 7, 8, 9});
  std::vector<std::size_t> draft_lens;
  for (std::size_t i = 0; i < batch.requests().size(); ++i) {
    const VerifyRequest& request = batch.requests()[i];
    draft_lens.push_back(request.draft.tokens.size());
    CHECK(request.seed == 5 + i);
    CHECK_NOTHROW(validate(request, Verifier::chain, static_cast<std::int64_t>(i)));
  }
  CHECK(draft_lens == std::vector<std::size_t>{0, 1, 2, 3, 0});
}

TEST_CASE("The first request that differs is named") {
  const std::vector<TokenString> reference{{1}, {2, 3}, {4}};
  std::vector<TokenString> seen = reference;
  CHECK_FALSE(first_difference_of_requests(reference, seen, "alone").caught);
  seen[1] = {2, 0};
  const Finding finding = first_difference_of_requests(reference, seen, "alone");
  CHECK(finding.caught);
  CHECK(finding.cases == 2);
  CHECK(finding.evidence == "request 1 emits [2 0] alone, not [2 3]");
}
