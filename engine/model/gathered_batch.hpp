// The arrays of a ForwardBatch, gathered token by token, stream after stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/language_model.hpp"

namespace draftproof {

struct GatheredBatch {
  std::vector<Token> tokens;
  std::vector<std::int32_t> positions, streams, parents, wanted;
  std::vector<std::int64_t> slots;
  std::vector<StreamContext> contexts;

  // Index in the batch of the next token.
  std::int32_t size() const { return static_cast<std::int32_t>(tokens.size()); }
  void clear() {
    tokens.clear(), positions.clear(), streams.clear(), parents.clear(), wanted.clear(), slots.clear();
    contexts.clear();
  }

  // Adds a token to the stream whose context is pushed to `contexts` behind its last token; returns its index.
  std::int32_t add(Token token, std::int64_t position, std::int32_t parent, std::int64_t slot) {
    tokens.push_back(token);
    positions.push_back(static_cast<std::int32_t>(position));
    streams.push_back(static_cast<std::int32_t>(contexts.size()));
    parents.push_back(parent);
    slots.push_back(slot);
    return size() - 1;
  }
  // Adds tokens to it that follow each other behind the context: positions first, first + 1, ..., position p in slot p.
  void add_chain(std::span<const Token> chain, std::int64_t first) {
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const std::int64_t position = first + static_cast<std::int64_t>(i);
      add(chain[i], position, i == 0 ? kContextParent : size() - 1, position);
    }
  }

  ForwardBatch view(std::span<const std::int32_t> hidden_layers = {}) const {
    return {tokens, positions, streams, parents, slots, contexts, wanted, hidden_layers};
  }
};

}  // namespace draftproof
