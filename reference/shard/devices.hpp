// The devices that hold a row's tokens, and all that they say to one another: sums and maxima of integers. Neither has
// an order, so every device knows the same numbers afterwards, whatever carried them and however many there are.
//
// Bytes are those of the vector that is summed or maximised, once a call: what a device knows more after it. (A ring
// all-reduce sends at most twice as many from each device.)
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

struct TokenRange {
  Token begin;
  Token end;  // without it; the same as begin: no tokens

  std::int64_t size() const { return std::int64_t{end} - begin; }
};

// T ranges of as equal sizes as can be: [V d / T, V (d + 1) / T).
std::vector<TokenRange> even_split(std::int64_t vocab_size, std::size_t devices);

// Carries vectors between processes (MPI, NCCL, gloo). Both calls block, in the same order everywhere.
class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual void sum(std::span<std::uint64_t> words) = 0;  // element by element, modulo 2^64
  virtual void largest(std::span<std::int32_t> numbers) = 0;
};

struct Traffic {
  std::int64_t bytes = 0;
  std::int64_t rounds = 0;
};

class Devices {
 public:
  // All of them in this process. The ranges hold [0, V) in order. Error (input): they do not, V is 0 or above 2^19.
  explicit Devices(std::vector<TokenRange> ranges) : Devices(std::move(ranges), nullptr, 0) {}
  // This process has the device `here` alone.
  Devices(std::vector<TokenRange> ranges, Collectives& between, std::size_t here)
      : Devices(std::move(ranges), &between, here) {}

  std::size_t count() const { return ranges_.size(); }
  std::size_t begin_here() const { return between_ == nullptr ? 0 : here_; }
  std::size_t end_here() const { return between_ == nullptr ? count() : here_ + 1; }
  const TokenRange& range(std::size_t device) const { return ranges_[device]; }
  std::int64_t vocab_size() const { return ranges_.back().end; }
  std::size_t tile_count() const;
  std::size_t owner(Token token) const;
  // The devices that hold tokens of a tile, in order: [first, last], empty ones between them included.
  std::size_t first_of_tile(std::size_t tile) const;
  std::size_t last_of_tile(std::size_t tile) const;
  bool cuts_tiles() const { return cuts_tiles_; }

  // add(device, words [size]) adds what a device has; every device here is asked. Returns the sums over all.
  template <class Add>
  std::vector<std::uint64_t> sum(std::size_t size, const Add& add) const {
    std::vector<std::uint64_t> words(size, 0);
    for (std::size_t d = begin_here(); d < end_here(); ++d) add(d, std::span<std::uint64_t>(words));
    if (between_ != nullptr) between_->sum(words);
    note(size * sizeof(std::uint64_t));
    return words;
  }
  // raise(device, numbers [size]) raises numbers to what a device has, from the least there is.
  template <class Raise>
  std::vector<std::int32_t> largest(std::size_t size, const Raise& raise) const {
    std::vector<std::int32_t> numbers(size, std::numeric_limits<std::int32_t>::min());
    for (std::size_t d = begin_here(); d < end_here(); ++d) raise(d, std::span<std::int32_t>(numbers));
    if (between_ != nullptr) between_->largest(numbers);
    note(size * sizeof(std::int32_t));
    return numbers;
  }
  // A word that each device has, in order.
  template <class Word>
  std::vector<std::uint64_t> gather(const Word& word) const {
    return sum(count(), [&](std::size_t d, std::span<std::uint64_t> words) { words[d] = word(d); });
  }
  // A word that one device has. The others are not asked.
  template <class Word>
  std::uint64_t from(std::size_t device, const Word& word) const {
    return sum(1, [&](std::size_t d, std::span<std::uint64_t> words) {
      if (d == device) words[0] = word();
    })[0];
  }
  template <class Number>
  float float_from(std::size_t device, const Number& number) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(
        from(device, [&] { return std::uint64_t{std::bit_cast<std::uint32_t>(float{number()})}; })));
  }
  template <class Number>
  Token token_from(std::size_t device, const Number& token) const {
    return static_cast<Token>(from(device, [&] { return static_cast<std::uint64_t>(Token{token()}); }));
  }

  const Traffic& traffic() const { return traffic_; }
  void clear_traffic() { traffic_ = {}; }

 private:
  Devices(std::vector<TokenRange> ranges, Collectives* between, std::size_t here);
  void note(std::size_t bytes) const {
    traffic_.bytes += static_cast<std::int64_t>(bytes);
    ++traffic_.rounds;
  }

  std::vector<TokenRange> ranges_;
  Collectives* between_;
  std::size_t here_;
  bool cuts_tiles_ = false;
  mutable Traffic traffic_;
};

}  // namespace draftproof
