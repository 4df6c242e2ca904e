// CUDA's warp-collective operations on the host. Each takes the place of its call as a hidden last argument, so that a
// warp whose lanes part is reported with where they stand.
#pragma once

#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "gpu/simt/this_block.hpp"

namespace draftproof::simt {

inline constexpr std::uint32_t kAllLanes = 0xffffffff;

// The lane from which `lane` reads: its own where the wanted one lies outside of its segment of `width` lanes.
inline std::uint32_t shuffle_source(Collective kind, std::uint32_t lane, std::uint32_t operand, std::uint32_t width) {
  const std::uint32_t begin = lane & ~(width - 1);
  const std::uint32_t end = begin + width;
  switch (kind) {
    case Collective::shuffle:
      return begin + (operand & (width - 1));
    case Collective::shuffle_xor:
      return (lane ^ operand) < end ? lane ^ operand : lane;
    case Collective::shuffle_down:
      return operand < end - lane ? lane + operand : lane;
    case Collective::shuffle_up:
      return operand <= lane - begin ? lane - operand : lane;
    default:
      return lane;
  }
}

template <class T>
T shuffle(Collective kind, std::uint32_t mask, T value, std::uint32_t operand, int width,
          const std::source_location& place) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "a shuffle moves 32 or 64 bits; convert smaller types first");
  ThisBlock& block = this_block();
  const auto lanes = static_cast<std::uint32_t>(width);
  if (lanes == 0 || lanes > 32 || (lanes & (lanes - 1)) != 0)
    block.fault("the width of a shuffle is 1, 2, 4, 8, 16 or 32");
  if (kind == Collective::shuffle_xor && operand > 31) block.fault("a shuffle by xor of more than 31 leaves the warp");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = block.collective(kind, mask, bits, shuffle_source(kind, block.lane(), operand, lanes), place);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

inline std::uint64_t vote(Collective kind, std::uint32_t mask, bool predicate, const std::source_location& place) {
  ThisBlock& block = this_block();
  return block.collective(kind, mask, predicate, block.lane(), place);
}

}  // namespace draftproof::simt

// NOLINTBEGIN: CUDA's own names
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              const std::source_location& place = std::source_location::current()) {
  using namespace draftproof::simt;
  return shuffle(Collective::shuffle, mask, value, static_cast<unsigned>(source), width, place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  const std::source_location& place = std::source_location::current()) {
  using namespace draftproof::simt;
  return shuffle(Collective::shuffle_xor, mask, value, static_cast<unsigned>(lanes), width, place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                   const std::source_location& place = std::source_location::current()) {
  using namespace draftproof::simt;
  return shuffle(Collective::shuffle_down, mask, value, lanes, width, place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                 const std::source_location& place = std::source_location::current()) {
  using namespace draftproof::simt;
  return shuffle(Collective::shuffle_up, mask, value, lanes, width, place);
}
inline unsigned __ballot_sync(unsigned mask, bool predicate,
                              const std::source_location& place = std::source_location::current()) {
  using namespace draftproof::simt;
  return static_cast<unsigned>(vote(Collective::ballot, mask, predicate, place));
}
inline int __any_sync(unsigned mask, bool predicate,
                      const std::source_location& place = std::source_location::current()) {
  using namespace draftproof::simt;
  return static_cast<int>(vote(Collective::any, mask, predicate, place));
}
inline int __all_sync(unsigned mask, bool predicate,
                      const std::source_location& place = std::source_location::current()) {
  using namespace draftproof::simt;
  return static_cast<int>(vote(Collective::all, mask, predicate, place));
}
inline void __syncwarp(unsigned mask = draftproof::simt::kAllLanes,
                       const std::source_location& place = std::source_location::current()) {
  using namespace draftproof::simt;
  vote(Collective::sync, mask, false, place);
}
// NOLINTEND
