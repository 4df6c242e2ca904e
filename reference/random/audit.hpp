// Audit mode: a source that remembers every (seed, address) it was asked for and refuses the second use of any. Sharing
// one random word between two decisions is the dominant family of shipped bugs; this finds it at the first request.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "base/error.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {

template <class Source = PhiloxSource>
class AuditedSource {
 public:
  explicit AuditedSource(Source source = {}) : source_(source) {}

  // Error (internal): the address was used before.
  RandomBlock block(std::uint64_t seed, const Address& a) {
    if (!used_.insert({seed, a.index, a.row, a.step, static_cast<std::uint32_t>(a.purpose)}).second)
      throw Error(ErrorKind::internal, "key audit",
                  "seed " + std::to_string(seed) + ", index " + std::to_string(a.index) + ", row " +
                      std::to_string(a.row) + ", step " + std::to_string(a.step) + ", purpose " +
                      std::to_string(static_cast<std::uint32_t>(a.purpose)) +
                      " was drawn before; every address may be used once");
    return source_.block(seed, a);
  }

  std::size_t used() const { return used_.size(); }

 private:
  Source source_;
  std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>> used_;
};

}  // namespace draftproof
