#include "cli/model/tensor_sizes.hpp"

#include <iomanip>

#include "base/printable.hpp"

namespace draftproof {

TensorSizes sizes_of(const std::vector<const WeightTensor*>& tensors) {
  TensorSizes sizes;
  for (const WeightTensor* const tensor : tensors) {
    const std::int64_t bytes = std::ssize(tensor->bytes);
    sizes.parameters += tensor->rows * tensor->columns;
    sizes.bytes += bytes;
    ++sizes.kinds[tensor->kind].tensors;
    sizes.kinds[tensor->kind].bytes += bytes;
  }
  return sizes;
}

Json json_of(const TensorSizes& sizes) {
  Json kinds = Json::array();
  for (const auto& [kind, count] : sizes.kinds)
    kinds.push_back({{"kind", std::string(info_of(kind).name)}, {"tensors", count.tensors}, {"bytes", count.bytes}});
  return kinds;
}

void print_kinds(const TensorSizes& sizes, std::ostream& out) {
  for (const auto& [kind, count] : sizes.kinds)
    out << "    " << std::left << std::setw(8) << info_of(kind).name << std::right << std::setw(5) << count.tensors
        << (count.tensors == 1 ? " tensor   " : " tensors  ") << std::setw(8) << millions(count.bytes) << " MB\n";
}

std::string name_of_pairing(RopePairing pairing) {
  return pairing == RopePairing::adjacent ? "adjacent" : "halves";
}

bool is_scaled(const ModelDescription& description) {
  for (const float divisor : description.rope_divisors)
    if (divisor != 1) return true;
  return false;
}

std::string millions(std::int64_t count) {
  return number("%.1f", static_cast<double>(count) / 1e6);
}

}  // namespace draftproof
