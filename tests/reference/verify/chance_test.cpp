#include "reference/verify/chance.hpp"

#include "reference/sampling/distribution.hpp"
#include "tests/support/test.hpp"

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
  CHECK(inverse.below(10, 4) == multiply_high(high_half(PhiloxSource().block(5, {0, 4, 7, Purpose::choice})), 10));
  CHECK(recorder.asked ==
        std::vector<Address>{{0, 2, 7, Purpose::accept}, {0, 3, 7, Purpose::residual}, {0, 4, 7, Purpose::choice}});
  recorder.asked.clear();
  AddressedChance<Recorder> race(recorder, 5, 8, Sampler::race);
  race.draw(DistributionMasses(distribution), 1, Purpose::target_sample);
  CHECK(recorder.asked == std::vector<Address>{{0, 1, 8, Purpose::target_sample},
                                               {1, 1, 8, Purpose::target_sample},
                                               {2, 1, 8, Purpose::target_sample}});
}
