// CUDA's atomics on the host: on 32- and 64-bit integers only. A floating-point sum depends on the order of its
// additions, and atomics come in any order, so its bits would change from run to run; ours never may.
#pragma once

#include <algorithm>
#include <type_traits>

#include "gpu/simt/checked_pointer.hpp"

namespace draftproof::simt {

template <class T, class Change>
T atomic_update(const CheckedPointer<T>& p, Change change) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "atomics are for 32- and 64-bit integers: a floating-point sum would depend on the order of threads");
  return p.update(change);
}

}  // namespace draftproof::simt

// NOLINTBEGIN: CUDA's own names
template <class T>
T atomicAdd(const draftproof::simt::CheckedPointer<T>& p, std::type_identity_t<T> v) {
  using U = std::make_unsigned_t<T>;  // wraps around, as on a GPU
  return draftproof::simt::atomic_update(
      p, [v](T before) { return static_cast<T>(static_cast<U>(before) + static_cast<U>(v)); });
}
template <class T>
T atomicMax(const draftproof::simt::CheckedPointer<T>& p, std::type_identity_t<T> v) {
  return draftproof::simt::atomic_update(p, [v](T before) { return std::max(before, v); });
}
template <class T>
T atomicMin(const draftproof::simt::CheckedPointer<T>& p, std::type_identity_t<T> v) {
  return draftproof::simt::atomic_update(p, [v](T before) { return std::min(before, v); });
}
template <class T>
T atomicOr(const draftproof::simt::CheckedPointer<T>& p, std::type_identity_t<T> v) {
  return draftproof::simt::atomic_update(p, [v](T before) { return static_cast<T>(before | v); });
}
template <class T>
T atomicExch(const draftproof::simt::CheckedPointer<T>& p, std::type_identity_t<T> v) {
  return draftproof::simt::atomic_update(p, [v](T) { return v; });
}
template <class T>
T atomicCAS(const draftproof::simt::CheckedPointer<T>& p, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
  return draftproof::simt::atomic_update(p, [expected, v](T before) { return before == expected ? v : before; });
}
// NOLINTEND
