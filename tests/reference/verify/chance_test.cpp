#include "reference/verify/chance.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "reference/random/audit.hpp"
#include "reference/sampling/distribution.hpp"
#include "tests/support/statistical.hpp"

using namespace draftproof;

namespace {

// A source that records what it was asked for.
struct Recorder {
  std::vector<Address> asked;
  RandomBlock block(std::uint64_t seed, const Address& a) {
    asked.push_back(a);
    return PhiloxSource().block(seed, a);
  }
};

}  // namespace

TEST_CASE("each decision has its own address") {
  Recorder recorder;
  const std::vector<float> logits(9, 0.5f);
  Distribution distribution;
  distribution.make_logits_distribution().assign(logits, 0);
  AddressedChance<Recorder> inverse(recorder, 5, 7);
  inverse.accept(0.5, 0.6, 2);
  inverse.draw(DistributionMasses(distribution), 3, Purpose::residual);
  inverse.below(10, 4);
  CHECK(recorder.asked ==
        std::vector<Address>{{0, 2, 7, Purpose::accept}, {0, 3, 7, Purpose::residual}, {0, 4, 7, Purpose::choice}});
  recorder.asked.clear();
  AddressedChance<Recorder> race(recorder, 5, 8, Sampler::race);
  race.draw(DistributionMasses(distribution), 1, Purpose::target_sample);
  CHECK(recorder.asked == std::vector<Address>{{0, 1, 8, Purpose::target_sample},
                                               {1, 1, 8, Purpose::target_sample},
                                               {2, 1, 8, Purpose::target_sample}});
}

TEST_CASE("a choice below n is uniform") {
  PhiloxSource source;
  std::vector<std::int64_t> counts(7);
  for (std::uint32_t step = 0; step < 70000; ++step) {
    AddressedChance<> chance(source, 11, step);
    const std::uint64_t choice = chance.below(7, 0);
    REQUIRE(choice < 7);
    ++counts[choice];
  }
  CHECK(follows(counts, std::vector<double>(7, 1.0 / 7.0)));
}
