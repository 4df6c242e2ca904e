#include "reference/logits/top_h.hpp"

#include "reference/numerics/natural_log.hpp"

namespace draftproof {

void keep_top_h(float alpha, Ranked& tokens) {
  const auto first = static_cast<double>(tokens.front().mass);
  const auto entropy = [&](std::uint64_t mass, Unsigned128 steps) {
    const auto total = static_cast<double>(mass);
    return natural_log(total / first) + static_cast<double>(steps) / total * 0x1p-32;
  };
  const double most = static_cast<double>(alpha) * entropy(total_mass(tokens), weighted_steps(tokens));
  std::uint64_t mass = 0;
  Unsigned128 steps = 0;
  std::size_t count = 0;
  for (const RankedToken& t : tokens) {
    mass += t.mass;
    steps += static_cast<Unsigned128>(t.mass) * steps_below(tokens, t);
    if (count > 0 && entropy(mass, steps) > most) break;
    ++count;
  }
  tokens.resize(count);
}

}  // namespace draftproof
