// Naive sampling (NSS, Miao et al. 2305.09781): draw Y from p and descend where a sibling holds it. Guarantee:
// distribution-exact for siblings of any distribution whatever. One Y for all siblings: a draw for each of them would
// be biased.
#pragma once

#include <cstdint>
#include <span>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

// See sibling_outcome.hpp. The proposal and the nodes' coins are not used; the draw has the address (target_sample,
// row), as plain decoding has.
template <class Number, class Chance>
SiblingOutcome accept_sibling_naive_sampling(const DenseMasses<Number>& p, const DenseMasses<Number>&,
                                             std::span<const Token> siblings, std::span<const std::int32_t>,
                                             std::uint32_t row, Chance& chance) {
  return descend_if_drafted(chance.draw(p, row, Purpose::target_sample), siblings);
}

}  // namespace draftproof
