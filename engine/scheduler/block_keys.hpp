// The keys by which streams share full KV blocks: numbers, given out one for every different content (a block's tokens
// and all tokens before it) that was seen. Contents are compared, not hashes, so that no two prefixes are taken for
// one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/model/language_model.hpp"

namespace draftproof {

class BlockKeys {
 public:
  // The keys of all full blocks of a stream. Time O(tokens), 120 bytes or so for every content that was not seen.
  std::vector<std::uint64_t> keys_of(std::span<const Token> tokens);
  // The key of the next block, after one of key `before` (0 for the first). Precondition: kKvBlockSlots tokens.
  std::uint64_t key_after(std::uint64_t before, std::span<const Token> tokens);

 private:
  struct Content {
    std::uint64_t before;
    std::array<Token, static_cast<std::size_t>(kKvBlockSlots)> tokens;
    friend bool operator==(const Content&, const Content&) = default;
  };
  struct Hash {
    std::size_t operator()(const Content& content) const;
  };

  std::unordered_map<Content, std::uint64_t, Hash> keys_;
};

}  // namespace draftproof
