// Rotary position embeddings: the pairs of a head's values are rotated by the angles of a position.
//   angle of pair i at position p = p base^(-2 i / head_size) / divisors[i]
// Angles, sines and cosines are taken in double precision, by our own functions, and rounded once to float: the same
// bits on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/weights/model_description.hpp"

namespace draftproof {

class RopeTable {
 public:
  explicit RopeTable(const ModelDescription& description);

  // Makes the table of positions [0, positions); grows by doubling. Not to be called while another thread rotates.
  void extend(std::int64_t positions);

  // Rotates a head in place: (a, b) -> (a cos - b sin, b cos + a sin), each product and sum rounded once.
  void rotate(float* head, std::int64_t position) const;

 private:
  RopePairing pairing_;
  std::size_t half_;
  std::vector<double> frequencies_;
  std::vector<float> cos_sin_;  // [positions][cos, sin][half]
};

}  // namespace draftproof
