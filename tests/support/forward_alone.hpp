// A text computed in one pass, in a cache of its own: what every other way of computing it is compared with.
#pragma once

#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "engine/model/language_model.hpp"

namespace draftproof::testing {

struct TextAlone {
  ForwardOutput out;
  std::unique_ptr<KvCache> kv;  // position p in slot p
};

// Logits after the tokens `wanted`, features behind `hidden_layers`.
inline TextAlone forward_alone(LanguageModel& model, std::span<const Token> tokens,
                               std::span<const std::int32_t> wanted = {},
                               std::span<const std::int32_t> hidden_layers = {}) {
  const std::size_t n = tokens.size();
  std::vector<std::int32_t> positions(n);
  std::vector<std::int32_t> parents(n);
  std::vector<std::int64_t> slots(n);
  std::iota(positions.begin(), positions.end(), 0);
  std::iota(parents.begin(), parents.end(), -1);
  std::iota(slots.begin(), slots.end(), 0);
  const std::vector<std::int32_t> streams(n, 0);
  const StreamContext empty;
  TextAlone text{{}, model.make_kv_cache(static_cast<std::int64_t>(n / 16 + 1) * kKvBlockSlots)};
  model.forward({tokens, positions, streams, parents, slots, std::span(&empty, 1), wanted, hidden_layers}, *text.kv,
                text.out);
  return text;
}

}  // namespace draftproof::testing
