#include "reference/logits/p_less.hpp"

namespace draftproof {

// S is below 2^63, so that products of two masses fit; those with V as well are kept apart:
//   m S (V - 1) >= V Q - S^2   iff   V (Q - m S) <= S^2 - m S   iff   Q - m S <= floor((S^2 - m S) / V), or Q <= m S.
void keep_p_less(bool norm, std::int64_t vocab_size, Ranked& tokens) {
  const auto total = static_cast<Unsigned128>(total_mass(tokens));
  Unsigned128 squares = 0;
  for (const RankedToken& t : tokens) squares += static_cast<Unsigned128>(t.mass) * t.mass;
  keep_if(tokens, 1, [&](const RankedToken& t) {
    const Unsigned128 product = t.mass * total;
    if (product >= squares) return true;
    return norm && squares - product <= (total * total - product) / static_cast<Unsigned128>(vocab_size);
  });
}

}  // namespace draftproof
