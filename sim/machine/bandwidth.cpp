#include "sim/machine/bandwidth.hpp"

#include <array>
#include <atomic>
#include <thread>

#include "base/error.hpp"

namespace draftproof {
namespace {

// Sixteen independent sums: the compiler keeps them in vector registers, so that only memory is waited for.
std::uint64_t sum_of(const std::uint64_t* words, std::size_t count) {
  constexpr std::size_t kSums = 16;
  std::array<std::uint64_t, kSums> sums{};
  const std::size_t whole = count - count % kSums;
  for (std::size_t i = 0; i < whole; i += kSums)
    for (std::size_t j = 0; j < kSums; ++j) sums[j] += words[i + j];
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  for (std::size_t i = whole; i < count; ++i) total += words[i];
  return total;
}

}  // namespace

void BandwidthProbe::read(int threads) {
  std::atomic<std::uint64_t> total{0};
  const auto parts = static_cast<std::size_t>(threads);
  const auto read_part = [&](std::size_t part) {
    const std::size_t begin = words_.size() / parts * part;
    const std::size_t end = part + 1 == parts ? words_.size() : words_.size() / parts * (part + 1);
    total += sum_of(words_.data() + begin, end - begin);
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t part = 1; part < parts; ++part) others.emplace_back(read_part, part);
    read_part(0);
  }
  if (total != words_.size()) throw Error(ErrorKind::internal, "bandwidth", "the sum of the buffer is wrong");
}

}  // namespace draftproof
