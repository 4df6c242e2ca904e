// Endpoint injection: a source that answers with chosen bits for chosen purposes and with Philox elsewhere. Range bugs
// (u = 0, u = 1, all-ones words) show at the first draw instead of once in 2^32.
#pragma once

#include <map>

#include "reference/random/philox.hpp"

namespace draftproof {

class InjectedSource {
 public:
  static constexpr RandomBlock kZeros{{0, 0, 0, 0}};
  static constexpr RandomBlock kOnes{{~0u, ~0u, ~0u, ~0u}};
  // The smallest u above 0 of 53 bits. Its first word is 0: for the conventions of 24 bits it is like kZeros.
  static constexpr RandomBlock kSmallest{{0, 1u << 11, 0, 1u << 11}};

  InjectedSource& inject(Purpose purpose, const RandomBlock& block) {
    injected_[purpose] = block;
    return *this;
  }

  RandomBlock block(std::uint64_t seed, const Address& address) const {
    const auto found = injected_.find(address.purpose);
    return found != injected_.end() ? found->second : PhiloxSource().block(seed, address);
  }

 private:
  std::map<Purpose, RandomBlock> injected_;
};

}  // namespace draftproof
