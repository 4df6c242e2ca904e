// How many parameters tensors have, in how many bytes, by kind; and words for what a model and a head have in common.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "engine/weights/model_weights.hpp"

namespace draftproof {

struct KindCount {
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
};

struct TensorSizes {
  std::map<TensorKind, KindCount> kinds;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;
};

TensorSizes sizes_of(const std::vector<const WeightTensor*>& tensors);
Json json_of(const TensorSizes& sizes);  // list of `kind`, `tensors`, `bytes`
void print_kinds(const TensorSizes& sizes, std::ostream& out);

std::string name_of_pairing(RopePairing pairing);
bool is_scaled(const ModelDescription& description);
std::string millions(std::int64_t count);

}  // namespace draftproof
