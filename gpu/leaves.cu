// The host/device leaves of numerics/ and random/, compiled for the GPU. Every leaf that a kernel may call is called
// here once, so that the CUDA build fails as soon as one stops being a leaf. Each thread evaluates all of them on its
// own word.
#include "reference/numerics/dtype.hpp"
#include "reference/numerics/exp_parts.hpp"
#include "reference/numerics/fixed_point.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/numerics/order_key.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/verify/convention.hpp"

namespace draftproof {

struct LeafResults {
  RandomBlock block;
  ExpParts parts;
  std::uint32_t key;
  std::uint64_t mass, residual, row_mass, drawn;
  float probability, log_probability, half, brain;
  double log, exp, uniform, gumbel;
  bool accepted;
};

// words [count]: raw bits, read as floats where a leaf wants one; seeds one Philox key each. out [count].
__global__ void evaluate_leaves(const std::uint32_t* words, std::uint64_t seed, std::uint32_t count, LeafResults* out) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  LeafResults r;
  r.block = philox_block(seed, i, 1, 2, static_cast<std::uint32_t>(Purpose::accept));
  const float x = static_cast<float>(static_cast<std::int32_t>(words[i])) * 0x1p-26f;  // [-32, 32)
  r.parts = exp_parts(x);
  r.key = order_key(x);
  r.mass = mass_of_weight(tile_weight(r.parts, 48));
  r.row_mass = row_scale(r.mass, 50, 48);
  r.residual = residual_mass(positive_part_of_difference(0.75f, static_cast<float>(r.block.word[0]) * 0x1p-32f));
  r.drawn = multiply_high(high_half(r.block), r.mass + 1);
  r.probability = probability_of(r.parts, 48, reciprocal_total(std::uint64_t{1} << 45));
  r.log_probability = log_probability_of(x, 48, log_total(std::uint64_t{1} << 45));
  r.half = f16_to_f32(f32_to_f16(x));
  r.brain = bf16_to_f32(f32_to_bf16(x));
  r.log = natural_log(static_cast<double>(words[i]) + 1.0);
  r.exp = natural_exp(static_cast<double>(x));
  r.uniform = uniform_53(low_half(r.block));
  r.gumbel = gumbel_noise(r.block.word[3]);
  r.accepted = accepts(Convention::draftproof, r.uniform, 0.5, r.block);
  out[i] = r;
}

}  // namespace draftproof
